package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"listwatch/internal/text/source"
)

// TestASolutionShowsWhatChangesAndLittleElse counts the lines of every diff: what the edit replaces, what it puts
// there, and the imports that it no longer needs.
func TestASolutionShowsWhatChangesAndLittleElse(t *testing.T) {
	const imports = 6
	for _, each := range All() {
		if each.Kind == Predict {
			continue
		}
		t.Run(each.ID, func(t *testing.T) {
			diff, err := Solution(root, each.ID)
			if err != nil {
				t.Fatal(err)
			}
			changed := 0
			for line := range strings.Lines(diff) {
				if (line[0] == '+' || line[0] == '-') && !strings.HasPrefix(line, "+++ ") && !strings.HasPrefix(line,
					"--- ") {
					changed++
				}
			}
			most := imports + strings.Count(each.Old+each.New, "\n")
			if each.Old == "" {
				most += linesOf(t, each)
			}
			if changed == 0 || changed > most {
				t.Errorf("%d lines change, want at most %d:\n%s", changed, most, diff)
			}
			if strings.Contains(each.New, "\t_ = ") {
				t.Error("the broken source points at the bug: a value is computed and not used")
			}
		})
	}
}

// linesOf returns how many lines the declaration has that a lab changes.
func linesOf(t *testing.T, l Lab) int {
	t.Helper()
	tree, err := source.Parse(os.DirFS(filepath.Join(root, "chapters", l.Chapter)))
	if err != nil {
		t.Fatal(err)
	}
	decl, err := tree.In(".").Find(l.Symbol, "")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(decl.Src, "\n")
}
