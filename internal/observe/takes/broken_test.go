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

// TestMakeBroken finds the lab of every take of a first try, and the lab's broken version of the code. With -update it
// records a run of that version and keeps the take; with FULL set, it records a run and drops the take.
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

// record makes a take with a program in which the text replaces the contents of one file. asBuilt is as for TestMake.
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
