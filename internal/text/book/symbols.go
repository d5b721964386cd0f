package book

import (
	"fmt"
	"path"
	"strings"

	"listwatch/internal/text/source"
)

// symbols is the name of the document that [symbolsPage] makes.
const symbols = "MAP.md"

// symbolsPage returns a document with our symbols and their upstream counterparts, from the Upstream lines of the
// chapters.
func symbolsPage(tree *source.Tree) []byte {
	var out strings.Builder
	fmt.Fprintf(&out, `# Our symbols and upstream's

Keep the two windows side by side: on the left what we wrote, on the right what it stands for in Kubernetes %s and
etcd %s. [DIFFERENCES.md](DIFFERENCES.md) says what each of ours leaves out or does in another way. The tests of
internal/check/compat check the right column against the real modules.
`, source.KubernetesVersion, source.EtcdVersion)
	for _, pkg := range tree.Packages {
		var files []string
		byFile := make(map[string][]source.Note)
		for _, note := range pkg.Notes() {
			if note.Differs != "" || note.Err != nil {
				continue
			}
			where := note.Upstream.Path
			if byFile[where] == nil {
				files = append(files, where)
			}
			byFile[where] = append(byFile[where], note)
		}
		if len(files) > 0 {
			fmt.Fprintf(&out, "\n## [%s](../chapters/%s/README.md)\n", pkg.Dir, pkg.Dir)
		}
		for _, where := range files {
			fmt.Fprintf(&out, "\n[%s](%s)\n\n| ours | upstream |\n|---|---|\n", where, byFile[where][0].Upstream.URL())
			for _, note := range byFile[where] {
				symbolsRow(&out, note)
			}
		}
	}
	return []byte(out.String())
}

func symbolsRow(out *strings.Builder, note source.Note) {
	ours, theirs := note.Symbol, note.Upstream.Symbol()
	if ours == "" {
		ours = "package " + note.Package.Name
	}
	if theirs == "" {
		theirs = path.Base(note.Upstream.Path)
	}
	fmt.Fprintf(out, "| [`%s`](../chapters/%s) | `%s` |\n", ours, note.File.Path, theirs)
}
