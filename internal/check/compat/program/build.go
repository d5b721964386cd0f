package program

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"

	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
)

// The first test of a process that asks for a program has it built.
var (
	vizBinary     = sync.OnceValues(func() (string, error) { return build("../../../../cmd/viz", ".", bubble.Race) })
	kubectlBinary = sync.OnceValues(func() (string, error) { return build("../cmd/kubectl", ".", false) })
)

// Build builds the program and the kubectl of today now, and not when the first test asks for them.
func Build() error {
	_, err := vizBinary()
	_, other := kubectlBinary()
	return errors.Join(err, other)
}

// folder holds the binaries, in the checkout; like the sources it is seen from the folder of a test.
const folder = "../../../../bin/compat"

// BuildOf builds the program of which source is the package, with the go.mod in dir, and returns the path of the
// binary.
func BuildOf(tb testing.TB, dir, source string) string {
	tb.Helper()
	return require.Value(build(dir, source, false))(tb)
}

// build is BuildOf, for a race build, too. go build leaves one that is up to date alone.
func build(dir, source string, race bool) (string, error) {
	name := path.Base(source)
	if strings.HasPrefix(source, ".") {
		name = path.Base(dir)
	}
	folder, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	args := []string{"build"}
	if race {
		folder = filepath.Join(folder, "race")
		args = append(args, "-race")
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	// The tests of several packages run at once, and want the same file.
	lock, err := fileutil.LockFile(filepath.Join(folder, name+".lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return "", fmt.Errorf("lock the binary of %s: %w", name, err)
	}
	defer lock.Close()
	binary := filepath.Join(folder, name)
	cmd := exec.Command("go", append(args, "-o", binary, source)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return binary, nil
}
