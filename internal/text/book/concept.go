package book

import (
	"embed"
	"fmt"
	"html"
	"io/fs"
	"path"
	"slices"
	"strings"
)

//go:embed concepts/*.txt
var concepts embed.FS

// Concept is a page of one screen at an address that stays: what a client must do, where the book tells it, and one
// exchange that was recorded, with the whole answer.
type Concept struct {
	Name     string // the page's: "410"
	Title    string
	Says     string
	Sections []string // addresses
	Before   []string // requests that come first: "POST /api/v1/… {…}"; with "later", while the last is answered
	Exchange string   // its first line is the request
}

// Concepts are all of them, by name.
func Concepts() []Concept {
	names, _ := fs.Glob(concepts, "concepts/*.txt") // it is well formed
	all := make([]Concept, 0, len(names))
	for _, name := range names {
		text, _ := concepts.ReadFile(name) // it is there
		head, rest, _ := strings.Cut(string(text), "\n-- before --\n")
		before, exchange, _ := strings.Cut(rest, "-- exchange --\n")
		parts := strings.Split(head, "\n\n")
		all = append(all, Concept{strings.TrimSuffix(path.Base(name), ".txt"), parts[0], parts[1],
			strings.Fields(parts[2]), lines(before), exchange})
	}
	return all
}

// lines are those of a text; none of an empty one.
func lines(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
}

// page is a concept as a page of the book.
func (b *Book) page(c Concept) (*Chapter, error) {
	page := &Chapter{Title: c.Title, Path: Root + c.Name}
	var out strings.Builder
	fmt.Fprintf(&out, "<p>%s</p>\n<ul>\n", spans(c.Says))
	for _, at := range c.Sections {
		title, heading := b.heading(at)
		if title == "" {
			return nil, fmt.Errorf("concept %s: there is no section %s", c.Name, at)
		}
		fmt.Fprintf(&out, "<li><a href=\"%s\">%s</a> <span class=\"where\">%s</span></li>\n", at,
			html.EscapeString(heading), html.EscapeString(title))
	}
	fmt.Fprintf(&out, "</ul>\n<pre class=\"session exchange\" tabindex=\"0\">%s</pre>\n",
		html.EscapeString(strings.TrimSpace(c.Exchange)))
	page.HTML = out.String()
	return page, nil
}

// spans is a sentence with its code marked.
func spans(text string) string {
	pieces := strings.Split(html.EscapeString(text), "`")
	for i := 1; i < len(pieces); i += 2 {
		pieces[i] = "<code>" + pieces[i] + "</code>"
	}
	return strings.Join(pieces, "")
}

// heading returns the title of the page of a section, and the section's own; "" if there is none at the address.
func (b *Book) heading(at string) (title, heading string) {
	file, id, _ := strings.Cut(at, "#")
	for _, page := range slices.Concat(b.Chapters, b.Documents) {
		i := slices.IndexFunc(page.Contents, func(h Heading) bool { return h.ID == id })
		switch {
		case page.Path != file:
		case id == "":
			return page.Title, page.Title
		case i >= 0:
			return page.Title, page.Contents[i].Text
		}
	}
	return "", ""
}
