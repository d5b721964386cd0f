package etcdnode

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// childRole names the environment variable by which this test binary, run again, becomes another process: a role and its
// argument. A lock that dies with its owner needs one.
const childRole = "ETCDNODE_TEST_CHILD"

// roles run in the child. Their error is what it prints; it ends with status 1.
var roles = map[string]func(argument string) error{"hold": hold, "own": own}

func TestMain(m *testing.M) {
	role, argument, ok := strings.Cut(os.Getenv(childRole), " ")
	if !ok {
		goleak.VerifyTestMain(m)
		return
	}
	if err := roles[role](argument); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// hold runs a node until stdin is closed.
func hold(dir string) error {
	node, err := Start(context.Background(), Options{Dir: dir})
	if err != nil {
		return err
	}
	fmt.Println("in " + dir)
	io.Copy(io.Discard, os.Stdin)
	return node.Close()
}

// own runs a node in a temporary folder below parent until it is killed.
func own(parent string) error {
	dir, _, err := Temporary(parent)
	if err != nil {
		return err
	}
	return hold(dir)
}

func childOf(t *testing.T, role, argument string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	child := exec.CommandContext(ctx, os.Args[0])
	child.Env = append(os.Environ(), childRole+"="+role+" "+argument)
	return child
}

// started returns a child once it has said in which folder it works.
func started(t *testing.T, child *exec.Cmd) (dir string, stdin io.Closer) {
	t.Helper()
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	dir, ok := strings.CutPrefix(strings.TrimSpace(line), "in ")
	if err != nil || !ok {
		t.Fatalf("the child says %q, %v", line, err)
	}
	return dir, stdin
}

func TestFolderInUseByAnotherProcessIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	other := childOf(t, "hold", dir)
	_, stdin := started(t, other)
	wantInUse(t, dir)
	stdin.Close()
	if err := other.Wait(); err != nil {
		t.Fatal(err)
	}
	start(t, dir)
}

func TestTheFolderOfAKilledProgramIsRemoved(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	child := childOf(t, "own", parent)
	dir, stdin := started(t, child)
	defer stdin.Close()
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

func removeLeft(t *testing.T, parent string) {
	t.Helper()
	if err := RemoveLeft(parent); err != nil {
		t.Error(err)
	}
}

func exists(t *testing.T, name string) bool {
	t.Helper()
	_, err := os.Lstat(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

func TestOnlyMarkedFoldersOfDeadProgramsAreRemoved(t *testing.T) {
	t.Parallel()
	parent, elsewhere := t.TempDir(), t.TempDir()
	dead := func(name, mark string) {
		t.Helper()
		dir, remove, err := Temporary(elsewhere)
		if err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(filepath.Join(dir, ownerMark()))
		err = errors.Join(err, remove(), os.MkdirAll(name, 0o700), os.WriteFile(filepath.Join(name, mark), content, 0o600))
		if err != nil {
			t.Fatal(err)
		}
	}
	in := func(n int) string { return filepath.Join(parent, "listwatch-"+strconv.Itoa(n)) }
	target, another := filepath.Join(elsewhere, "target"), filepath.Join(parent, "another")
	dead(in(1), ownerMark())
	dead(in(2), "owner-4711.db")
	dead(another, ownerMark())
	dead(target, ownerMark())
	living, remove, err := Temporary(parent)
	err = errors.Join(err,
		os.Mkdir(in(4), 0o700),
		os.Mkdir(in(5), 0o700), os.WriteFile(filepath.Join(in(5), ownerMark()), nil, 0o600),
		os.WriteFile(in(6), []byte("a recording"), 0o600),
		os.Symlink(target, in(7)),
	)
	if err != nil {
		t.Fatal(err)
	}
	removeLeft(t, parent)
	if exists(t, in(1)) {
		t.Error("the folder of a dead program is still there")
	}
	for name, why := range map[string]string{
		in(2): "of another user", another: "with a name that is not ours", in(4): "without a mark",
		in(5): "whose program is about to lock it", in(6): "which is a recording", in(7): "which is a link",
		target: "which a link points to", living: "of a living program",
	} {
		if !exists(t, name) {
			t.Errorf("removed one %s", why)
		}
	}
	if err := remove(); err != nil || exists(t, living) {
		t.Errorf("its own program does not remove it: %v", err)
	}
}
