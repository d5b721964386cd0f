package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

// vizBinary and kubectlBinary return the path of a program built from this tree. The first test that asks builds it.
var (
	vizBinary     = sync.OnceValues(func() (string, error) { return build("viz", "../../..", "./cmd/viz") })
	kubectlBinary = sync.OnceValues(func() (string, error) { return build("kubectl", "..", "./cmd/kubectl") })
)

// build builds pkg in the module at dir. The binary is kept between runs: go build leaves one that is up to date alone.
func build(name, dir, pkg string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir() // HOME is not set
	}
	folder := filepath.Join(cache, "listwatch", "compat")
	args := []string{"build"}
	if raceEnabled && name == "viz" {
		folder = filepath.Join(folder, "race")
		args = append(args, "-race")
	}
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	binary := filepath.Join(folder, name)
	cmd := exec.Command("go", append(args, "-o", binary, pkg)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return binary, nil
}

// built returns what build returned, or fails the test.
func built(t testing.TB, binary func() (string, error)) string {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
