package book

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"listwatch/internal/text/source"
)

// collected has the functions that generate documents, by name: two from the notes about upstream in the chapters'
// sources, one from two other documents.
var collected = map[string]func(chapters *source.Tree, docs fs.FS) ([]byte, error){
	"MAP.md": symbolsPage, "DIFFERENCES.md": differencesPage, "HANDOUT.md": handout,
}

const mapHead = "| ours | upstream | in |\n|---|---|---|\n"

// symbolsPage lists our symbols and their upstream counterparts.
func symbolsPage(tree *source.Tree, _ fs.FS) ([]byte, error) {
	return page(tree, fmt.Sprintf(`# Our symbols and upstream's

Keep the two windows side by side: on the left what we wrote, on the right what it stands for in Kubernetes %s and
etcd %s. [DIFFERENCES.md](DIFFERENCES.md) says what each of ours leaves out or does in another way. The tests of
internal/check/compat check the right columns against the real modules.
`, source.KubernetesVersion, source.EtcdVersion), mapHead, func(note source.Note) string {
		if note.Differs != "" {
			return ""
		}
		where := note.Upstream.Path
		theirs := cmp.Or(note.Upstream.Symbol, path.Base(where))
		return fmt.Sprintf("| %s | `%s` | [%s](%s) |\n", ours(note), theirs, where, note.Upstream.URL())
	})
}

// differencesPage lists what our code omits or does differently.
func differencesPage(tree *source.Tree, _ fs.FS) ([]byte, error) {
	return page(tree, `# What differs from upstream

We simplify in public: where a type or a method leaves something out or does it in another way, its comment has a line
that begins with "Differs:". This page has all such lines of the chapters. What a whole chapter leaves out is in the
last sections of its README; "git grep Differs: internal" finds the lines outside the chapters.
`, "", func(note source.Note) string {
		if note.Differs == "" {
			return ""
		}
		return fmt.Sprintf("- %s: %s\n", ours(note), escaped(note.Differs))
	})
}

// page returns text, and a section for each chapter with lines: its link, head, and the lines for its valid notes.
func page(tree *source.Tree, text, head string, line func(source.Note) string) ([]byte, error) {
	var out strings.Builder
	out.WriteString(text)
	for _, pkg := range tree.Packages {
		lines := ""
		for _, note := range pkg.Notes() {
			if note.Err == nil {
				lines += line(note)
			}
		}
		if lines != "" {
			fmt.Fprintf(&out, "\n## [%s](../chapters/%s/README.md)\n\n%s%s", pkg.Dir, pkg.Dir, head, lines)
		}
	}
	return []byte(out.String()), nil
}

// ours returns a link to a note's file, with the symbol that the note is about as its text.
func ours(note source.Note) string {
	return fmt.Sprintf("[`%s`](../chapters/%s)", cmp.Or(note.Symbol, "package "+note.Package.Name), note.File.Path)
}

var linkInComment = regexp.MustCompile(`\[\*?([A-Za-z_][\w.]*)\]`)

// escaped turns the text of a comment into Markdown that shows the same words.
func escaped(text string) string {
	text = strings.NewReplacer("*", `\*`, "_", `\_`, "<", "&lt;", "`", "\\`", "|", `\|`).Replace(text)
	return linkInComment.ReplaceAllStringFunc(text, func(link string) string {
		return "`" + strings.NewReplacer(`\`, "", "[", "", "]", "", "*", "").Replace(link) + "`"
	})
}

var workshopQuestion = regexp.MustCompile(`(?m)^- \*\*(\d[a-z])\*\* (.*)$`)

// handout makes two pages for the attendees of the workshop: the drawing of ARCHITECTURE.md, and the keys and the
// numbered questions of WORKSHOP.md, with room for guesses.
func handout(_ *source.Tree, docs fs.FS) ([]byte, error) {
	architecture, noMap := fs.ReadFile(docs, "ARCHITECTURE.md")
	workshop, noPlan := fs.ReadFile(docs, "WORKSHOP.md")
	drawing := between(string(architecture), "```\n", "```\n")
	keys := between(string(workshop), "## Keys\n", "\n## ")
	text := "# List-watch on two pages\n\n```\n" + drawing + "```\n\n## Keys of the page\n" + keys + "\n---\n\n" +
		"## My guesses\n\nFirst guess, then look. [WORKSHOP.md](WORKSHOP.md#answers) has the answers.\n\n" +
		"| | question | my guess |\n|---|---|---|\n" // the rule above begins the second page
	for _, each := range workshopQuestion.FindAllStringSubmatch(string(workshop), -1) {
		text += "| " + each[1] + " | " + each[2] + " | |\n"
	}
	return []byte(text), errors.Join(noMap, noPlan)
}

// between returns the text between the first start and the next end.
func between(text, start, end string) string {
	_, text, _ = strings.Cut(text, start)
	text, _, _ = strings.Cut(text, end)
	return text
}

//go:embed concepts/*.txt
var concepts embed.FS

// Concept is a page of one screen with a lasting address: what a client must do, where the book explains it, and one
// recorded exchange with the whole response.
type Concept struct {
	Name     string // the name of the page: "410"
	Title    string
	Says     string
	Sections []string // addresses of sections of the book
	Before   []string // requests before the exchange: "POST /api/v1/… {…}"; "later …" is sent during the exchange
	Exchange string   // the first line is the request
}

// Concepts returns every concept, sorted by name.
func Concepts() []Concept {
	names, _ := fs.Glob(concepts, "concepts/*.txt") // cannot fail: the pattern is well formed
	all := make([]Concept, 0, len(names))
	for _, name := range names {
		text, _ := concepts.ReadFile(name) // cannot fail: the file was listed
		head, rest, _ := strings.Cut(string(text), "\n-- before --\n")
		before, exchange, _ := strings.Cut(rest, "-- exchange --\n")
		parts := strings.Split(head, "\n\n")
		all = append(all, Concept{strings.TrimSuffix(path.Base(name), ".txt"), parts[0], parts[1],
			strings.Fields(parts[2]), lines(before), exchange})
	}
	return all
}

// lines returns the nonempty lines of a text.
func lines(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
}

// page returns the book's page of a concept, or an error if the book lacks a section to which the concept links.
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

// spans returns a sentence as HTML, with its code marked.
func spans(text string) string {
	pieces := strings.Split(html.EscapeString(text), "`")
	for i := 1; i < len(pieces); i += 2 {
		pieces[i] = "<code>" + pieces[i] + "</code>"
	}
	return strings.Join(pieces, "")
}

// heading returns the titles of an address's page and section, or "". Without a section, both are the page's title.
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
