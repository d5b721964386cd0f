package etcdnode

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// ownDir names the environment variable by which this test binary, run again, becomes the owner of a temporary folder.
const ownDir = "ETCDNODE_TEST_OWN_DIR"

// own runs a node in a temporary folder below parent until it is killed or stdin is closed.
func own(parent string) {
	dir, _, err := Temporary(parent)
	if err == nil {
		_, err = Start(context.Background(), Options{Dir: dir})
	}
	if err != nil {
		os.Stdout.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	os.Stdout.WriteString("in " + dir + "\n")
	io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

func removeLeft(t *testing.T, parent string) {
	t.Helper()
	if err := RemoveLeft(parent); err != nil {
		t.Error(err)
	}
}

func exists(t *testing.T, name string) bool {
	t.Helper()
	_, err := os.Lstat(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

func TestTheFolderOfAKilledProgramIsRemoved(t *testing.T) {
	parent := t.TempDir()
	child := exec.Command(os.Args[0], "-test.run=^$")
	child.Env = append(os.Environ(), ownDir+"="+parent)
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { child.Process.Kill() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	dir, ok := strings.CutPrefix(strings.TrimSpace(line), "in ")
	if err != nil || !ok {
		t.Fatalf("the child says %q, %v", line, err)
	}
	removeLeft(t, parent)
	if !exists(t, filepath.Join(dir, "member")) {
		t.Error("the folder of a living program was removed")
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	child.Wait() // says that it was killed
	removeLeft(t, parent)
	if exists(t, dir) {
		t.Error("the folder of a dead program is still there")
	}
}

func TestOnlyMarkedFoldersOfDeadProgramsAreRemoved(t *testing.T) {
	parent, elsewhere := t.TempDir(), t.TempDir()
	dead := func(name, mark string) {
		t.Helper()
		dir, remove, err := Temporary(elsewhere)
		if err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(filepath.Join(dir, ownerMark()))
		if err := errors.Join(err, remove(), os.MkdirAll(name, 0o700), os.WriteFile(filepath.Join(name, mark), content, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	in := func(name string) string { return filepath.Join(parent, name) }
	dead(in("listwatch-1"), ownerMark())
	dead(in("listwatch-2"), "owner-4711.db")
	dead(in("another-3"), ownerMark())
	dead(filepath.Join(elsewhere, "target"), ownerMark())
	err := errors.Join(
		os.Mkdir(in("listwatch-4"), 0o700),
		os.Mkdir(in("listwatch-5"), 0o700), os.WriteFile(filepath.Join(in("listwatch-5"), ownerMark()), nil, 0o600),
		os.WriteFile(in("listwatch-6.lw.gz"), []byte("a recording"), 0o600),
		os.Symlink(filepath.Join(elsewhere, "target"), in("listwatch-7")),
	)
	if err != nil {
		t.Fatal(err)
	}
	living, remove, err := Temporary(parent)
	if err != nil {
		t.Fatal(err)
	}
	removeLeft(t, parent)
	if exists(t, in("listwatch-1")) {
		t.Error("the folder of a dead program is still there")
	}
	for name, why := range map[string]string{
		in("listwatch-2"): "of another user", in("another-3"): "with a name that is not ours", in("listwatch-4"): "without a mark",
		in("listwatch-5"): "whose program is about to lock it", in("listwatch-6.lw.gz"): "which is a recording", in("listwatch-7"): "which is a link",
		filepath.Join(elsewhere, "target"): "which a link points to", living: "of a living program",
	} {
		if !exists(t, name) {
			t.Errorf("removed one %s", why)
		}
	}
	if err := remove(); err != nil || exists(t, living) {
		t.Errorf("its own program does not remove it: %v", err)
	}
}
