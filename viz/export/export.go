// Package export writes the stage, the book and their data as files that need no program, for a web server or a disk.
//
// The files depend only on the program: two exports are equal. static.js answers the page's requests from these files,
// so a new kind of request needs an answer there, too.
package export

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"listwatch/docs"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/takes"
	"listwatch/internal/play/scenario"
	"listwatch/viz/book"
)

// site is an export that is being built.
type site struct {
	program http.Handler
	files   map[string][]byte // by slash-separated path from the folder's root
	ways    []string          // addresses of all linked pages
	offered []scenario.Story
	err     error // the first error, which makes the export invalid
}

// Write writes into dir everything that the pages of program link to, and returns the number of files and of their
// bytes. It creates dir if necessary. program is package viz's handler without a running pipeline. A dir that is not
// empty must be an earlier export; Write keeps files that the new export does not have.
func Write(dir string, program http.Handler) (files, size int, err error) {
	root, err := openOurs(filepath.Clean(dir)) // fails early for a foreign folder
	if err != nil {
		return 0, 0, err
	}
	defer root.Close()
	s := &site{program: program, ways: append(book.Moved(), "/", "/book/"), files: map[string][]byte{
		"static.js": staticScript, mark: []byte(marked),
	}}
	if s.gather(); s.err != nil {
		return 0, 0, s.err
	}
	for name, body := range s.files {
		if err := replace(root, name, body); err != nil {
			return 0, 0, err
		}
		size += len(body)
	}
	return len(s.files), size, nil
}

// gather adds every file to s.files. At the first error, it stops adding pages, and leaves the error in s.err.
func (s *site) gather() {
	for _, take := range takes.Every() {
		s.addPacked("takes/"+take.Name, take.File())
	}
	s.addData(leavesFile, s.leaves())
	s.addData("data/stories", s.stories())
	for i := 0; i < len(s.ways) && s.err == nil; i++ { // addPage appends to s.ways
		s.addPage(s.ways[i])
	}
	s.files["assets/preview.png"], s.files["assets/film.png"] = docs.Preview, docs.Film
	s.addData("data/search", json.RawMessage(s.get("/book/index.json")))
}

// note keeps the first error.
func (s *site) note(err error) { s.err = cmp.Or(s.err, err) }

// addData adds a value as a gzipped JSON file that pages load.
func (s *site) addData(name string, value any) {
	var packed bytes.Buffer
	zip, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // the level is valid
	s.note(json.NewEncoder(zip).Encode(value))
	s.note(zip.Close())
	s.addPacked(name, packed.Bytes())
}

// addPacked adds gzipped data that pages load, as base64 in a script.
func (s *site) addPacked(name string, packed []byte) {
	s.files[name+".js"] = fmt.Appendf(nil, "listwatchFile(%q, %q);\n", name, base64.StdEncoding.EncodeToString(packed))
}

const leavesFile = "data/leaves"

// stories saves the list of stories, and returns the data to tell each one, by its current and former ids.
func (s *site) stories() map[string]json.RawMessage {
	s.note(json.Unmarshal(s.get("/viz/scenarios"), &s.offered))
	told := map[string]json.RawMessage{}
	for _, story := range s.offered {
		for _, id := range append(story.Was, story.ID) {
			told[id] = s.get("/viz/scenario/" + story.ID)
		}
	}
	return told
}

// leaves returns the inspector's leaves that do not depend on the log, by "station/queue/leaf/point".
func (s *site) leaves() map[string]string {
	all := make(map[string]string)
	add := func(station probe.Station, queue, tab, point string) {
		key := strings.Join([]string{string(station), queue, tab, point}, "/")
		if all[key] == "" {
			body := s.get(fmt.Sprintf("/viz/part/%s/%s?queue=%s&point=%s", station, tab, queue, point))
			all[key] = s.rewrite("index.html", string(body))
		}
	}
	for _, point := range probe.Points() {
		info := point.Info()
		for _, queue := range slices.Compact([]string{"", info.Queue}) {
			for _, tab := range []string{"what", "state", "code", "blocked"} {
				add(info.Station, queue, tab, "")
			}
			add(info.Station, queue, "code", info.Name)
		}
	}
	return all
}

// get returns the body of the program's answer to GET address, and notes an error.
func (s *site) get(address string) []byte {
	request, err := http.NewRequest(http.MethodGet, "http://localhost"+address, nil)
	if err != nil {
		s.note(err)
		return nil
	}
	answer := httptest.NewRecorder()
	s.program.ServeHTTP(answer, request)
	if answer.Code != http.StatusOK {
		s.note(fmt.Errorf("GET %s: %d", address, answer.Code))
	}
	return answer.Body.Bytes()
}

// addAsset adds a file that a page names: a module as a classic script, a style sheet with its fonts inside.
func (s *site) addAsset(address string) {
	name := fileOf(address)
	switch {
	case s.files[name] != nil:
	case path.Ext(name) == ".js":
		read := func(path string) ([]byte, error) {
			text := s.get(assets + path)
			return text, s.err
		}
		text, err := bundle(strings.TrimPrefix(address, assets), read)
		s.note(err)
		s.files[name] = []byte(text)
	default:
		s.files[name] = face.ReplaceAllFunc(s.get(address), func(found []byte) []byte {
			font := s.get(path.Dir(address) + "/" + string(face.FindSubmatch(found)[1]))
			return fmt.Appendf(nil, "url(data:font/woff2;base64,%s)", base64.StdEncoding.EncodeToString(font))
		})
	}
}
