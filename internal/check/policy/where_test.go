package policy

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// TestALineHasItsRoomAndWhatChangesWithIt requires a row in changes.txt for each Go file or script outside chapters, or
// for its folder. It also runs `make where` for one line and its script for nine: each must print a room and tests.
func TestALineHasItsRoomAndWhatChangesWithIt(t *testing.T) {
	t.Parallel()
	const root = "../../.."
	tree := os.DirFS(root)
	rows := string(require.Value(fs.ReadFile(tree, "internal/check/tools/changes.txt"))(t))
	var lines []string // the middle line of each text file that is not a test
	for _, dir := range []string{"cmd", "docs", "internal", "viz"} {
		require.NoError(t, fs.WalkDir(tree, dir, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || strings.Contains(name, "/testdata/") {
				return err
			}
			text, folder, kind := require.Value(fs.ReadFile(tree, name))(t), path.Dir(name), path.Ext(name)
			if kind == ".go" || kind == ".js" || kind == ".sh" {
				has := func(at string) bool { return strings.Contains(rows, "\n"+at+" ") }
				assert.True(t, has(folder) || has(name) || isOthers(tree, folder), "%s: add a row to internal/check/"+
					"tools/changes.txt: what is free here, what changes with it, and what must stay", folder)
			}
			if !strings.HasSuffix(name, "_test.go") && !slices.Contains([]string{".gz", ".woff2", ".png"}, kind) {
				lines = append(lines, fmt.Sprintf("%s:%d", name, 1+bytes.Count(text, []byte("\n"))/2))
			}
			return nil
		}))
	}
	for row := range strings.Lines(rows[strings.Index(rows, "\n")+1:]) {
		at, _, _ := strings.Cut(row, " ")
		_, err := fs.Stat(tree, at)
		assert.NoError(t, err, "internal/check/tools/changes.txt: name an existing file or folder")
	}
	for i := range 10 {
		line := lines[i*len(lines)/10]
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			where := exec.Command("sh", root+"/internal/check/tools/where.sh", line)
			if i == 0 {
				where = exec.Command("make", "-s", "-C", root, "where", "LINE="+line)
			}
			out, err := where.CombinedOutput()
			has := func(part string) bool { return strings.Contains(string(out), part) }
			room := has("ROOM: ") && has("CHANGES ") || has("ROW ")
			assert.True(t, err == nil && room && has("RUN\n") && !has(" ./,"), "%v, with\n%s", err, out)
		})
	}
}

// isOthers reports whether a folder below compat is in another module, whose dependencies differ.
func isOthers(tree fs.FS, folder string) bool {
	for ; strings.HasPrefix(folder, "internal/check/compat/"); folder = path.Dir(folder) {
		if _, err := fs.Stat(tree, folder+"/go.mod"); err == nil {
			return true
		}
	}
	return false
}
