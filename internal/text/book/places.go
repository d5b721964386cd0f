package book

import (
	"fmt"
	"html"
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// Place is an entry of the search index.
type Place struct {
	At      string // the address: "/book/06-cacher#the-question"
	Page    string // the page's title; for a row or a question, with the section's heading; for a declaration, its file
	Heading string // a section's heading, a row's first cell, a question, or a symbol; "": a page's beginning
	Words   string // the text at that place; for a declaration, its comment
}

var (
	// section, row and question match a heading, a table's row, and a question with its answer, with id and name.
	section  = regexp.MustCompile(`(?s)<h[23] id="([^"]*)">(.*?)</h[23]>`)
	row      = regexp.MustCompile(`(?s)<tr id="([^"]*)">\s*<td[^>]*>(.*?)</td>(.*?)</tr>`)
	question = regexp.MustCompile(`(?s)<p id="([^"]*)"><strong>(.*?)</strong></p>(\s*<details.*?</details>)?`)

	listing = regexp.MustCompile(`(?s)<pre class="(?:code|session exchange)".*?</pre>|` +
		`<tr[^>]*>\s*<td>(?:must|slack|may|late)<.*?</tr>`) // the second form is the workshop's timetable
	block = regexp.MustCompile(`</?(?:p|li|td|th|tr|pre|figcaption|h4|br|b|a|text|summary)\b[^>]*>`)
	tag   = regexp.MustCompile(`<[^>]*>`)
)

// Places returns all places that a search can find: each section, row of a table and question of chapters, concepts and
// documents, and each declaration of the chapters with its comment. Generated documents have none.
func (b *Book) Places() []Place {
	var all []Place
	for _, page := range slices.Concat(b.Chapters, b.Concepts, b.Documents) {
		if name := path.Base(page.Path) + ".md"; collected[name] == nil { // generated pages only repeat others
			all = append(all, page.places()...)
		}
	}
	return append(all, b.declared...)
}

// places cuts the prose of a page at its headings, and makes rows and questions places of their own.
func (c *Chapter) places() []Place {
	var all []Place
	text, at := listing.ReplaceAllString(c.HTML, " "), Place{At: c.Path, Page: c.Title}
	for text != "" {
		piece, next := text, []int(nil)
		if next = section.FindStringSubmatchIndex(text); next != nil {
			piece = text[:next[0]]
		}
		where := strings.Trim(c.Title+" · "+at.Heading, " ·")
		for _, part := range []*regexp.Regexp{row, question} {
			for _, found := range part.FindAllStringSubmatch(piece, -1) {
				all = append(all, Place{c.Path + "#" + found[1], where, plain(found[2]), plain(found[3])})
			}
			piece = part.ReplaceAllString(piece, " ")
		}
		if at.Words = plain(piece); at.Words != "" || at.Heading != "" {
			all = append(all, at)
		}
		if next == nil {
			break
		}
		at = Place{At: c.Path + "#" + text[next[2]:next[3]], Page: c.Title, Heading: plain(text[next[4]:next[5]])}
		text = text[next[1]:]
	}
	return all
}

// plain returns the text of a piece of HTML.
func plain(piece string) string {
	text := tag.ReplaceAllString(block.ReplaceAllString(piece, " "), "")
	return strings.Join(strings.Fields(html.UnescapeString(text)), " ")
}

// declarations returns the chapters' declarations, without tests, as places with their comments.
func (e *editor) declarations() []Place {
	var all []Place
	for _, pkg := range e.tree.Packages {
		for _, decl := range pkg.Decls {
			if decl.File.Test || strings.HasPrefix(decl.Src, "\t") { // a search finds a field together with its type
				continue
			}
			var comment []string
			for line := range strings.Lines(decl.Src) {
				words, ok := strings.CutPrefix(line, "//")
				if !ok {
					break
				}
				comment = append(comment, strings.Fields(words)...)
			}
			all = append(all, Place{fmt.Sprintf("%s%s#L%d", Root, decl.File.Path, decl.Line()), decl.File.Path,
				decl.Symbol, strings.Join(comment, " ")})
		}
	}
	return all
}

// link turns a link's destination, which the author wrote for a forge, into an address of the book:
//
//	../04-watchcache/README.md#the-walk   /book/04-watchcache#the-walk
//	dispatch.go                           /book/06-cacher/dispatch.go
//	../../docs/WHERE.md                   /book/docs/WHERE
//	../../internal/observe/fold           none: the words stay without the link
//
// A missing chapter or file is a problem. viz/export/export_test.go checks that the page has the linked place.
func (d *document) link(node *ast.Link) {
	if node.Parent() == nil {
		return // an excerpt has replaced it
	}
	target, err := url.Parse(string(node.Destination))
	if err != nil {
		d.problem(node, "link: %w", err)
		return
	}
	switch {
	case target.Scheme == "https", target.Scheme == "http":
		node.SetAttributeString("rel", []byte("noreferrer")) // hides from the other site which page links to it
	case target.Scheme != "", target.Host != "":
		d.problem(node, "link to %s: only http and https lead out of the book", node.Destination)
		outside(node)
	case target.Path == "", strings.HasPrefix(target.Path, "/"):
		// The link leads to a place in this page, or to another page of the running program.
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

// address returns a file's address in the book, or "" if the book lacks the file. A chapter's missing file is an error.
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
	case path.Ext(name) == ".go", !strings.Contains(name, "/"): // a file in a chapter's folder, or that folder
		return Root + name + fragment, nil
	}
	return "", nil
}

// outside keeps the words of a link, and removes the link, because the book does not have its target.
func outside(link *ast.Link) {
	above := link.Parent()
	above.InsertBefore(above, link, ready(`<span class="outside">`))
	for word := link.FirstChild(); word != nil; word = link.FirstChild() {
		above.InsertBefore(above, link, word)
	}
	above.ReplaceChild(above, link, ready("</span>"))
}
