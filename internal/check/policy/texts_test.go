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

// eachText calls f with the name and the text of each file below dirs that has one of the extensions.
func eachText(t *testing.T, dirs, extensions string, f func(name, text string)) {
	tree := os.DirFS("../../..")
	for dir := range strings.FieldsSeq(dirs) {
		require.NoError(t, fs.WalkDir(tree, dir, func(name string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && slices.Contains(strings.Fields(extensions), path.Ext(name)) {
				f(name, string(require.Value(fs.ReadFile(tree, name))(t)))
			}
			return err
		}))
	}
}

// TestANumberThatTextsRepeatIsTheConstants fails if a constant has another value than the texts that repeat it. It then
// lists the lines of these texts.
func TestANumberThatTextsRepeatIsTheConstants(t *testing.T) {
	t.Parallel()
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
		eachText(t, "chapters docs internal/play viz", ".md .yaml .txtar .templ .js .go", func(name, text string) {
			for i, each := range strings.Split(text, "\n") {
				if line.MatchString(each) && about.MatchString(each) {
					places = append(places, fmt.Sprintf("%s:%d", name, i+1))
				}
			}
		})
		assert.True(t, len(places) > 3, "only %v repeat %s", places, number.text)
		source := require.Value(os.ReadFile(path.Join("../../..", number.file)))(t)
		assert.True(t, regexp.MustCompile(number.constant).Match(source), "%s no longer has %q; change it in %s %s",
			number.file, number.text, strings.Join(places, " "), number.besides)
	}
}

// sentence matches a call that fills in a record's sentence, in Go or in a script.
var sentence = regexp.MustCompile(`\.Sentence\(|\bsentence\((?:info|clause)|\b(?:says|brief)\(\w+\)`)

// shows lists the files that make or show sentences, and the file that searches sentences for a viewer's words.
var shows = []string{
	"internal/observe/recording/flight.go", "viz/book/figure.go", "viz/frame/banner.js", "viz/frame/page.js",
	"viz/inspector/part.templ", "viz/log/fold.js", "viz/spacetime/spacetime.js",
	"viz/stage/sentence.js", "viz/timeline/past.go", "viz/timeline/table.js",
}

// TestASentenceIsOnlyShown allows calls for sentences in the files of shows, in package probe and in tests, and nowhere
// else. A record consists of numbers and named texts; its sentence is for people. Code that examines a record uses its
// fields ([probe.Query]).
func TestASentenceIsOnlyShown(t *testing.T) {
	t.Parallel()
	var found []string
	eachText(t, "chapters cmd internal viz", ".go .templ .js", func(name, text string) {
		made := strings.HasPrefix(name, "internal/observe/probe/") || strings.HasPrefix(name, "internal/check/")
		test := strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, "_templ.go")
		if !made && !test && sentence.MatchString(text) {
			found = append(found, name)
		}
	})
	assert.EqualSlices(t, shows, found, "files that build sentences: use the fields, or add a file that shows one here")
}
