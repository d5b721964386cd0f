package viz

import (
	"html"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"k8s.io/utils/clock"

	"listwatch/internal/book"
	"listwatch/internal/probe"
)

func bookCourse() fstest.MapFS {
	return fstest.MapFS{
		"04-ring/README.md":   {Data: []byte("# 04 · The <i>ring</i>\n\n## The question\n\nWhy <script>x</script>?\n\n[Ring](ring.go \"code\")\n")},
		"04-ring/ring.go":     {Data: []byte("package ring\n\n// Ring is \"<b>\".\ntype Ring struct{}\n")},
		"06-cacher/README.md": {Data: []byte("# 06 · Cacher\n\n## The question\n\nHow?\n")},
		"06-cacher/doc.go":    {Data: []byte("package cacher\n")},
	}
}

func bookGet(handler http.Handler, method, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return w
}

func TestTheBookAnswersItsPages(t *testing.T) {
	handler, err := newBook(bookCourse())
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		method, path string
		status       int
		location     string
		parts        []string
	}{
		{"GET", "/book/", 200, "", []string{"The list-watch book", `href="/book/04-ring"`, "How?", "v1.37.2"}},
		{"GET", "/book/04-ring", 200, "", []string{"<h1>The &lt;i&gt;ring&lt;/i&gt;</h1>", `aria-current="page"`, `<figure class="decl" id="Ring">`, `rel="next" href="/book/06-cacher"`}},
		{"GET", "/book/06-cacher", 200, "", []string{`rel="prev" href="/book/04-ring"`}},
		{"GET", "/book/04-ring/ring.go", 200, "", []string{`id="L4" data-n="4"`, "&#34;&lt;b&gt;&#34;"}},
		{"GET", "/book/04-ring/", 302, "/book/04-ring", nil},
		{"GET", "/book", 302, "/book/", nil},
		{"HEAD", "/book/06-cacher", 200, "", nil},
		{"GET", "/book/05-none", 404, "", []string{"There is no such page"}},
		{"GET", "/book/04-ring/none.go", 404, "", []string{"There is no such page"}},
		{"GET", "/book/../chapters.go", 404, "", nil},
		{"POST", "/book/", 405, "", nil},
	}
	for _, test := range tests {
		t.Run(test.method+" "+test.path, func(t *testing.T) {
			w := bookGet(handler, test.method, test.path)
			if w.Code != test.status || w.Header().Get("Location") != test.location {
				t.Errorf("got %d %q, want %d %q", w.Code, w.Header().Get("Location"), test.status, test.location)
			}
			for _, part := range test.parts {
				if !strings.Contains(w.Body.String(), part) {
					t.Errorf("%s is missing in\n%s", part, w.Body)
				}
			}
		})
	}
}

func TestABookPageIsNotSentTwice(t *testing.T) {
	handler, err := newBook(bookCourse())
	if err != nil {
		t.Fatal(err)
	}
	first := bookGet(handler, "GET", "/book/06-cacher")
	r := httptest.NewRequest("GET", "/book/06-cacher", nil)
	r.Header.Set("If-None-Match", first.Header().Get("ETag"))
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	if w.Code != http.StatusNotModified || w.Body.Len() != 0 {
		t.Errorf("got %d with %d bytes, want 304 with none", w.Code, w.Body.Len())
	}
}

var (
	hrefs = regexp.MustCompile(`<a[^>]* href="([^"]+)"`)
	ids   = regexp.MustCompile(` id="([^"]+)"`)
)

// TestEveryLinkOfTheBookLeadsSomewhere walks through the whole book, from its contents on, as a reader with much time: every
// page below /book/, every place in it that is linked to, and every link to the stage.
func TestEveryLinkOfTheBookLeadsSomewhere(t *testing.T) {
	set, err := NewBook()
	if err != nil {
		t.Fatal(err)
	}
	w := walk{ui: New(Config{Log: probe.NewLog(clock.RealClock{}, 8), Book: set}), places: map[string]map[string]bool{}}
	w.read(book.Root)
	links := 0
	for len(w.todo) > 0 {
		page := w.todo[0]
		w.todo = w.todo[1:]
		for _, link := range page.links {
			links++
			if strings.HasPrefix(link, "https://") {
				continue
			}
			path, place, _ := strings.Cut(link, "#")
			if path == "" {
				path = page.path
			}
			if places := w.read(path); places == nil {
				t.Errorf("%s leads to %s, which is not there", page.path, link)
			} else if place != "" && strings.HasPrefix(path, book.Root) && !places[place] {
				t.Errorf("%s leads to %s: there is no such place", page.path, link)
			}
		}
	}
	if len(w.places) < 100 || links < 2000 {
		t.Errorf("walked over %d pages and %d links: that is not the book", len(w.places), links)
	}
}

// walk is on its way through the book.
type walk struct {
	ui     http.Handler
	places map[string]map[string]bool // by path: the places in the page; nil if it is not there
	todo   []walkPage                 // of the book, read and not looked through
}

type walkPage struct {
	path  string
	links []string
}

// read returns the places in a page, nil if there is none.
func (w *walk) read(path string) map[string]bool {
	if places, known := w.places[path]; known {
		return places
	}
	w.places[path] = nil
	answer := httptest.NewRecorder()
	w.ui.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil))
	if answer.Code != http.StatusOK {
		return nil
	}
	body := answer.Body.String()
	places := map[string]bool{}
	for _, found := range ids.FindAllStringSubmatch(body, -1) {
		places[html.UnescapeString(found[1])] = true
	}
	w.places[path] = places
	if strings.HasPrefix(path, book.Root) {
		page := walkPage{path: path}
		for _, found := range hrefs.FindAllStringSubmatch(body, -1) {
			page.links = append(page.links, html.UnescapeString(found[1]))
		}
		w.todo = append(w.todo, page)
	}
	return places
}

// themeScript is the one script: it repeats the theme that was chosen on the stage, and nothing is missing without it.
const themeScript = `<script src="/viz/assets/theme.js"></script>`

// inlineCode finds what the Content-Security-Policy would refuse.
var inlineCode = regexp.MustCompile(`(?i)<script|<style|\sstyle=|\son[a-z]+=|javascript:|src="http|<link[^>]*href="http`)

func TestBookPagesNeedNoExceptionFromThePolicy(t *testing.T) {
	handler, err := newBook(bookCourse())
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/book/", "/book/04-ring", "/book/04-ring/ring.go", "/book/none"} {
		body := strings.Replace(bookGet(handler, "GET", path).Body.String(), themeScript, "", 1)
		if found := inlineCode.FindString(body); found != "" {
			t.Errorf("%s: %s", path, found)
		}
	}
}
