package export

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
)

// mark is the file by which a folder says that it is an export, and marked is what stands in it.
const (
	mark   = "listwatch-export.txt"
	marked = "Written by listwatch -export, which replaces its files here when it is asked to again.\n"
)

// openOurs opens the folder of an export, and marks it. It refuses a folder with anything in it that has no mark, a
// link to a folder, and a folder with links in it: what they lead to is not the export's.
func openOurs(dir string) (*os.Root, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	there, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	if err := checkOurs(root, there); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

// checkOurs is openOurs for a folder that is open. there is the folder, or the link that led to it.
func checkOurs(root *os.Root, there fs.FileInfo) error {
	opened, err := root.Stat(".")
	if err != nil {
		return err
	}
	if !os.SameFile(there, opened) {
		return fmt.Errorf("%s is a link: name the folder itself", root.Name())
	}
	empty := true
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		empty = empty && name == "."
		if err == nil && entry.Type()&fs.ModeSymlink != 0 {
			err = fmt.Errorf("%s in %s is a link: remove it", name, root.Name())
		}
		return err
	})
	if err != nil {
		return err
	}
	if text, _ := root.ReadFile(mark); !empty && string(text) != marked {
		return fmt.Errorf("%s is not empty, and not an export: choose another folder", root.Name())
	}
	return replace(root, mark, []byte(marked))
}

// replace writes a file of an export. The file is a new one: the old one may have a second name elsewhere.
func replace(root *os.Root, name string, body []byte) error {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return root.WriteFile(name, body, 0o644)
}
