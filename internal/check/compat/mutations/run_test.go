package mutations

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"listwatch/internal/text/source"
)

// mutation is one place in the program, what is written there instead, and the test that must fail then.
type mutation struct {
	dir    string // below the root
	symbol string // "function" or "Type.method"
	old    string // found once in the symbol
	new    string
	test   string
}

const root = "../../../.."

// mutated returns the path of the file in which the symbol is, and the text with the mutation.
func (m mutation) mutated() (file string, text []byte, err error) {
	tree, err := source.Parse(os.DirFS(filepath.Join(root, m.dir)))
	if err != nil {
		return "", nil, err
	}
	declared, err := tree.In(".").Find(m.symbol, "")
	if err != nil {
		return "", nil, err
	}
	from, to, ok := declared.Body()
	if !ok {
		return "", nil, fmt.Errorf("%s has no body", m.symbol)
	}
	text = declared.File.Src
	if n := bytes.Count(text[from:to], []byte(m.old)); n != 1 {
		return "", nil, fmt.Errorf("%s holds %q %d times, want once", m.symbol, m.old, n)
	}
	body := bytes.Replace(text[from:to], []byte(m.old), []byte(m.new), 1)
	text, err = format.Source(bytes.Join([][]byte{text[:from], body, text[to:]}, nil))
	return filepath.Join(root, m.dir, declared.File.Path), text, err
}

// caught runs the test with the mutated file in the place of the other.
func (m mutation) caught(t *testing.T, file string, text []byte) {
	file, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	other, overlay := filepath.Join(t.TempDir(), "mutated.go"), filepath.Join(t.TempDir(), "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{file: other}})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{other: text, overlay: replace} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "test", "-vet=off", "-timeout=5m", "-overlay="+overlay, "-run=^"+m.test+"$", "./"+m.dir)
	cmd.Dir = root
	said, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(said), "--- FAIL: "+m.test) {
		t.Errorf("%q in the place of %q: %s does not fail: %v\n%s", m.new, m.old, m.test, err, said)
	}
}

func TestEveryMutationIsCaught(t *testing.T) {
	for _, m := range mutations {
		t.Run(m.symbol, func(t *testing.T) {
			file, text, err := m.mutated()
			if err != nil {
				t.Fatal(err)
			}
			declaration := "func " + m.test + "("
			if exec.Command("grep", "-rqF", "--include=*_test.go", declaration, filepath.Join(root, m.dir)).
				Run() != nil {
				t.Fatalf("%s has no test %s", m.dir, m.test)
			}
			if os.Getenv("FULL") != "" {
				m.caught(t, file, text)
			}
		})
	}
}
