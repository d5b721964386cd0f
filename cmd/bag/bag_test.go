package bag

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// script runs bag.sh in dir and returns what it prints.
func script(t *testing.T, dir string, args ...string) (string, error) {
	file := require.Value(filepath.Abs("bag.sh"))(t)
	command := exec.CommandContext(t.Context(), "sh", append([]string{file}, args...)...)
	command.Dir = dir
	said, err := command.CombinedOutput()
	return string(said), err
}

func TestEveryModuleThatIsHandedOutBringsItsLicence(t *testing.T) {
	for args, theirs := range map[[2]string]string{{"windows/amd64", "viz"}: "go.etcd.io/etcd/server/v3@",
		{"js/wasm", "machine"}: "go.etcd.io/etcd/client/pkg/v3@"} {
		text, err := script(t, "../..", "licences", args[0], args[1])
		require.NoError(t, err, "%s", text)
		for _, want := range []string{theirs, "k8s.io/apimachinery@", "go1.", "Apache License",
			"Redistribution and use"} {
			assert.True(t, strings.Contains(text, want), "there is no %q", want)
		}
		assert.False(t, strings.Contains(text, "listwatch@"), "our own licence is listed as another's")
	}
}

// Here, beside its sources, the script finds nothing to pack.
func TestNothingIsLeftOfWhatFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bag.zip")
	said, err := script(t, ".", "pack", file)
	require.True(t, err != nil, "there is a bag: %s", said)
	_, err = os.Stat(file)
	assert.True(t, errors.Is(err, fs.ErrNotExist), "of the file there is left: %v", err)
}

func TestAWrongCommandLineIsRefused(t *testing.T) {
	for _, args := range [][]string{nil, {"pack"}, {"burn", "x"}, {"licences", "js/wasm"}, {"-x", "pack", "y"}} {
		said, err := script(t, "../..", args...)
		assert.True(t, err != nil && strings.Contains(said, "usage: bag.sh"), "%q: got %v, %s", args, err, said)
	}
}
