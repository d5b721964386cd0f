package lab

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"
)

// marker is the file of a working copy that names its lab and its checkout.
const marker = ".lab"

// Start writes the checkout's committed tree into dir, makes the lab's edit (for a Predict: the answer file), removes
// the solution from the lab's file there, and adds the marker. A checkout without git gives its regular files that are
// not hidden. Start creates dir, which must be empty if it exists. After an error dir may contain part of a copy.
func Start(root, dir string, l Lab) error { return start(root, dir, l.ID, l.prepare) }

// start does the work of Start and StartPath: id goes into the marker, and prepare changes the copied sources.
func start(root, dir, id string, prepare func(dir string) error) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	dir = filepath.Clean(dir) // "no/../full" is "full", even if there is no folder "no"
	if err := claim(dir); err != nil {
		return err
	}
	if err := copyTree(root, dir); err != nil {
		return err
	}
	if err := prepare(dir); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, marker), []byte(id+"\n"+root+"\n"), 0o644)
}

// In returns the lab of the working copy dir, and the checkout that the copy was made from. ok is false if dir is no
// lab's working copy.
func In(dir string) (l Lab, root string, ok bool) {
	id, root := marked(dir)
	l, err := ByID(id)
	return l, root, err == nil
}

// marked returns the lab's id and the checkout from a working copy's marker, or empty strings if dir has none.
func marked(dir string) (id, root string) {
	text, _ := os.ReadFile(filepath.Join(dir, marker))
	id, root, _ = strings.Cut(strings.TrimSpace(string(text)), "\n")
	return id, root
}

// claim creates the folder dir. It returns an error if dir exists and is not empty.
func claim(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if len(entries) > 0 {
		return fmt.Errorf("%s is not empty: continue there, name another folder, or remove it", dir)
	}
	return err
}

// copyTree copies the committed tree of root into dir, or all visible files if root is not a git checkout. It
// overwrites nothing.
func copyTree(root, dir string) error {
	if archive, err := exec.Command("git", "-C", root, "archive", "--format=zip", "HEAD").Output(); err == nil {
		tree, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
		if err != nil {
			return err
		}
		return os.CopyFS(dir, tree)
	}
	to, err := os.Stat(dir)
	if err != nil {
		return err
	}
	return os.CopyFS(dir, visible{os.DirFS(root), to})
}

// visible is a file tree without its hidden and irregular files, and without the folder to, which receives the copy.
type visible struct {
	fs.FS
	to fs.FileInfo
}

func (v visible) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(v.FS, name)
	return slices.DeleteFunc(entries, func(entry fs.DirEntry) bool {
		info, err := entry.Info()
		return err != nil || strings.HasPrefix(entry.Name(), ".") || os.SameFile(info, v.to) ||
			!info.IsDir() && !info.Mode().IsRegular()
	}), err
}

// prepare turns a copy of the sources into the lab's working copy. It removes the edit or the answer from the lab's own
// file, where the attendee would find it.
func (l Lab) prepare(dir string) error {
	name, text, err := answerFile, []byte(l.form()), error(nil)
	if l.Kind != Predict {
		name, _, text, err = l.Break(os.DirFS(dir))
	}
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), text, 0o644); err != nil {
		return err
	}
	file := filepath.Join(dir, "chapters", l.Chapter, "labs", l.ID+".txtar")
	if text, err = os.ReadFile(file); err != nil {
		return err
	}
	return os.WriteFile(file, txtar.Parse(text).Comment, 0o644)
}
