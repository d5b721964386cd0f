package lab

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// tinyRoot returns a checkout that git does not know, with one file in the chapter of the lab that is returned, too.
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

// TestStartTouchesNothingThatItDidNotMake names places that hold something, and looks at every byte there afterwards.
func TestStartTouchesNothingThatItDidNotMake(t *testing.T) {
	for name, each := range map[string]struct{ dir, want string }{
		"a file":                     {"thesis.txt", "is a file"},
		"below a file":               {"thesis.txt/lab", "thesis.txt"},
		"a link to a file":           {"link", "is a link"},
		"a link to nothing":          {"dangling", "is a link"},
		"a link to an empty folder":  {"shortcut", "is a link"},
		"a full folder":              {"full", "is not empty"},
		"a full folder, by a detour": {"no/../full", "is not empty"},
	} {
		t.Run(name, func(t *testing.T) {
			root, lab := tinyRoot(t)
			home := t.TempDir()
			write(t, filepath.Join(home, "thesis.txt"), "years of work")
			write(t, filepath.Join(home, "full", "chapters", "01-storage", "key.go"), "mine")
			require.NoError(t, os.Mkdir(filepath.Join(home, "empty"), 0o755))
			for link, to := range map[string]string{"link": "thesis.txt", "dangling": "gone", "shortcut": "empty"} {
				require.NoError(t, os.Symlink(to, filepath.Join(home, link)))
			}
			before := contents(t, home)
			err := Start(root, home+"/"+each.dir, lab)
			assert.True(t, err != nil && strings.Contains(err.Error(), each.want),
				"got %v, want a refusal with %q", err, each.want)
			assert.Equal(t, contents(t, home), before, "before\n%s\nafter\n", before)
		})
	}
}

// contents lists the files below a folder, with what they hold or where they lead.
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
				"the copy says of its lab %q, %v; want no edit", text, err)
			here, _, _ := In(at)
			assert.Equal(t, here.ID, "", "a lab that is not in the list is")
			if _, err := os.Stat(filepath.Join(at, "inside")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the working copy holds a copy of itself: %v", err)
			}
		})
	}
}

// TestAStartThatFailsRemovesWhatItMade: an empty folder was there before, and stays.
func TestAStartThatFailsRemovesWhatItMade(t *testing.T) {
	root, lab := tinyRoot(t)
	lab.Symbol = "gone"
	home := t.TempDir()
	write(t, filepath.Join(home, "beside"), "mine")
	require.NoError(t, os.Mkdir(filepath.Join(home, "empty"), 0o755))
	before := contents(t, home)
	for _, dir := range []string{"empty", "new"} {
		if err := Start(root, filepath.Join(home, dir), lab); err == nil || !strings.Contains(err.Error(), "gone") {
			t.Errorf("%s: got %v, want the edit without a place", dir, err)
		}
	}
	assert.Equal(t, contents(t, home), before, "before\n%s\nafter\n", before)
}
