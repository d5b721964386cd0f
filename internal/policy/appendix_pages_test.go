package policy

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"listwatch/internal/source"
)

// generatedNotice opens both appendices.
const generatedNotice = "<!-- Written by `make generate` from the sources. Do not edit: change the comment it comes from. -->\n"

// mapPage returns docs/MAP.md: our symbols and their upstream counterparts, from the Upstream lines of a tree that is rooted
// at the repository.
func mapPage(tree *source.Tree) []byte {
	var out strings.Builder
	out.WriteString("# Our symbols and upstream's\n\n" + generatedNotice)
	fmt.Fprintf(&out, `
Keep the two windows side by side: on the left what we wrote, on the right what it stands for in Kubernetes %s and etcd %s.
What each of ours leaves out or does in another way is in [DIFFERENCES.md](DIFFERENCES.md). The right column is checked against
the real modules by the tests of internal/compat; the left one is read off the sources.
`, source.KubernetesVersion, source.EtcdVersion)
	eachPackage(tree, func(note source.Note) bool { return note.Differs == "" && note.Err == nil },
		func(pkg *source.Package, notes []source.Note) {
			fmt.Fprintf(&out, "\n## %s\n", folderLink(pkg))
			mapByFile(&out, notes)
		})
	return []byte(out.String())
}

// mapByFile writes one table for each upstream file, in the order in which our sources come to them.
func mapByFile(out *strings.Builder, notes []source.Note) {
	var paths []string
	byPath := make(map[string][]source.Note)
	for _, note := range notes {
		where := note.Upstream.Path
		if byPath[where] == nil {
			paths = append(paths, where)
		}
		byPath[where] = append(byPath[where], note)
	}
	for _, where := range paths {
		list := byPath[where]
		fmt.Fprintf(out, "\n[%s](%s)\n\n| ours | upstream |\n|---|---|\n", where, list[0].Upstream.URL())
		for _, note := range list {
			symbol := note.Upstream.Symbol()
			if symbol == "" {
				symbol = path.Base(where)
			}
			fmt.Fprintf(out, "| %s | `%s` |\n", ours(note), symbol)
		}
	}
}

// differencesPage returns docs/DIFFERENCES.md: what we left out or do in another way, from the Differs lines.
func differencesPage(tree *source.Tree) []byte {
	var out strings.Builder
	out.WriteString("# What differs from upstream\n\n" + generatedNotice)
	out.WriteString(`
We simplify in public: whatever is left out of a type or a method, or is done in another way, is said where it is declared, in a line
that begins with "Differs:". This is all of them. What a whole chapter leaves out is in the last sections of its README.
`)
	eachPackage(tree, func(note source.Note) bool { return note.Differs != "" && note.Err == nil },
		func(pkg *source.Package, notes []source.Note) {
			fmt.Fprintf(&out, "\n## %s\n\n", folderLink(pkg))
			for _, note := range notes {
				fmt.Fprintf(&out, "- %s: %s\n", ours(note), escaped(note.Differs))
			}
		})
	return []byte(out.String())
}

// eachPackage visits the packages that have wanted notes, chapters first.
func eachPackage(tree *source.Tree, wanted func(source.Note) bool, visit func(*source.Package, []source.Note)) {
	for _, pkg := range tree.Packages { // sorted by folder, and "chapters/" comes before all others that have any
		var notes []source.Note
		for _, note := range pkg.Notes() {
			if wanted(note) {
				notes = append(notes, note)
			}
		}
		if len(notes) > 0 {
			visit(pkg, notes)
		}
	}
}

func folderLink(pkg *source.Package) string {
	return fmt.Sprintf("[%s](../%s)", strings.TrimPrefix(pkg.Dir, "chapters/"), pkg.Dir)
}

// ours names our side of a note and leads to its file.
func ours(note source.Note) string {
	symbol := note.Symbol
	if symbol == "" {
		symbol = "package " + note.Package.Name
	}
	return fmt.Sprintf("[`%s`](../%s)", symbol, note.File.Path)
}

var linkInComment = regexp.MustCompile(`\[\*?([A-Za-z_][\w.]*)\]`)

// escaped turns the text of a comment into Markdown that shows the same words.
func escaped(text string) string {
	text = strings.NewReplacer("*", `\*`, "_", `\_`, "<", "&lt;", "`", "\\`", "|", `\|`).Replace(text)
	return linkInComment.ReplaceAllStringFunc(text, func(link string) string {
		return "`" + strings.NewReplacer(`\`, "", "[", "", "]", "", "*", "").Replace(link) + "`"
	})
}
