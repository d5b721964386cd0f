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

// marker is the file in a working copy with its lab and its checkout.
const marker = ".lab"

// Start writes the checkout's committed tree into dir, and makes the lab's edit there. A folder without git, such as an
// unpacked archive, is copied as it is, hidden files left out. Start makes dir with its parents, or finds it empty; it
// writes over nothing. After an error dir may hold a part of the copy.
func Start(root, dir string, l Lab) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	dir = filepath.Clean(dir) // no/../full is full, even if there is no folder no
	if err := claim(dir); err != nil {
		return err
	}
	if err := copyTree(root, dir); err != nil {
		return err
	}
	if err := l.prepare(dir); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, marker), []byte(l.ID+"\n"+root+"\n"), 0o644)
}

// In returns the lab of which dir is a working copy, and the checkout it was made from; ok is false if it is no lab's.
func In(dir string) (l Lab, root string, ok bool) {
	text, err := os.ReadFile(filepath.Join(dir, marker))
	if err != nil {
		return Lab{}, "", false
	}
	id, root, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	l, err = ByID(id)
	return l, root, err == nil
}

// claim makes the folder dir. The error is that dir exists and is not empty.
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

// copyTree copies the committed tree of root into dir, or all its files if it is no git checkout. It overwrites no
// file.
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

// visible is a file tree without hidden and irregular files, and without the folder that it is copied to.
type visible struct {
	fs.FS
	to fs.FileInfo
}

// ReadDir implements [fs.ReadDirFS].
func (v visible) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(v.FS, name)
	return slices.DeleteFunc(entries, func(entry fs.DirEntry) bool {
		info, err := entry.Info()
		return err != nil || strings.HasPrefix(entry.Name(), ".") || os.SameFile(info, v.to) ||
			!info.IsDir() && !info.Mode().IsRegular()
	}), err
}

// prepare changes a copy of the sources into the lab's working copy. The lab's own file loses its edit, or its answer,
// there: it lies in the folder that the attendee works in.
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
