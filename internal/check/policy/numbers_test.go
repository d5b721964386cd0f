package policy

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// TestANumberThatTextsRepeatIsTheConstants finds the lines that repeat a constant in words. If they differ from the
// constant, the test lists them.
func TestANumberThatTextsRepeatIsTheConstants(t *testing.T) {
	t.Parallel()
	tree := os.DirFS("../../..")
	for _, number := range []struct{ file, constant, text, about, besides string }{
		{"chapters/06-cacher/time_budget.go", `maxBudget += 100 \* time\.Millisecond`, "100 ms",
			"budget|wait|evict|slow|delay|later|holds|event", "the recordings that have it: make recordings"},
		{"chapters/06-cacher/time_budget.go", `refreshPerSecond += 50 \* time\.Millisecond`, "50 ms",
			"budget|second", ""},
		{"chapters/10-deltafifo/the_real_fifo.go", `defaultBatchSize = 1000\n`, "2000",
			"delta|queue|item", "(two batches)"},
	} {
		line, about := regexp.MustCompile(`\b`+number.text+`\b`), regexp.MustCompile(number.about)
		var places []string
		for _, dir := range []string{"chapters", "docs", "internal/play", "viz"} {
			require.NoError(t, fs.WalkDir(tree, dir, func(name string, entry fs.DirEntry, err error) error {
				texts := []string{".md", ".yaml", ".txtar", ".templ", ".js", ".go"}
				if err != nil || entry.IsDir() || !slices.Contains(texts, path.Ext(name)) {
					return err
				}
				for i, each := range strings.Split(string(require.Value(fs.ReadFile(tree, name))(t)), "\n") {
					if line.MatchString(each) && about.MatchString(each) {
						places = append(places, fmt.Sprintf("%s:%d", name, i+1))
					}
				}
				return nil
			}))
		}
		assert.True(t, len(places) > 3, "only %v repeat %s", places, number.text)
		source := require.Value(fs.ReadFile(tree, number.file))(t)
		assert.True(t, regexp.MustCompile(number.constant).Match(source), "%s no longer has %q; change it in %s %s",
			number.file, number.text, strings.Join(places, " "), number.besides)
	}
}
