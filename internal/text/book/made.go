package book

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"listwatch/internal/text/source"
)

// collected are the documents that are made, by name: two from the lines about upstream in the sources of the chapters,
// one from two other documents.
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

// differencesPage lists what we left out or do in another way.
func differencesPage(tree *source.Tree, _ fs.FS) ([]byte, error) {
	return page(tree, `# What differs from upstream

We simplify in public: whatever is left out of a type or a method, or is done in another way, is said where it is
declared, in a line that begins with "Differs:". These are all of the chapters'. What a whole chapter leaves out is in
the last sections of its README; "git grep Differs: internal" finds what stands around the chapters.
`, "", func(note source.Note) string {
		if note.Differs == "" {
			return ""
		}
		return fmt.Sprintf("- %s: %s\n", ours(note), escaped(note.Differs))
	})
}

// page begins with a text and goes on with a section for each chapter that has notes: a head, and the line of each.
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

// ours names our side of a note and leads to its file.
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

// handout makes two pages for the attendees of the half day: the drawing of ARCHITECTURE.md, and the keys and the
// numbered questions of WORKSHOP.md, with room for guesses.
func handout(_ *source.Tree, docs fs.FS) ([]byte, error) {
	architecture, noMap := fs.ReadFile(docs, "ARCHITECTURE.md")
	workshop, noPlan := fs.ReadFile(docs, "WORKSHOP.md")
	drawing := between(string(architecture), "```\n", "```\n")
	keys := between(string(workshop), "## Keys\n", "\n## ")
	text := "# List-watch on two pages\n\n```\n" + drawing + "```\n\n## Keys of the page\n" + keys + "\n---\n\n" +
		"## My guesses\n\nFirst guess, then look. [WORKSHOP.md](WORKSHOP.md#answers) has the answers.\n\n" +
		"| | question | my guess |\n|---|---|---|\n" // the rule begins the second page
	for _, each := range workshopQuestion.FindAllStringSubmatch(string(workshop), -1) {
		text += "| " + each[1] + " | " + each[2] + " | |\n"
	}
	return []byte(text), errors.Join(noMap, noPlan)
}

// between returns what stands between the first start in text and the next end.
func between(text, start, end string) string {
	_, text, _ = strings.Cut(text, start)
	text, _, _ = strings.Cut(text, end)
	return text
}
