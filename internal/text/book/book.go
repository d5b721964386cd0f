// Package book turns the chapters, the documents and the concepts into HTML. goldmark renders the embedded Markdown
// files; declarations are taken, by symbol, from the embedded sources, so that readers see the code that runs.
//
// The package drops raw HTML and escapes everything in the prose, so that the page's Content-Security-Policy needs no
// exception. Neither building the book nor reading it makes a request to another server.
//
// There is no goroutine and no lock in this package.
package book

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"listwatch/chapters"
	"listwatch/internal/observe/probe"
	"listwatch/internal/text/source"
)

// Root is the path of the contents page; the chapters are directly below it.
const Root = "/book/"

// Book holds the chapters, documents and concepts, rendered, and what a search finds in the chapters' sources.
type Book struct {
	Chapters  []*Chapter
	Documents []*Chapter // the documents, OVERVIEW first
	Concepts  []*Chapter // the pages of one screen, directly below [Root]
	declared  []Place    // the chapters' declarations
	Problems  error      // all errors in the pages, joined, each with its file; nil if there are none
}

// Documents is the path below which the documents are, each under its name without ".md".
const Documents = Root + "docs/"

// Chapter is a chapter, a document or a concept, rendered. Only a chapter has a number, files and neighbours.
type Chapter struct {
	chapters.Chapter
	Title    string    // "Cacher": the first heading, without its number
	Path     string    // "/book/06-cacher"
	Question string    // the first paragraph of the section "The question", as plain text; "" if there is none
	Contents []Heading // the sections, in order
	HTML     string    // everything below the title; needs no escaping
	Files    []*File   // the chapter's Go files, tests last
	Previous *Chapter  // nil for the first
	Next     *Chapter  // nil for the last
}

// Document returns the document called name, such as "WHERE", or nil if there is none.
func (b *Book) Document(name string) *Chapter {
	i := slices.IndexFunc(b.Documents, func(doc *Chapter) bool { return doc.Path == Documents+name })
	if i < 0 {
		return nil
	}
	return b.Documents[i]
}

// Heading is a heading that a page's contents can list.
type Heading struct {
	Level int // 2 or 3
	ID    string
	Text  string
}

// File is a whole source file, for readers who want to see more than a declaration.
type File struct {
	Name string // "dispatch.go"
	Path string // "/book/06-cacher/dispatch.go"
	Test bool
	HTML string // highlighted, one element a line, with the anchors L1, L2, …; needs no escaping
}

// New renders the chapters of fsys, in the layout of [chapters.FS], the documents of docs, the documents that it
// generates from both, and the concepts. docs may be nil. After an error in a page (an unknown symbol, a dead link) the
// rest is readable, and [Book.Problems] lists the error. New fails only on sources that it cannot read or parse.
func New(fsys, docs fs.FS) (*Book, error) {
	list, err := chapters.List(fsys)
	if err != nil {
		return nil, err
	}
	tree, err := source.Parse(fsys)
	if err != nil {
		return nil, err
	}
	editor := newEditor(fsys, tree)
	if docs != nil {
		if editor.docs, err = fs.Glob(docs, "*.md"); err != nil {
			return nil, err
		}
		editor.docs = append(editor.docs, slices.Sorted(maps.Keys(collected))...)
		if i := slices.Index(editor.docs, "OVERVIEW.md"); i > 0 { // readers open it first
			editor.docs = slices.Insert(slices.Delete(editor.docs, i, i+1), 0, "OVERVIEW.md")
		}
	}
	book := &Book{declared: editor.declarations()}
	for i, entry := range list {
		book.Chapters = append(book.Chapters, editor.chapter(entry))
		if i > 0 {
			book.Chapters[i].Previous, book.Chapters[i-1].Next = book.Chapters[i-1], book.Chapters[i]
		}
	}
	for _, name := range editor.docs {
		text, err := fs.ReadFile(docs, name)
		if collect := collected[name]; collect != nil {
			text, err = collect(tree, docs)
		}
		if err != nil {
			return nil, err
		}
		doc := &Chapter{Path: Documents + strings.TrimSuffix(name, ".md")}
		editor.render(doc, "docs/"+name, text)
		book.Documents = append(book.Documents, doc)
	}
	for _, concept := range Concepts() {
		page, err := book.page(concept)
		if err != nil && docs != nil {
			editor.problem("concepts", 0, "%w", err)
			continue
		}
		if err == nil {
			book.Concepts = append(book.Concepts, page)
		}
	}
	book.Problems = errors.Join(editor.problems...)
	return book, nil
}

// editor renders chapters and documents, and collects their errors.
type editor struct {
	// Set by newEditor, never changed.
	fsys fs.FS
	tree *source.Tree
	told map[string]string // by "06-cacher/dispatch.go:88": the point that this line reports
	docs []string          // names of the documents; set by New before it renders anything

	problems []error
}

func newEditor(fsys fs.FS, tree *source.Tree) *editor {
	e := &editor{fsys: fsys, tree: tree, told: make(map[string]string)}
	for _, mention := range tree.Mentions(isPoint) {
		e.told[fmt.Sprintf("%s:%d", mention.File.Path, mention.Line)] = mention.Point
	}
	return e
}

func isPoint(name string) bool {
	_, ok := probe.PointNamed(name)
	return ok
}

// problem notes an error at a line of a file; line 0 means the file as a whole.
func (e *editor) problem(where string, line int, format string, args ...any) {
	if line > 0 {
		where = fmt.Sprintf("%s:%d", where, line)
	}
	e.problems = append(e.problems, fmt.Errorf("%s: %w", where, fmt.Errorf(format, args...)))
}

// chapter renders the sources of a chapter and, unless its README.md is missing, its prose.
func (e *editor) chapter(entry chapters.Chapter) *Chapter {
	chapter := &Chapter{Chapter: entry, Path: Root + entry.Folder}
	chapter.Files = e.files(entry.Folder)
	name := path.Join(entry.Folder, "README.md")
	readme, err := fs.ReadFile(e.fsys, name)
	if err != nil {
		e.problem("chapters/"+name, 0, "the chapter has no prose: %w", err)
		return chapter
	}
	e.render(chapter, "chapters/"+name, readme)
	return chapter
}

// files highlights every Go file of a folder, the tests last.
func (e *editor) files(folder string) []*File {
	var all []*File
	for _, pkg := range e.tree.Packages {
		if pkg.Dir != folder {
			continue
		}
		for _, src := range pkg.Files {
			file := &File{Name: path.Base(src.Path), Path: Root + src.Path, Test: src.Test}
			file.HTML = strings.Join(e.code(src.Path, strings.TrimSuffix(string(src.Src), "\n"), 1, true), "")
			all = append(all, file)
		}
	}
	slices.SortStableFunc(all, func(a, b *File) int { return strings.Compare(fmt.Sprint(a.Test), fmt.Sprint(b.Test)) })
	return all
}
