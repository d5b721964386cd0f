package policy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// templModfile has go commands choose the pinned generator of templates.
const templModfile = "-modfile=internal/check/tools/go.mod"

// run runs the go command in the repository and returns what it prints.
func run(t *testing.T, args ...string) string {
	t.Helper()
	command := exec.Command("go", args...)
	command.Dir = root
	out, err := command.CombinedOutput()
	require.Equal(t, err, nil, "go %q: %v\n%s", args, err, out)
	return strings.TrimSpace(string(out))
}

// TestGeneratedFilesAreFresh generates all templates in a copy, with the pinned tool.
func TestGeneratedFilesAreFresh(t *testing.T) {
	const version = "{{.Version}}"
	library, tool := run(t, "list", "-m", "-f", version, "github.com/a-h/templ"), run(t, "list", templModfile, "-m",
		"-f", version, "github.com/a-h/templ")
	assert.Equal(t, library, tool, "templ is %s in go.mod, and its generator %s", library, tool)
	copied := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(copied, "viz"), os.DirFS(filepath.Join(root, "viz"))))
	gomod := []byte(read(t, filepath.Join(root, "go.mod"))) // the paths in generated files begin at it
	require.NoError(t, os.WriteFile(filepath.Join(copied, "go.mod"), gomod, 0o600))
	run(t, "tool", templModfile, "templ", "generate", "-path", copied)
	templates, err := filepath.Glob(filepath.Join(root, "viz", "*", "*.templ"))
	require.True(t, err == nil && len(templates) != 0, "got templates %v, %v", templates, err)
	generated, err := filepath.Glob(filepath.Join(root, "viz", "*", "*_templ.go"))
	assert.True(t, err == nil && len(generated) == len(templates),
		"got %d generated files of %d templates, %v", len(generated), len(templates), err)
	for _, template := range templates {
		file := strings.TrimSuffix(template, ".templ") + "_templ.go"
		relative, err := filepath.Rel(root, file)
		require.NoError(t, err)
		assert.Equal(t, read(t, file), read(t, filepath.Join(copied, relative)),
			"%s is stale: run make generate and commit the result", file)
	}
}
