package lab

import (
	"os"
	"strings"
	"testing"
)

// TestASolutionShowsWhatChangesAndLittleElse counts the lines of every diff: what the edit replaces, what it puts there, and
// the imports that it no longer needs.
func TestASolutionShowsWhatChangesAndLittleElse(t *testing.T) {
	const imports = 6
	for _, each := range All() {
		if each.Kind == Predict {
			continue
		}
		t.Run(each.ID, func(t *testing.T) {
			diff, err := Solution(root, each)
			if err != nil {
				t.Fatal(err)
			}
			changed := 0
			for line := range strings.Lines(diff) {
				if (line[0] == '+' || line[0] == '-') && !strings.HasPrefix(line, "+++ ") && !strings.HasPrefix(line, "--- ") {
					changed++
				}
			}
			edit := each.Edits[0]
			most := imports + strings.Count(edit.Old, "\n") + strings.Count(edit.New+edit.Body, "\n") + 2
			if edit.Body != "" {
				most += bodyLines(t, edit)
			}
			if changed == 0 || changed > most {
				t.Errorf("%d lines change, want at most %d:\n%s", changed, most, diff)
			}
			if strings.Contains(edit.New+edit.Body, "\t_ = ") {
				t.Error("the broken source points at the bug: a value is computed and not used")
			}
		})
	}
}

// bodyLines returns how many lines the function has that an edit replaces.
func bodyLines(t *testing.T, e Edit) int {
	t.Helper()
	_, pkg, err := e.parse(os.DirFS(root), nil)
	if err != nil {
		t.Fatal(err)
	}
	decl, err := pkg.Find(e.Symbol, "")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(decl.Src, "\n")
}
