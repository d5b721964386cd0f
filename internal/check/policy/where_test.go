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

// TestALineHasItsRoomAndWhatChangesWithIt requires a line "Change:" in each folder of Go or scripts outside chapters,
// and asks for thirty lines by the command of docs/CONTRIBUTING.md, make where.
func TestALineHasItsRoomAndWhatChangesWithIt(t *testing.T) {
	t.Parallel()
	const root = "../../.."
	tree, changes := os.DirFS(root), map[string]bool{}
	var lines []string // the middle of each file that is a text and no test
	for _, dir := range []string{"cmd", "docs", "internal", "viz"} {
		require.NoError(t, fs.WalkDir(tree, dir, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || strings.Contains(name, "/testdata/") {
				return err
			}
			text, folder, kind := require.Value(fs.ReadFile(tree, name))(t), path.Dir(name), path.Ext(name)
			if (kind == ".go" || kind == ".js") && !isOthers(tree, folder) {
				changes[folder] = changes[folder] || bytes.Contains(text, []byte("// Change: "))
			}
			if !strings.HasSuffix(name, "_test.go") && !slices.Contains([]string{".gz", ".woff2", ".png"}, kind) {
				lines = append(lines, fmt.Sprintf("%s:%d", name, 1+bytes.Count(text, []byte("\n"))/2))
			}
			return nil
		}))
	}
	for folder, has := range changes {
		assert.True(t, has, "%s: end the package comment, or a script's first comment, with a line "+
			"\"Change: …\": what is free here, what changes with it, and what must stay", folder)
	}
	for i := range 30 {
		line := lines[i*len(lines)/30]
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			where := exec.Command("sh", root+"/internal/check/tools/where.sh", line)
			if i == 0 {
				where = exec.Command("make", "-s", "-C", root, "where", "LINE="+line)
			}
			out, err := where.CombinedOutput()
			has := func(part string) bool { return strings.Contains(string(out), part) }
			room := has("ROOM: ") && has("Change: ") || has("ROW ")
			assert.True(t, err == nil && room && has("RUN\n"), "%v, with\n%s", err, out)
		})
	}
}

// isOthers reports whether a folder is in a module of its own below that of compat: programs of others.
func isOthers(tree fs.FS, folder string) bool {
	for ; strings.HasPrefix(folder, "internal/check/compat/"); folder = path.Dir(folder) {
		if _, err := fs.Stat(tree, folder+"/go.mod"); err == nil {
			return true
		}
	}
	return false
}
