package export_test

import (
	"fmt"
	"html"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
	"listwatch/internal/play/scenario"
	"listwatch/viz"
	"listwatch/viz/book"
	"listwatch/viz/export"
	"listwatch/viz/frame"
)

// maxExport limits the bytes of an export, because people load it over slow connections and send it to others.
const maxExport = 12 << 20

// exported writes an export and returns the contents of its files, by slash-separated path.
func exported(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	log := probe.NewLog(clock.RealClock{}, 1)
	pictures := viz.NewPictures(log, nil, nil)
	page := frame.New(log, pictures)
	page.Replay, page.Stories.Stories, page.Book.Pages = true, scenario.All, book.New(scenario.All)
	program := viz.New(pictures, page, nil)
	n, _, err := export.Write(dir, program)
	require.NoError(t, err)
	files := make(map[string]string)
	err = fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		files[name] = string(text)
		return err
	})
	require.NoError(t, err)
	assert.Equal(t, n, len(files), "files")
	return files
}

var (
	linkInExport   = regexp.MustCompile(` (?:href|src|data-frame|data-whole)="([^"]*)"`)
	anchorInExport = regexp.MustCompile(` id="([^"]*)"`)
)

// TestAnExportIsWholeAndSmall checks the export's size, its links to its own files and anchors, its policies, and the
// pages of stories. With FULL=1 it also checks that a second export is equal.
func TestAnExportIsWholeAndSmall(t *testing.T) {
	files := exported(t)
	anchors := make(map[string]bool)
	size, pages := 0, 0
	for name, text := range files {
		size += len(text)
		for _, each := range anchorInExport.FindAllStringSubmatch(text, -1) {
			anchors[name+"#"+each[1]] = true
		}
	}
	here, _ := os.Getwd()
	for name, text := range files {
		assert.True(t, !strings.Contains(text, here) && !strings.Contains(text, "vscode:"),
			"%s names a folder of this machine", name)
		if path.Ext(name) != ".html" {
			continue
		}
		pages++
		scripts := `'self' file:;`
		if name == "index.html" {
			scripts = `'self' file: 'wasm-unsafe-eval'; worker-src blob:;` // the first page can run the program
		}
		_, policy, _ := strings.Cut(text, `"Content-Security-Policy" content="`)
		policy, _, _ = strings.Cut(policy, `">`)
		assert.True(t, strings.HasPrefix(policy, "default-src 'none'; script-src "+scripts) &&
			strings.Count(policy, "unsafe-") == strings.Count(scripts, "unsafe-"), "%s has no strict policy", name)
		for _, each := range linkInExport.FindAllStringSubmatch(text, -1) {
			target, err := url.Parse(strings.ReplaceAll(each[1], "&amp;", "&"))
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if target.Scheme == "https" {
				continue
			}
			file := path.Join(path.Dir(name), target.Path)
			if target.Path == "" {
				file = name
			}
			_, ok := files[file]
			assert.True(t, ok && target.Scheme == "", "%s links to %s, which is not there", name, each[1])
			assert.True(t, target.Fragment == "" || path.Base(file) == "index.html" ||
				anchors[file+"#"+target.Fragment], "%s links to %s, which has no such place", name, each[1])
		}
	}
	for _, story := range scenario.All {
		text, on := files["book/stories/"+story.ID+".html"], `href="../../index.html?story=`+story.ID
		for _, want := range []string{"<title>" + html.EscapeString(story.Search) + " · listwatch</title>", on + `"`,
			fmt.Sprintf(`%s&amp;beat=%d"`, on, story.Climax()+1), "<!-- loop -->", `"assets/preview.png"`} {
			assert.True(t, story.Search != "" && strings.Contains(text, want), "%s has no %s", story.ID, want)
		}
	}
	t.Logf("%d files, %d pages, %d bytes", len(files), pages, size)
	assert.True(t, size <= maxExport && pages >= 250, "%d pages, %d bytes; want at most %d", pages, size, maxExport)
	if os.Getenv("FULL") == "" {
		return
	}
	for name, text := range exported(t) {
		assert.Equal(t, text, files[name], "%s is another one the second time", name)
	}
}
