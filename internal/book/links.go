package book

import (
	"fmt"
	"html"
	"io/fs"
	"net/url"
	"path"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/util"
)

// link turns the destination of a link, which is written for a forge, into an address of the book:
//
//	../04-watchcache/README.md#the-walk   /book/04-watchcache#the-walk
//	dispatch.go                           /book/06-cacher/dispatch.go
//	../../docs/STYLE.md                   none: the words stay, the link goes
//
// A chapter or file that does not exist is a problem.
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
	if target.Path == "" {
		d.editor.jumps = append(d.editor.jumps, jump{d, d.line(node), d.chapter.Folder, target.Fragment})
		return
	}
	if strings.HasPrefix(target.Path, "/") {
		return // another page of the running program
	}
	address, err := d.address(node, target)
	if err != nil {
		d.problem(node, "%w", err)
	}
	node.Destination = []byte(address)
}

// address returns where a file of the repository is to be seen in the book, "" if it is not part of it.
func (d *document) address(node ast.Node, target *url.URL) (string, error) {
	name := path.Join(d.chapter.Folder, target.Path) // chapters/ is the root
	if strings.HasPrefix(name, "../") {
		return "", nil
	}
	if _, err := fs.Stat(d.editor.fsys, name); err != nil {
		return "", fmt.Errorf("link to %s: %w", target, err)
	}
	fragment := ""
	if target.Fragment != "" {
		fragment = "#" + target.Fragment
	}
	switch {
	case path.Base(name) == "README.md":
		d.editor.jumps = append(d.editor.jumps, jump{d, d.line(node), path.Dir(name), target.Fragment})
		return Root + path.Dir(name) + fragment, nil
	case path.Ext(name) == ".go":
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

// jump is a link to a place in a chapter. Whether the place exists is known when all chapters are rendered.
type jump struct {
	document *document
	line     int
	folder   string
	fragment string
}

// land checks all jumps against the anchors of the rendered chapters.
func (e *editor) land(book *Book) {
	for _, jump := range e.jumps {
		if jump.fragment == "" {
			continue // [document.address] has seen that the chapter is there
		}
		if !strings.Contains(book.Chapter(jump.folder).HTML, `id="`+html.EscapeString(jump.fragment)+`"`) {
			e.problem(jump.document.chapter.Folder, jump.line, "link to #%s: %s has no such place", jump.fragment, jump.folder)
		}
	}
}
