// Package export writes the stage, the book and what they show as files that need no program: from a web server's
// folder, from a disk, or as one page with a recording in it.
//
//   - export.go: [Write], which asks the program's own pages for themselves and follows their links.
//   - pages.go: an address of the program as that of a file.
//   - bundle.go: modules as a classic script.
//   - static.js: what stands in for the program in those pages.
//
// What is written depends on the program only: two exports are equal.
package export

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"listwatch/docs"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/takes"
	"listwatch/internal/play/scenario"
	"listwatch/viz/book"
	"listwatch/viz/tour"
)

// site is what is to be written.
type site struct {
	program http.Handler
	files   map[string][]byte // by path from the folder's root, with slashes
	ways    []string          // addresses of pages that are linked to and not written yet
	offered []scenario.Story
	alone   bool // the stage is the only page
}

// Write writes everything that the pages of program link to into dir, which it makes if need be, and returns the number
// of files and of their bytes. program answers as package viz does, and runs nothing. Files in dir of other names stay.
func Write(dir string, program http.Handler) (files, size int, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, 0, err // before all the work
	}
	s := &site{program: program, files: map[string][]byte{"static.js": staticScript}, ways: []string{"/", "/book/"}}
	if err := s.gather(); err != nil {
		return 0, 0, err
	}
	for name, body := range s.files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return 0, 0, err
		}
		if err := os.WriteFile(file, body, 0o644); err != nil {
			return 0, 0, err
		}
		size += len(body)
	}
	return len(s.files), size, nil
}

// gather fills in every file.
func (s *site) gather() error {
	for _, take := range takes.Every() {
		s.addPacked("takes/"+take.Name, take.File())
	}
	if err := errors.Join(s.addData(leavesFile, s.leaves), s.addData("data/stories", s.stories)); err != nil {
		return err
	}
	for i := 0; i < len(s.ways); i++ { // it grows meanwhile
		if err := s.addPage(s.ways[i]); err != nil {
			return err
		}
	}
	s.files["assets/preview.png"], s.files["assets/film.png"] = docs.Preview, docs.Film
	return s.search()
}

// search adds the page for searching, and what it looks through.
func (s *site) search() error {
	var page bytes.Buffer
	if err := book.SearchPage().Render(context.Background(), &page); err != nil {
		return err
	}
	if err := s.write("search.html", page.String()); err != nil {
		return err
	}
	return s.addData("data/search", func() (any, error) { return s.index(), nil })
}

// addData adds what value returns as a file that pages load.
func (s *site) addData(name string, value func() (any, error)) error {
	made, err := value()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	text, err := json.Marshal(made)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	zip, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // the level is one
	if _, err := zip.Write(text); err != nil {
		return err
	}
	if err := zip.Close(); err != nil {
		return err
	}
	s.addPacked(name, packed.Bytes())
	return nil
}

// addPacked adds a file that pages load, as the script that brings it.
func (s *site) addPacked(name string, packed []byte) {
	s.files[name+".js"] = fmt.Appendf(nil, "listwatchFile(%q, %q);\n", name, base64.StdEncoding.EncodeToString(packed))
}

const leavesFile = "data/leaves"

// stories are those of the program, and the tour, with what their tellers need to know.
func (s *site) stories() (any, error) {
	list, err := s.get("/viz/scenarios")
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(list, &s.offered); err != nil {
		return nil, err
	}
	told := make(map[string]json.RawMessage)
	if told[tour.Take], err = s.get("/viz/scenario/" + tour.Take); err != nil {
		return nil, err
	}
	for _, story := range s.offered {
		for _, id := range append(story.Was, story.ID) {
			if told[id], err = s.get("/viz/scenario/" + story.ID); err != nil {
				return nil, err
			}
		}
	}
	return told, nil
}

// leaves are those of the inspector that are the same whatever has happened, by "station/queue/leaf/point".
func (s *site) leaves() (any, error) {
	all := make(map[string]string)
	add := func(station probe.Station, queue, tab, point string) error {
		key := strings.Join([]string{string(station), queue, tab, point}, "/")
		if all[key] != "" {
			return nil
		}
		body, err := s.get(fmt.Sprintf("/viz/part/%s/%s?queue=%s&point=%s", station, tab, queue, point))
		if err == nil {
			all[key], err = s.rewrite("index.html", editor.ReplaceAllString(string(body), ""))
		}
		return err
	}
	for _, point := range probe.Points() {
		info := point.Info()
		for _, queue := range slices.Compact([]string{"", info.Queue}) {
			for _, tab := range []string{"what", "state", "code", "blocked"} {
				if err := add(info.Station, queue, tab, ""); err != nil {
					return nil, err
				}
			}
			if err := add(info.Station, queue, "code", info.Name); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// get asks the program.
func (s *site) get(address string) ([]byte, error) {
	r, err := http.NewRequest(http.MethodGet, "http://localhost"+address, nil)
	if err != nil {
		return nil, err
	}
	answer := &answer{header: http.Header{}, code: http.StatusOK}
	if s.program.ServeHTTP(answer, r); answer.code != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %d", address, answer.code)
	}
	return answer.Bytes(), nil
}

// answer keeps what a handler writes.
type answer struct {
	bytes.Buffer
	header http.Header
	code   int
}

func (a *answer) Header() http.Header  { return a.header }
func (a *answer) WriteHeader(code int) { a.code = code }

// addAsset adds a file that a page names: a module of the page becomes a classic script.
func (s *site) addAsset(address string) (err error) {
	name := fileOf(address)
	if s.files[name] != nil {
		return nil
	}
	if path.Ext(name) != ".js" {
		s.files[name], err = s.get(address)
		return err
	}
	read := func(path string) ([]byte, error) { return s.get(assets + path) }
	text, err := bundle(strings.TrimPrefix(address, assets), read)
	s.files[name] = []byte(text)
	return err
}
