package lab

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// marker is the file in a working copy that says which lab it is, and from which checkout it was made.
const marker = ".lab"

// Start writes the checkout's committed tree into dir, and makes the lab's edits there. A folder without git, such as an
// unpacked archive, is copied as it is, hidden files left out. Start uses only an empty folder or one that it makes, with
// its parents. It refuses a file, a link and a full folder, and after any error it removes what it has written into dir.
func Start(root, dir string, lab Lab) (err error) {
	if root, err = filepath.Abs(root); err != nil {
		return err
	}
	if dir, err = filepath.Abs(dir); err != nil { // cleaned, too: no/../full is full, even if there is no folder no
		return err
	}
	made, err := claim(dir)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, release(dir, made))
		}
	}()
	if err := writeTree(root, dir); err != nil {
		return err
	}
	changed, err := Apply(os.DirFS(dir), lab.Edits)
	if err != nil {
		return err
	}
	for name, src := range changed {
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), src, 0o644); err != nil {
			return err
		}
	}
	if lab.Ask != nil {
		if err := os.WriteFile(filepath.Join(dir, answerFile), []byte(lab.form()), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, marker), []byte(lab.ID+"\n"+root+"\n"), 0o644)
}

// claim makes the folder dir, or finds it empty; made says which. The error says what is in the way.
func claim(dir string) (made bool, err error) {
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
			return false, err
		}
		return true, os.Mkdir(dir, 0o755) // an error if something has appeared there meanwhile
	case err != nil:
		return false, err
	case info.Mode()&fs.ModeSymlink != 0:
		return false, fmt.Errorf("%s is a link: name the folder itself, or another one", dir)
	case !info.IsDir():
		return false, fmt.Errorf("%s is a file: name a folder that is empty or does not exist", dir)
	}
	entries, err := os.ReadDir(dir)
	if len(entries) > 0 {
		return false, fmt.Errorf("%s is not empty: continue there, name another folder, or remove it", dir)
	}
	return false, err
}

// release removes what Start has written into dir, which was empty, and dir itself if Start has made it.
func release(dir string, made bool) error {
	if made {
		return os.RemoveAll(dir)
	}
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, entry.Name())))
	}
	return err
}

// In returns the lab of which dir is a working copy, and the checkout it was made from; ok is false if it is no lab's.
func In(dir string) (lab Lab, root string, ok bool) {
	text, err := os.ReadFile(filepath.Join(dir, marker))
	if err != nil {
		return Lab{}, "", false
	}
	id, root, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	lab, err = ByID(id)
	return lab, root, err == nil
}

// writeTree writes what is committed at root, or all of root if git does not know it.
func writeTree(root, dir string) error {
	archive, err := exec.Command("git", "-C", root, "archive", "--format=tar", "HEAD").Output()
	if err != nil {
		return copyTree(root, dir)
	}
	for reader := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := reader.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read git's archive: %w", err)
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		if err := writeFile(dir, header.Name, header.FileInfo().Mode(), reader); err != nil {
			return err
		}
	}
}

func copyTree(root, dir string) error {
	return fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case filepath.Join(root, filepath.FromSlash(name)) == dir:
			return fs.SkipDir // the copy is written inside the checkout
		case !entry.Type().IsRegular():
			return nil
		}
		in, err := os.Open(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		defer in.Close()
		return writeFile(dir, name, 0o644, in)
	})
}

func writeFile(dir, name string, mode fs.FileMode, content io.Reader) error {
	to := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, mode.Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, content)
	return errors.Join(err, out.Close())
}
