package lab

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// tinyRoot returns a checkout without git, and a lab. The checkout has one source file, and the lab's own file.
func tinyRoot(t *testing.T) (string, Lab) {
	t.Helper()
	root := t.TempDir()
	write(t, filepath.Join(root, "chapters", "01-storage", "key.go"),
		"package storage\n\nfunc key() string { return \"right\" }\n")
	write(t, filepath.Join(root, "chapters", "01-storage", "labs", "tiny.txtar"), "title: A lab\n-- body: key "+
		"--\nreturn 1\n")
	return root, Lab{ID: "tiny", Kind: Find, Chapter: "01-storage", Symbol: "key", New: "return \"wrong\""}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
}

// TestStartTouchesNothingThatItDidNotMake starts a lab where files are in the way: Start must fail and change no byte.
func TestStartTouchesNothingThatItDidNotMake(t *testing.T) {
	for name, each := range map[string]struct{ dir, want string }{
		"a file":                     {"thesis.txt", "not a directory"},
		"below a file":               {"thesis.txt/lab", "thesis.txt"},
		"a link to a file":           {"link", "not a directory"},
		"a link to nothing":          {"dangling", "file exists"},
		"a full folder":              {"full", "is not empty"},
		"a link to a full folder":    {"shortcut", "is not empty"},
		"a full folder, by a detour": {"no/../full", "is not empty"},
	} {
		t.Run(name, func(t *testing.T) {
			root, lab := tinyRoot(t)
			home := t.TempDir()
			write(t, filepath.Join(home, "thesis.txt"), "years of work")
			write(t, filepath.Join(home, "full", "chapters", "01-storage", "key.go"), "mine")
			for link, to := range map[string]string{"link": "thesis.txt", "dangling": "gone", "shortcut": "full"} {
				require.NoError(t, os.Symlink(to, filepath.Join(home, link)))
			}
			before := contents(t, home)
			err := Start(root, home+"/"+each.dir, lab)
			assert.True(t, err != nil && strings.Contains(err.Error(), each.want),
				"got %v, want a refusal with %q", err, each.want)
			assert.Equal(t, before, contents(t, home), "before\n%s\nafter\n", before)
		})
	}
}

// contents returns the contents of the files below a folder, and the targets of its links.
func contents(t *testing.T, dir string) string {
	t.Helper()
	var list strings.Builder
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		list.WriteString(name + " ")
		switch {
		case entry.Type()&fs.ModeSymlink != 0:
			to, err := os.Readlink(name)
			list.WriteString("-> " + to + "\n")
			return err
		case entry.Type().IsRegular():
			text, err := os.ReadFile(name)
			list.WriteString(string(text) + "\n")
			return err
		}
		list.WriteString("\n")
		return nil
	})
	require.NoError(t, err)
	return list.String()
}

func TestStartWritesIntoAnEmptyFolderOrMakesOne(t *testing.T) {
	for name, dir := range map[string]string{"an empty folder": ".", "a new one": "deep/down/lab",
		"inside the checkout": "inside"} {
		t.Run(name, func(t *testing.T) {
			root, lab := tinyRoot(t)
			at := filepath.Join(t.TempDir(), dir)
			if dir == "inside" {
				at = filepath.Join(root, dir)
			}
			require.NoError(t, Start(root, at, lab))
			text, err := os.ReadFile(filepath.Join(at, "chapters", "01-storage", "key.go"))
			assert.True(t, err == nil && strings.Contains(string(text), "wrong"), "got %s, %v", text, err)
			text, err = os.ReadFile(filepath.Join(at, "chapters", "01-storage", "labs", "tiny.txtar"))
			assert.True(t, err == nil && string(text) == "title: A lab\n",
				"the copy's file of the lab is %q, %v; want no edit", text, err)
			here, _, _ := In(at)
			assert.Equal(t, "", here.ID, "the id of a lab that is not in the list")
			_, err = os.Stat(filepath.Join(at, "inside"))
			assert.True(t, errors.Is(err, fs.ErrNotExist), "the working copy holds a copy of itself: %v", err)
		})
	}
}

// tinyCopy returns a working copy with one package, which has one test with this body.
func tinyCopy(t *testing.T, body string) (string, Lab) {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module tiny\n\ngo 1.26.0\n")
	write(t, filepath.Join(dir, "chapters", "01-storage", "x_test.go"),
		"package storage\n\nimport (\n\t\"testing\"\n\t\"testing/synctest\"\n)\n\n"+
			"var bubble = synctest.Test\n\nfunc TestX(t *testing.T) {\n"+body+"\n}\n")
	return dir, Lab{ID: "tiny", Kind: Find, Chapter: "01-storage", Promise: "X holds.", Tests: []string{"TestX"}}
}

// TestACheckSaysWhatItFound covers solved, wrong and unfinished repairs, and those that do not compile.
func TestACheckSaysWhatItFound(t *testing.T) {
	for name, each := range map[string]struct {
		body   string
		solved bool
		want   []string
	}{
		"it fails and leaves a goroutine in its bubble": {
			`bubble(t, func(t *testing.T) { go func() { select {} }(); t.Fatal("got 1, want 2") })`, false,
			[]string{"--- FAIL: TestX ", "got 1, want 2\nSee all of it: "}},
		"it leaves a goroutine in its bubble": {`bubble(t, func(*testing.T) { go func() { select {} }() })`, false,
			[]string{"--- FAIL: TestX ", "ends before the goroutines"}},
		"the promise holds": {"", true, []string{"passed: go test ./chapters/01-storage -run 'TestX'"}},
		"it does not": {`t.Error("got 1, want 2")`, false, []string{"Not yet. The promise that does not " +
			"hold: X holds.", "--- FAIL: TestX ", "got 1, want 2"}},
		"it panics": {`panic("send on closed channel")`, false, []string{"Not yet.",
			"send on closed channel"}},
		"it panics elsewhere": {`go func() { panic("send on closed channel") }(); select {}`, false,
			[]string{"Not yet.", "send on closed channel"}},
		"only a part of it": {`t.Run("b", func(t *testing.T) { t.Error("no b") })`, false, []string{
			"--- FAIL: TestX/b ",
			"no b"}},
		"it does not compile": {`undefined()`, false, []string{"It does not compile yet.", "undefined: undefined"}},
		"it has not finished": {`<-make(chan int)`, false,
			[]string{"The check has not finished: TestX still runs after 1s.", "run it again"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir, lab := tinyCopy(t, each.body)
			var progress strings.Builder
			verdict, err := lab.check(t.Context(), dir, time.Second, &progress)
			says := strings.Join(verdict.Says, "\n")
			assert.True(t, err == nil && verdict.Solved == each.solved,
				"solved %v, %v; want %v", verdict.Solved, err, each.solved)
			for _, want := range each.want {
				assert.True(t, strings.Contains(says, want), "it does not say %q:\n%s", want, says)
			}
			assert.True(t, !strings.Contains(says, "goroutine ") && len(verdict.Says) <= maxLines+5,
				"want a few lines and no stacks:\n%s", says)
			assert.Equal(t, "building the tests of chapters/01-storage …\n", progress.String(), "it says")
		})
	}
}
