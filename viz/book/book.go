// Package book serves the pages of the book: the chapters, each with its mini-stage (figure.go), the documents and the
// concepts, all from internal/text/book, then a page for each story, and the index for rank.js.
package book

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/a-h/templ"
	"github.com/go-chi/chi/v5"

	"listwatch/chapters"
	"listwatch/docs"
	"listwatch/internal/play/scenario"
	text "listwatch/internal/text/book"
)

// Room serves the book. It has no routes without Pages.
type Room struct{ Pages http.Handler }

// Mount adds the room's routes.
func (b Room) Mount(router chi.Router) {
	if b.Pages != nil {
		router.Handle("/book", http.RedirectHandler("/book/", http.StatusMovedPermanently))
		router.Get("/book/*", b.Pages.ServeHTTP)
	}
}

// New returns the handler of /book/ and everything below, all embedded in the program: the contents at /book/, a
// chapter at /book/06-cacher, a source file at /book/06-cacher/dispatch.go, a concept at /book/410, a document
// at /book/docs/WHERE, a story at /book/stories/ID, and the search index at /book/index.json. The first request renders
// all prose and colors all sources; if New did, the program's start would take twice as long. The text needs no
// script. A reference to a missing excerpt is shown as a gap; the tests of the book fail on it.
func New(stories []scenario.Story) http.Handler {
	return newPages(chapters.FS(), docs.FS(), stories)
}

// pages serves the book, and renders each page on request. A call returns the pages by path; the page at "" is for
// unknown paths. The first call typesets the book.
type pages func() (map[string]templ.Component, error)

func newPages(fsys, documents fs.FS, stories []scenario.Story) pages {
	return sync.OnceValues(func() (map[string]templ.Component, error) { return views(fsys, documents, stories) })
}

// views typesets the book from fsys, documents and stories, and returns all its pages and the search index, by path.
func views(fsys, documents fs.FS, stories []scenario.Story) (map[string]templ.Component, error) {
	b, err := text.New(fsys, documents)
	if err != nil {
		return nil, fmt.Errorf("set the book: %w", err)
	}
	views := map[string]templ.Component{
		text.Root: bookContents(b, stories), "": bookMissing(b), indexPath: index(b, stories),
	}
	for _, chapter := range b.Chapters {
		figure, err := newFigure(chapter.Number)
		if err != nil {
			return nil, fmt.Errorf("set %s: %w", chapter.Path, err)
		}
		views[chapter.Path] = bookChapter(b, chapter, figure)
		for _, file := range chapter.Files {
			views[file.Path] = bookSource(b, chapter, file)
		}
	}
	for i := range stories {
		views[storyPath+stories[i].ID] = bookStory(&stories[i])
	}
	for old, now := range moved {
		if doc := b.Document(now); doc != nil {
			views[text.Documents+old] = bookMoved(doc)
		}
	}
	for _, page := range b.Concepts {
		views[page.Path] = bookConcept(page)
	}
	for _, doc := range b.Documents {
		views[doc.Path] = bookDocument(b, doc)
	}
	return views, nil
}

// moved maps the name of each former document to the document that now has its text. The headings keep their names.
var moved = map[string]string{
	"READS": "REFERENCE", "SIGNALS": "REFERENCE", "ENDINGS": "REFERENCE", "CHANNELS": "REFERENCE",
	"QUESTIONS": "WORKSHOP", "ANSWERS": "WORKSHOP", "STYLE": "CONTRIBUTING",
}

// Moved returns the former documents' addresses, whose pages link to the text's new place. No other page links to them.
func Moved() (all []string) {
	for _, old := range slices.Sorted(maps.Keys(moved)) {
		all = append(all, text.Documents+old)
	}
	return all
}

// ServeHTTP implements [http.Handler]. It answers GET and HEAD below /book/.
func (p pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	views, err := p()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	view, found := views[r.URL.Path]
	if near := strings.TrimSuffix(r.URL.Path, "/"); !found && views[near] != nil {
		http.Redirect(w, r, near, http.StatusFound)
		return
	}
	w.Header().Set("Cache-Control", "no-cache") // a cache may keep it but must revalidate: the binary may be a new one
	if !found {
		templ.Handler(views[""], templ.WithStatus(http.StatusNotFound)).ServeHTTP(w, r)
		return
	}
	var body bytes.Buffer
	if err := view.Render(r.Context(), &body); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	sum := sha256.Sum256(body.Bytes())
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if r.URL.Path == indexPath {
		w.Header().Set("Content-Type", "application/json")
	}
	w.Header().Set("ETag", `"`+hex.EncodeToString(sum[:8])+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body.Bytes()))
}

// bookHalf is a part of the contents: an introduction, and the chapters that follow it.
type bookHalf struct {
	Title string
	Says  string
	First int // the first and last chapter number, both included
	Last  int
}

var bookHalves = []bookHalf{
	{"The server half", "From a revision in etcd to bytes on a connection. One watch of etcd feeds a cache, and the " +
		"cache feeds every client. This half is about giving one stream to thousands of readers, so that none of " +
		"them slows down the others.", 1, 8},
	{"The client half", "From bytes on a connection to a call of your handler. An informer keeps a copy of what the " +
		"server has, tells your handler of each change once the copy shows it, and repairs the copy when the " +
		"connection has failed. This half is about having state, not messages.", 9, 13},
	{"Both halves, as a loop", "Controllers read from the end of the client half and write to the beginning of the " +
		"server half. With them the loop is closed, and a pod lives its life.", 14, 99},
}

// chapters returns the chapters of b whose numbers are in the half.
func (h bookHalf) chapters(b *text.Book) []*text.Chapter {
	return slices.DeleteFunc(slices.Clone(b.Chapters), func(chapter *text.Chapter) bool {
		return chapter.Number < h.First || chapter.Number > h.Last
	})
}

// bookPathOf returns the path of the chapter with that number, or of the contents page if there is no such chapter.
func bookPathOf(b *text.Book, number int) string {
	i := slices.IndexFunc(b.Chapters, func(chapter *text.Chapter) bool { return chapter.Number == number })
	if i < 0 {
		return text.Root
	}
	return b.Chapters[i].Path
}

// storyPath is the folder of the stories' pages. Their addresses must not change.
const storyPath = text.Root + "stories/"

// indexPath is the address of the search index (search.js).
const indexPath = text.Root + "index.json"

//go:embed called.txt
var called string

// index lists the places of the book and the beats of the stories, each as [address, page, heading, words]. A place's
// words are its text and, after a line break, what people call its subject (called.txt).
func index(b *text.Book, stories []scenario.Story) templ.Component {
	var rows [][4]string
	for _, p := range b.Places() {
		_, words, _ := strings.Cut(called, "\n"+p.At+" ")
		words, _, _ = strings.Cut(words, "\n")
		rows = append(rows, [4]string{p.At, p.Page, p.Heading, p.Words + "\n" + words})
	}
	for _, story := range stories {
		for i, beat := range story.Beats {
			words := beat.Say
			if q := beat.Question; q != nil {
				words += " " + q.Ask + " " + strings.Join(q.Answers, " ")
			}
			heading := fmt.Sprint("Beat ", i+1)
			if i == 0 {
				heading = story.Symptom
				words += " " + story.Search
			}
			at := fmt.Sprintf("/?story=%s&beat=%d", story.ID, i+1)
			rows = append(rows, [4]string{at, "Story: " + story.Title, heading, words})
		}
	}
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error { return json.NewEncoder(w).Encode(rows) })
}
