package book

import (
	"fmt"
	"html"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/util"
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
	if target.Scheme != "" || target.Host != "" {
		if target.Scheme != "https" && target.Scheme != "http" {
			d.problem(node, "link to %s: only https leads out of the book", node.Destination)
			node.Destination = nil
		}
		return
	}
	if target.Path == "" || strings.HasPrefix(target.Path, "/") {
		return // a place in this page, or another page of the running program
	}
	address, err := d.address(target)
	if err != nil {
		d.problem(node, "%w", err)
	}
	node.Destination = []byte(address)
}

// address returns where a file of the repository is to be seen in the book, "" if it is not part of it.
func (d *document) address(target *url.URL) (string, error) {
	whole := path.Join(path.Dir(d.name), target.Path)
	fragment := ""
	if target.Fragment != "" {
		fragment = "#" + target.Fragment
	}
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
	case path.Ext(name) == ".go" && strings.Contains(name, "/"):
		return Root + name + fragment, nil
	case !strings.Contains(name, "/"):
		return Root + name + fragment, nil // a chapter's folder
	}
	return "", nil
}

// renderLink writes a link; links that lead out do not say where they come from.
func (d *document) renderLink(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	destination := string(node.(*ast.Link).Destination)
	switch {
	case destination == "" && entering:
		_, _ = w.WriteString(`<span class="outside">`)
	case destination == "":
		_, _ = w.WriteString("</span>")
	case !entering:
		_, _ = w.WriteString("</a>")
	case strings.HasPrefix(destination, "/") || strings.HasPrefix(destination, "#"):
		_, _ = fmt.Fprintf(w, `<a href="%s">`, html.EscapeString(destination))
	default:
		_, _ = fmt.Fprintf(w, `<a href="%s" rel="noreferrer">`, html.EscapeString(destination))
	}
	return ast.WalkContinue, nil
}
