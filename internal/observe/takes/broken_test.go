package takes_test

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"listwatch/internal/check/require"
	"listwatch/internal/observe/takes"
	"listwatch/internal/play/lab"
)

// TestMakeBroken finds the lab of every take of a first try, and its broken version of the code. With -update it
// records that version and keeps the take. With FULL set, it only records the version.
func TestMakeBroken(t *testing.T) {
	root := require.Value(filepath.Abs("../../.."))(t)
	update := flag.Lookup("update").Value.String() == "true"
	for _, take := range takes.Broken {
		t.Run(take.Name, func(t *testing.T) {
			each := require.Value(lab.ByID(take.Lab()))(t)
			name, _, broken, err := each.Break(os.DirFS(root))
			require.NoError(t, err)
			out := filepath.Join(t.TempDir(), "out")
			switch {
			case update:
				out = take.Name + takes.Suffix
			case os.Getenv("FULL") == "":
				return
			}
			record(t, filepath.Join(root, name), broken, take.Name+"="+out)
		})
	}
}

// record makes a take with a program in which text replaces the contents of one file.
func record(t *testing.T, file string, text []byte, asBuilt string) {
	source, overlay := filepath.Join(t.TempDir(), "file.go"), filepath.Join(t.TempDir(), "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{file: source}})
	err = errors.Join(err, os.WriteFile(source, text, 0o644), os.WriteFile(overlay, replace, 0o644))
	require.NoError(t, err)
	run := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-count=1", "-overlay", overlay, ".",
		"-run", "^TestMake$", "-as-built", asBuilt)
	said, err := run.CombinedOutput()
	require.True(t, err == nil, "%v: %v\n%s", run.Args, err, said)
}
