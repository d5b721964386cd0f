package policy

import (
	"fmt"
	"regexp"
	"strings"

	"listwatch/internal/text/source"
)

// generatedNotice opens the appendix.
const generatedNotice = "<!-- Written by `make generate` from the sources. Do not edit: change the comment it comes from. -->\n"

// differencesPage returns docs/DIFFERENCES.md: what we left out or do in another way, from the Differs lines.
func differencesPage(tree *source.Tree) []byte {
	var out strings.Builder
	out.WriteString("# What differs from upstream\n\n" + generatedNotice)
	out.WriteString(`
We simplify in public: whatever is left out of a type or a method, or is done in another way, is said where it is
declared, in a line that begins with "Differs:". This is all of them. What a whole chapter leaves out is in the last
sections of its README.
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
