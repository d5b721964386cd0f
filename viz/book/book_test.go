package book

import (
	"cmp"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"listwatch/chapters"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
	text "listwatch/internal/text/book"
	"listwatch/viz/stage"
)

func bookCourse() fstest.MapFS {
	return fstest.MapFS{
		"04-ring/README.md": {Data: []byte("# 04 · The `<i>`ring\n\n## The question\n\nWhy " +
			"<script>x</script>?\n\n[Ring](ring.go \"code\")\n")},
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

// countingFS counts how often a file or folder was opened.
type countingFS struct {
	fs.FS
	opened int
}

func (c *countingFS) Open(name string) (fs.File, error) {
	c.opened++
	return c.FS.Open(name)
}

// TestNothingIsRenderedBeforeTheFirstRequest checks that only the first request opens files: rendering them is slow.
func TestNothingIsRenderedBeforeTheFirstRequest(t *testing.T) {
	course := &countingFS{FS: bookCourse()}
	handler := newPages(course, nil, nil)
	assert.Equal(t, 0, course.opened, "before the first request: %d files opened, want 0", course.opened)
	if w := bookGet(handler, "GET", "/book/04-ring"); w.Code != http.StatusOK || course.opened == 0 {
		t.Fatalf("the first request: got %d and %d files opened", w.Code, course.opened)
	}
	once := course.opened
	bookGet(handler, "GET", "/book/06-cacher")
	assert.True(t, course.opened == once, "the second request opened %d more files, want 0", course.opened-once)
}

// ownScripts removes the scripts that tested pages may have: one applies the theme chosen on the stage, one searches,
// and one moves a chapter's figure. The text is complete without them.
var ownScripts = strings.NewReplacer(`<script src="/viz/assets/frame/theme.js"></script>`, "",
	`<script type="module" src="/viz/assets/book/search.js"></script>`, "",
	`<script type="module" src="/viz/assets/book/book.js"></script>`, "")

// inlineCode matches scripts, styles and foreign addresses that the Content-Security-Policy would refuse.
var inlineCode = regexp.MustCompile(
	`(?i)<script|<style|\sstyle=|\son[a-z]+=|javascript:|src="http|<link[^>]*href="http`)

func TestTheBookAnswersItsPages(t *testing.T) {
	handler := newPages(bookCourse(), nil, nil)
	tests := []struct {
		method, path string
		status       int
		location     string
		parts        []string
	}{
		{"GET", "/book/", 200, "", []string{"The list-watch book", `href="/book/04-ring"`, "How?", "v1.37.2"}},
		{"GET", "/book/04-ring", 200, "", []string{"<h1>The &lt;i&gt;ring</h1>", `aria-current="page"`,
			`<figure class="decl" id="Ring">`, `rel="next" href="/book/06-cacher"`}},
		{"GET", "/book/06-cacher", 200, "", []string{`rel="prev" href="/book/04-ring"`}},
		{"GET", "/book/04-ring/ring.go", 200, "", []string{`id="L4" data-n="4"`, "&#34;&lt;b&gt;&#34;"}},
		{"GET", "/book/04-ring/", 302, "/book/04-ring", nil},
		{"HEAD", "/book/06-cacher", 200, "", nil},
		{"GET", "/book/05-none", 404, "", []string{"There is no such page"}},
		{"GET", "/book/04-ring/none.go", 404, "", []string{"There is no such page"}},
		{"GET", "/book/../chapters.go", 404, "", nil},
	}
	for _, test := range tests {
		t.Run(test.method+" "+test.path, func(t *testing.T) {
			w := bookGet(handler, test.method, test.path)
			assert.True(t, w.Code == test.status && w.Header().Get("Location") == test.location,
				"got %d %q, want %d %q", w.Code, w.Header().Get("Location"), test.status, test.location)
			for _, part := range test.parts {
				assert.True(t, strings.Contains(w.Body.String(), part), "%s is missing in\n%s", part, w.Body)
			}
			known, again := httptest.NewRequest(test.method, test.path, nil), httptest.NewRecorder()
			known.Header.Set("If-None-Match", w.Header().Get("ETag"))
			handler.ServeHTTP(again, known)
			spared := again.Code == http.StatusNotModified && again.Body.Len() == 0
			assert.True(t, test.status != http.StatusOK || spared, "sent twice: %d %s", again.Code, again.Body)
		})
	}
}

// oldPlaces are the places in moved documents that readers may have linked to.
var oldPlaces = map[string]string{
	"READS":   "get-of-one-object list watch without-a-cache",
	"SIGNALS": "on-the-client on-the-server",
	"ENDINGS": "before-the-first-byte-the-watch-is-refused after-the-first-byte-the-stream-ends-in-silence " +
		"after-the-first-byte-an-error-event who-is-told",
	"CHANNELS": "channels-and-queues-in-the-order-in-which-an-event-passes-them " +
		"numbers-and-what-is-coupled-to-them",
	"QUESTIONS": "etcd-is-restored-from-an-older-backup etcd-is-compacted the-next-page-of-a-list-has-expired " +
		"where-is-a-change-left-out-on-purpose ondelete-got-a-deletedfinalstateunknown",
	"ANSWERS": "one-pod-one-round the-ring-that-remembers closing",
	"STYLE":   "names comments state control tests prose",
}

func TestOldAddressesLeadToTheNewOnes(t *testing.T) {
	handler := New(nil)
	leads := regexp.MustCompile(`data-moved href="([^"]*)"`)
	assert.Equal(t, len(oldPlaces), len(Moved()))
	for old, places := range oldPlaces {
		page := bookGet(handler, "GET", "/book/docs/"+old).Body.String()
		to := leads.FindStringSubmatch(page)
		if to == nil {
			t.Errorf("%s leads nowhere", old)
			continue
		}
		now := bookGet(handler, "GET", to[1]).Body.String()
		for _, place := range strings.Fields(places) {
			assert.True(t, strings.Contains(now, ` id="`+place+`"`), "%s#%s: %s has no such place", old, place, to[1])
		}
	}
}

func TestBookPagesNeedNoExceptionFromThePolicy(t *testing.T) {
	handler := newPages(bookCourse(), nil, nil)
	for _, path := range []string{"/book/", "/book/04-ring", "/book/04-ring/ring.go", "/book/none"} {
		body := ownScripts.Replace(bookGet(handler, "GET", path).Body.String())
		assert.Equal(t, "", inlineCode.FindString(body), path)
	}
}

// TestWordsMeanPartsOfTheStage checks that the stage draws each of text.Parts, and that a chapter mentions it.
func TestWordsMeanPartsOfTheStage(t *testing.T) {
	var drawn struct{ Pipes, Boxes map[string]json.RawMessage }
	require.NoError(t, json.Unmarshal(require.Value(json.Marshal(stage.Geometry))(t), &drawn))
	b := require.Value(text.New(chapters.FS(), nil))(t)
	for _, part := range text.Parts {
		at := drawn.Boxes
		if part.Kind == "queue" {
			at = drawn.Pipes
		}
		assert.True(t, at[part.Name] != nil, "the stage draws no %s %q", part.Kind, part.Name)
		said := 0
		for _, chapter := range b.Chapters {
			said += strings.Count(chapter.HTML, `<span data-part="`+part.Name+`"`)
		}
		assert.True(t, said != 0, "no chapter speaks of %q", part.Name)
	}
}

// TestEveryChapterHasItsMiniStage checks that the steps of each figure are moments of its recording, in order, and that
// there are enough of them to scroll through.
func TestEveryChapterHasItsMiniStage(t *testing.T) {
	b := require.Value(text.New(chapters.FS(), nil))(t)
	for _, chapter := range b.Chapters {
		f := require.Value(newFigure(chapter.Number))(t)
		if f == nil || len(f.Steps) < 3 {
			t.Errorf("%s has no figure, or one that hardly moves: %+v", chapter.Folder, f)
			continue
		}
		start, records, err := f.Take.Load()
		require.NoError(t, err)
		names := probe.NewNames()
		start.Names(names)
		for i := range records {
			names.Note(&records[i])
		}
		first, before := records[0].Seq, uint64(0)
		for _, s := range f.Steps {
			r := records[s.Seq-first]
			assert.True(t, r.Seq == s.Seq && r.Point == s.Point && names.Sentence(&r) == s.Says && s.Seq > before,
				"%s: step %+v is record %+v, after %d", chapter.Folder, s, r, before)
			before = s.Seq
		}
	}
}

// TestAFirstTryIsToldInOrder checks that six chapters show a first try from a lab's recording, in its order.
func TestAFirstTryIsToldInOrder(t *testing.T) {
	assert.Equal(t, 6, len(tries), "%d first tries", len(tries))
	for chapter, told := range tries {
		try, err := newAct(told)
		require.True(t, err == nil && try != nil && try.Take.Lab() != "", "chapter %d: %+v, %v", chapter, try, err)
		assert.True(t, slices.IsSortedFunc(try.Steps, func(a, b step) int { return cmp.Compare(a.Seq, b.Seq) }),
			"chapter %d: %+v", chapter, try.Steps)
		var out strings.Builder
		require.NoError(t, miniStage(&figure{act: *try, Try: try}).Render(t.Context(), &out))
		if want := `data-lab="` + try.Take.Lab() + `"`; strings.Count(out.String(), want) != 2*len(try.Steps) {
			t.Errorf("chapter %d does not say of each step that it is of the lab %s", chapter, try.Take.Lab())
		}
	}
}
