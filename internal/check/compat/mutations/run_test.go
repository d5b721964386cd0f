package mutations

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/play/lab"
	"listwatch/internal/text/source"
)

// table has the rows. A row's first line names a folder, the symbol or script to change, and the test that must then
// fail. The next two lines are a text that occurs once in that symbol, and its replacement.
//
//go:embed table.txt
var table string

// mutation is a mistake that a change could make, with the test that must find it.
type mutation struct {
	dir      string // below the root
	symbol   string // "function" or "Type.method", or a script: "handovers.js"
	test     string // a pattern for -run
	old, new string // old occurs once in the symbol
	l        *lab.Lab
}

// mutations returns the table's rows, and the labs that break a chapter's source in place.
func mutations(t *testing.T) (all []mutation) {
	for row := range strings.SplitSeq(strings.TrimSpace(table), "\n\n") {
		lines := strings.SplitN(row, "\n", 3)
		require.True(t, len(lines) == 3 && strings.HasPrefix(lines[1], "- ") && strings.HasPrefix(lines[2], "+"),
			"a row is three lines: %s", row)
		var m mutation
		require.NoError(t, assert.ErrorOf(fmt.Sscan(lines[0], &m.dir, &m.symbol, &m.test)), row)
		m.test = "^" + m.test + "$"
		m.old, m.new = lines[1][2:], strings.TrimPrefix(lines[2][1:], " ")
		all = append(all, m)
	}
	for _, l := range lab.All() {
		if l.Kind != lab.Predict && l.Dir == "" {
			all = append(all, mutation{dir: "chapters/" + l.Chapter, symbol: l.ID, test: strings.Join(l.Tests, "|"),
				l: &l})
		}
	}
	return all
}

const root = "../../../.."

// mutated returns the mutated file's path, below the root, and the file's text with the mutation.
func (m mutation) mutated() (file string, text []byte, err error) {
	if m.l != nil {
		file, _, text, err = m.l.Break(os.DirFS(root))
		return file, text, err
	}
	from, to := 0, 0
	if filepath.Ext(m.symbol) == ".js" {
		file = filepath.Join(m.dir, m.symbol)
		text, err = os.ReadFile(filepath.Join(root, file))
		to = len(text)
	} else {
		file, text, from, to, err = m.find()
	}
	if err != nil {
		return "", nil, err
	}
	if n := bytes.Count(text[from:to], []byte(m.old)); n != 1 {
		return "", nil, fmt.Errorf("%s holds %q %d times, want once", m.symbol, m.old, n)
	}
	body := bytes.Replace(text[from:to], []byte(m.old), []byte(m.new), 1)
	text = bytes.Join([][]byte{text[:from], body, text[to:]}, nil)
	if filepath.Ext(file) == ".go" {
		text, err = format.Source(text)
	}
	return file, text, err
}

// find returns the file that declares the symbol, its text, and the range [from, to) of the symbol's body.
func (m mutation) find() (file string, text []byte, from, to int, err error) {
	tree, err := source.Parse(os.DirFS(filepath.Join(root, m.dir)))
	if err != nil {
		return "", nil, 0, 0, err
	}
	declared, err := tree.In(".").Find(m.symbol, "")
	if err != nil {
		return "", nil, 0, 0, err
	}
	from, to, ok := declared.Body()
	if !ok {
		err = fmt.Errorf("%s has no body", m.symbol)
	}
	return filepath.Join(m.dir, declared.File.Path), declared.File.Src, from, to, err
}

// caught checks that the test fails with the mutated file in place of the original. For Go, the compiler gets an
// overlay. For scripts, which the test reads itself, caught changes a copy of git's files.
func (m mutation) caught(t *testing.T, file string, text []byte) {
	dir, overlay := t.TempDir(), ""
	if filepath.Ext(file) == ".go" {
		other := filepath.Join(dir, "mutated.go")
		replace, err := json.Marshal(map[string]any{"Replace": map[string]string{absolute(t, file): other}})
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(other, text, 0o600))
		overlay = filepath.Join(dir, "overlay.json")
		require.NoError(t, os.WriteFile(overlay, replace, 0o600))
		dir = root
	} else {
		copied := exec.Command("git", "checkout-index", "--all", "--prefix="+dir+"/")
		copied.Dir = root
		require.NoError(t, copied.Run())
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), text, 0o600))
	}
	cmd := exec.Command("go", "test", "-vet=off", "-timeout=5m", "-overlay="+overlay, "-run="+m.test, "./"+m.dir)
	cmd.Dir = dir
	said, err := cmd.CombinedOutput()
	assert.True(t, err != nil && strings.Contains(string(said), "--- FAIL: "),
		"%q in the place of %q: %s does not fail: %v\n%s", m.new, m.old, m.test, err, said)
}

func absolute(t *testing.T, file string) string {
	return require.Value(filepath.Abs(filepath.Join(root, file)))(t)
}

func TestEveryMutationIsCaught(t *testing.T) {
	all := mutations(t)
	require.True(t, len(all) >= 60, "only %d mutations", len(all))
	for _, m := range all {
		t.Run(m.symbol, func(t *testing.T) {
			file, text, err := m.mutated()
			require.NoError(t, err)
			declared := "^func \\w*(" + strings.NewReplacer("^", "", "$", "\\(").Replace(m.test) + ")"
			grep := exec.Command("grep", "-rqE", "--include=*_test.go", declared, absolute(t, m.dir))
			assert.NoError(t, grep.Run(), "%s has no test %s", m.dir, m.test)
			if os.Getenv("FULL") != "" {
				m.caught(t, file, text)
			}
		})
	}
}
