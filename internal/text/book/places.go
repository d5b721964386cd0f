package book

import (
	"fmt"
	"html"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Place is one place that a search can lead to.
type Place struct {
	At      string // its address: "/book/06-cacher#the-question"
	Page    string // the title of its page; of a row of a table, with the section's
	Heading string // the section's, or the first words of a row, a question or a declaration; "": a page's beginning
	Words   string // the text there; a declaration's comment
}

var (
	// section, row and question begin a place, and name it: a heading, a row of a table, a question with its answer.
	section  = regexp.MustCompile(`(?s)<h[23] id="([^"]*)">(.*?)</h[23]>`)
	row      = regexp.MustCompile(`(?s)<tr id="([^"]*)">\s*<td[^>]*>(.*?)</td>(.*?)</tr>`)
	question = regexp.MustCompile(`(?s)<p id="([^"]*)"><strong>(.*?)</strong></p>(\s*<details.*?</details>)?`)

	listing = regexp.MustCompile(`(?s)<pre class="(?:code|session exchange)".*?</pre>`)
	block   = regexp.MustCompile(`</?(?:p|li|td|th|tr|pre|figcaption|h4|br|b|a|text|summary)\b[^>]*>`)
	tag     = regexp.MustCompile(`<[^>]*>`)
)

// Places lists what can be found: each section, row of a table and question of chapters and documents, and each
// declaration of the chapters with its comment.
func (b *Book) Places() []Place {
	var all []Place
	for _, page := range slices.Concat(b.Chapters, b.Concepts, b.Documents) {
		if name := path.Base(page.Path) + ".md"; collected[name] == nil { // their entries are found where they are
			all = append(all, page.places()...)
		}
	}
	return append(all, b.declared...)
}

// places cuts the prose of a page at its headings, and takes rows and questions out.
func (c *Chapter) places() []Place {
	var all []Place
	text := listing.ReplaceAllString(c.HTML, " ")
	at := Place{At: c.Path, Page: c.Title}
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

// plain returns what stands in a piece of HTML.
func plain(piece string) string {
	text := tag.ReplaceAllString(block.ReplaceAllString(piece, " "), "")
	return strings.Join(strings.Fields(html.UnescapeString(text)), " ")
}

// declarations lists those of the chapters, tests excepted, with what their comments say.
func (e *editor) declarations() []Place {
	var all []Place
	for _, pkg := range e.tree.Packages {
		for _, decl := range pkg.Decls {
			if decl.File.Test || strings.HasPrefix(decl.Src, "\t") { // fields are found with their type
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
