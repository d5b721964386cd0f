package policy

import (
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

// sentence matches a call that fills in a record's sentence, in Go or in a script.
var sentence = regexp.MustCompile(`\.Sentence\(|\bsentence\((?:info|clause)|\b(?:says|brief)\(\w+\)`)

// shows are the files that make or show sentences, and the file that searches sentences for a viewer's words.
var shows = []string{
	"internal/observe/recording/flight.go", "viz/book/figure.go", "viz/frame/banner.js", "viz/frame/page.js",
	"viz/inspector/part.templ", "viz/log/fold.js", "viz/spacetime/spacetime.js",
	"viz/stage/sentence.js", "viz/timeline/past.go", "viz/timeline/table.js",
}

// TestASentenceIsOnlyShown allows calls for sentences only in the files of shows. A record consists of numbers and
// named texts; its sentence is for people. Code that examines a record uses its fields ([probe.Query]) and needs no
// sentence.
func TestASentenceIsOnlyShown(t *testing.T) {
	t.Parallel()
	var found []string
	tree := os.DirFS("../../..")
	for _, dir := range []string{"chapters", "cmd", "internal", "viz"} {
		require.NoError(t, fs.WalkDir(tree, dir, func(name string, entry fs.DirEntry, err error) error {
			made := strings.HasPrefix(name, "internal/observe/probe/") || strings.HasPrefix(name, "internal/check/")
			test := strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, "_templ.go")
			if err != nil || entry.IsDir() || made || test ||
				!slices.Contains([]string{".go", ".templ", ".js"}, path.Ext(name)) {
				return err
			}
			if sentence.Match(require.Value(fs.ReadFile(tree, name))(t)) {
				found = append(found, name)
			}
			return nil
		}))
	}
	assert.EqualSlices(t, shows, found, "files that ask for sentences: ask for fields, or name here what shows one")
}
