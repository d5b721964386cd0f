package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
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
			require.NoError(t, err)
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
			assert.True(t, changed != 0 && changed <= most,
				"%d lines change, want at most %d:\n%s", changed, most, diff)
			assert.False(t, strings.Contains(each.New, "\t_ = "),
				"the broken source points at the bug: a value is computed and not used")
		})
	}
}

// linesOf returns how many lines the declaration has that a lab changes.
func linesOf(t *testing.T, l Lab) int {
	t.Helper()
	tree, err := source.Parse(os.DirFS(filepath.Join(root, "chapters", l.Chapter)))
	require.NoError(t, err)
	decl, err := tree.In(".").Find(l.Symbol, "")
	require.NoError(t, err)
	return strings.Count(decl.Src, "\n")
}
