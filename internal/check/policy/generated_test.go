package policy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// templModfile has go commands choose the pinned generator of templates.
const templModfile = "-modfile=internal/check/tools/go.mod"

// run runs the go command in the repository and returns what it prints.
func run(t *testing.T, args ...string) string {
	t.Helper()
	command := exec.Command("go", args...)
	command.Dir = root
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("go %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// TestGeneratedFilesAreFresh generates all templates in a copy, with the pinned tool.
func TestGeneratedFilesAreFresh(t *testing.T) {
	const version = "{{.Version}}"
	library, tool := run(t, "list", "-m", "-f", version, "github.com/a-h/templ"), run(t, "list", templModfile, "-m",
		"-f", version, "github.com/a-h/templ")
	if library != tool {
		t.Errorf("templ is %s in go.mod, and its generator %s", library, tool)
	}
	copied := t.TempDir()
	if err := os.CopyFS(filepath.Join(copied, "viz"), os.DirFS(filepath.Join(root, "viz"))); err != nil {
		t.Fatal(err)
	}
	gomod := []byte(read(t, filepath.Join(root, "go.mod"))) // the paths in generated files begin at it
	if err := os.WriteFile(filepath.Join(copied, "go.mod"), gomod, 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "tool", templModfile, "templ", "generate", "-path", copied)
	templates, err := filepath.Glob(filepath.Join(root, "viz", "*", "*.templ"))
	if err != nil || len(templates) == 0 {
		t.Fatalf("got templates %v, %v", templates, err)
	}
	generated, err := filepath.Glob(filepath.Join(root, "viz", "*", "*_templ.go"))
	if err != nil || len(generated) != len(templates) {
		t.Errorf("got %d generated files of %d templates, %v", len(generated), len(templates), err)
	}
	for _, template := range templates {
		file := strings.TrimSuffix(template, ".templ") + "_templ.go"
		relative, err := filepath.Rel(root, file)
		if err != nil {
			t.Fatal(err)
		}
		if read(t, file) != read(t, filepath.Join(copied, relative)) {
			t.Errorf("%s is stale: run make generate and commit the result", file)
		}
	}
}
