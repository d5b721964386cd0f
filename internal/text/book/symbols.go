package book

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"listwatch/internal/text/source"
)

// collected are the documents that are made from the lines about upstream in the sources of the chapters, by name.
var collected = map[string]func(*source.Tree) []byte{"MAP.md": symbolsPage, "DIFFERENCES.md": differencesPage}

// symbolsPage lists our symbols and their upstream counterparts.
func symbolsPage(tree *source.Tree) []byte {
	return page(tree, fmt.Sprintf(`# Our symbols and upstream's

Keep the two windows side by side: on the left what we wrote, on the right what it stands for in Kubernetes %s and
etcd %s. [DIFFERENCES.md](DIFFERENCES.md) says what each of ours leaves out or does in another way. The tests of
internal/check/compat check the right column against the real modules.
`, source.KubernetesVersion, source.EtcdVersion), func(out *strings.Builder, notes []source.Note) {
		var files []string
		rows := make(map[string]string) // by file
		for _, note := range notes {
			if note.Differs != "" {
				continue
			}
			where, theirs := note.Upstream.Path, cmp.Or(note.Upstream.Symbol(), path.Base(note.Upstream.Path))
			if rows[where] == "" {
				files = append(files, where)
				rows[where] = fmt.Sprintf("\n[%s](%s)\n\n| ours | upstream |\n|---|---|\n", where, note.Upstream.URL())
			}
			rows[where] += fmt.Sprintf("| %s | `%s` |\n", ours(note), theirs)
		}
		for _, file := range files {
			out.WriteString(rows[file])
		}
	})
}

// differencesPage lists what we left out or do in another way.
func differencesPage(tree *source.Tree) []byte {
	return page(tree, `# What differs from upstream

We simplify in public: whatever is left out of a type or a method, or is done in another way, is said where it is
declared, in a line that begins with "Differs:". These are all of the chapters'. What a whole chapter leaves out is in
the last sections of its README; "git grep Differs: internal" finds what stands around the chapters.
`, func(out *strings.Builder, notes []source.Note) {
		out.WriteString("\n")
		for _, note := range notes {
			if note.Differs != "" {
				fmt.Fprintf(out, "- %s: %s\n", ours(note), escaped(note.Differs))
			}
		}
	})
}

// page begins with a text and goes on with a section for each chapter that has notes.
func page(tree *source.Tree, text string, section func(*strings.Builder, []source.Note)) []byte {
	var out strings.Builder
	out.WriteString(text)
	for _, pkg := range tree.Packages {
		malformed := func(note source.Note) bool { return note.Err != nil }
		if notes := slices.DeleteFunc(pkg.Notes(), malformed); len(notes) > 0 {
			fmt.Fprintf(&out, "\n## [%s](../chapters/%s/README.md)\n", pkg.Dir, pkg.Dir)
			section(&out, notes)
		}
	}
	return []byte(out.String())
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
