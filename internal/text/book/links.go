package book

import (
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// link turns the destination of a link, which is written for a forge, into an address of the book:
//
//	../04-watchcache/README.md#the-walk   /book/04-watchcache#the-walk
//	dispatch.go                           /book/06-cacher/dispatch.go
//	../../docs/WHERE.md                   /book/docs/WHERE
//	../../internal/observe/fold                   none: the words stay, the link goes
//
// A chapter or file that does not exist is a problem. Whether a page has the place that is linked to, a walk over all
// pages finds out (viz/book_test.go).
func (d *document) link(node *ast.Link) {
	if node.Parent() == nil {
		return // became an excerpt
	}
	target, err := url.Parse(string(node.Destination))
	if err != nil {
		d.problem(node, "link: %w", err)
		return
	}
	switch {
	case target.Scheme == "https", target.Scheme == "http":
		node.SetAttributeString("rel", []byte("noreferrer")) // who leaves does not say where from
	case target.Scheme != "", target.Host != "":
		d.problem(node, "link to %s: only https leads out of the book", node.Destination)
		outside(node)
	case target.Path == "", strings.HasPrefix(target.Path, "/"):
		// a place in this page, or another page of the running program
	default:
		address, err := d.address(target)
		if err != nil {
			d.problem(node, "%w", err)
		}
		if node.Destination = []byte(address); address == "" {
			outside(node)
		}
	}
}

// address returns where a file of the repository is to be seen in the book, "" if it is not part of it.
func (d *document) address(target *url.URL) (string, error) {
	whole := path.Join(path.Dir(d.name), target.Path)
	fragment := (&url.URL{Fragment: target.Fragment}).String()
	if doc, ok := strings.CutPrefix(whole, "docs/"); ok && slices.Contains(d.editor.docs, doc) {
		return Documents + strings.TrimSuffix(doc, ".md") + fragment, nil
	}
	name, ok := strings.CutPrefix(whole, "chapters/")
	if !ok {
		return "", nil
	}
	if _, err := fs.Stat(d.editor.fsys, name); err != nil {
		return "", fmt.Errorf("link to %s: %w", target, err)
	}
	switch {
	case path.Base(name) == "README.md":
		return Root + path.Dir(name) + fragment, nil
	case path.Ext(name) == ".go", !strings.Contains(name, "/"): // a file in a chapter's folder, or such a folder
		return Root + name + fragment, nil
	}
	return "", nil
}

// outside leaves the words of a link that leads to nothing in the book.
func outside(link *ast.Link) {
	above := link.Parent()
	above.InsertBefore(above, link, ready(`<span class="outside">`))
	for word := link.FirstChild(); word != nil; word = link.FirstChild() {
		above.InsertBefore(above, link, word)
	}
	above.ReplaceChild(above, link, ready("</span>"))
}
