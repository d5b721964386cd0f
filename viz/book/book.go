// Package book is the room of the chapters: their pages, and the mini-stage of each.
package book

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/a-h/templ"

	"listwatch/chapters"
	"listwatch/docs"
	text "listwatch/internal/text/book"
)

// New returns the handler of /book/ and everything below: the contents at /book/, a chapter at /book/06-cacher, a
// source file at /book/06-cacher/dispatch.go, a document at /book/docs/WHERE, of those embedded in the program. The
// first request renders all prose and colours all sources, which takes longer than the rest of the program's start.
// Pages need no script. Places where the prose asks for what is not there are shown as gaps; the tests of the book fail
// on them.
func New() http.Handler { return onFirstRequest(chapters.FS(), docs.FS()) }

// onFirstRequest is the book of fsys and documents, of which nothing is read before a request comes.
func onFirstRequest(fsys, documents fs.FS) http.Handler {
	pages := sync.OnceValues(func() (http.Handler, error) { return newBook(fsys, documents) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		book, err := pages()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		book.ServeHTTP(w, r)
	})
}

// newBook sets the chapters of fsys, and documents.
func newBook(fsys, documents fs.FS) (http.Handler, error) {
	b, err := text.New(fsys, documents)
	if err != nil {
		return nil, fmt.Errorf("set the book: %w", err)
	}
	views := map[string]templ.Component{text.Root: bookContents(b)}
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
	for _, doc := range b.Documents {
		views[doc.Path] = bookDocument(b, doc)
	}
	return &bookPages{views: views, missing: bookMissing(b)}, nil
}

// bookPages serves pages, each rendered when it is asked for. Immutable.
type bookPages struct {
	views   map[string]templ.Component // by path
	missing templ.Component
}

// ServeHTTP implements [http.Handler].
func (p *bookPages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the book can only be read", http.StatusMethodNotAllowed)
		return
	}
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Cache-Control", "no-cache") // may be kept, but is asked for again: the binary may be a new one
	view, found := p.views[r.URL.Path]
	if near := p.near(r.URL.Path); !found && near != "" {
		http.Redirect(w, r, near, http.StatusFound)
		return
	}
	if !found {
		w.WriteHeader(http.StatusNotFound)
		_ = p.missing.Render(r.Context(), w) // the reader has gone if this fails
		return
	}
	var body bytes.Buffer
	if err := view.Render(r.Context(), &body); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	sum := sha256.Sum256(body.Bytes())
	header.Set("ETag", `"`+hex.EncodeToString(sum[:8])+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body.Bytes()))
}

// near returns the page that a path means but for a slash at its end, "" if there is none.
func (p *bookPages) near(path string) string {
	for _, other := range []string{path + "/", strings.TrimSuffix(path, "/")} {
		if p.views[other] != nil {
			return other
		}
	}
	return ""
}

// bookHalf is one part of the contents.
type bookHalf struct {
	Title string
	Says  string
	First int // chapter numbers, both included
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

// chapters returns those of the half.
func (h bookHalf) chapters(b *text.Book) []*text.Chapter {
	var list []*text.Chapter
	for _, chapter := range b.Chapters {
		if h.First <= chapter.Number && chapter.Number <= h.Last {
			list = append(list, chapter)
		}
	}
	return list
}

// bookPathOf returns the path of the chapter of a number, the contents page if there is none.
func bookPathOf(b *text.Book, number int) string {
	for _, chapter := range b.Chapters {
		if chapter.Number == number {
			return chapter.Path
		}
	}
	return text.Root
}
