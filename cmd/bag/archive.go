package main

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// epoch is the time of every file in an archive: when it was made says nothing about what is in it.
var epoch = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// archive is a zip file that depends on nothing but what is put into it.
type archive struct {
	file   *os.File
	zip    *zip.Writer
	method uint16
}

// newArchive begins a zip file. A bag stores its files as they are: they are archives themselves, and -serve-bag hands them out
// in pieces.
func newArchive(name string, method uint16) (*archive, error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return nil, err
	}
	file, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	return &archive{file: file, zip: zip.NewWriter(file), method: method}, nil
}

func (a *archive) add(name string, executable bool, content io.Reader) error {
	header := &zip.FileHeader{Name: name, Method: a.method, Modified: epoch}
	header.SetMode(0o644)
	if executable {
		header.SetMode(0o755)
	}
	entry, err := a.zip.CreateHeader(header)
	if err != nil {
		return err
	}
	_, err = io.Copy(entry, content)
	return err
}

func (a *archive) addBytes(name string, content []byte) error {
	return a.add(name, false, bytes.NewReader(content))
}

func (a *archive) addFile(name, from string, executable bool) error {
	file, err := os.Open(from)
	if err != nil {
		return err
	}
	defer file.Close()
	return a.add(name, executable, file)
}

// addTree adds the regular files below a folder of fsys, in order, under another name.
func (a *archive) addTree(as string, fsys fs.FS) error {
	return fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		file, err := fsys.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		return a.add(path.Join(as, name), false, file)
	})
}

// close ends the archive. After an error before, the file is removed.
func (a *archive) close(err error) error {
	err = errors.Join(err, a.zip.Close(), a.file.Close())
	if err != nil {
		return errors.Join(err, os.Remove(a.file.Name()))
	}
	return nil
}

// sources returns the files of the checkout: what git would take, or all that is not made from it.
func sources(ctx context.Context, root string) ([]string, error) {
	out, err := exec.CommandContext(ctx, "git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err == nil {
		names := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
		return slices.DeleteFunc(names, func(name string) bool {
			_, err := os.Lstat(filepath.Join(root, filepath.FromSlash(name)))
			return err != nil // deleted, and not committed yet
		}), nil
	}
	var names []string
	err = fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == ".git" || entry.Name() == ".lab" || entry.Name() == "bin"):
			return fs.SkipDir
		case entry.Type().IsRegular():
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

// unpack writes the files of an archive that lie below a folder of it into dir.
func unpack(file, below, dir string) error {
	reader, err := zip.OpenReader(file)
	if err != nil {
		return err
	}
	defer reader.Close()
	found := false
	for _, entry := range reader.File {
		name, inside := strings.CutPrefix(entry.Name, below)
		if !inside || strings.HasSuffix(name, "/") {
			continue
		}
		found = true
		if err := unpackEntry(entry, filepath.Join(dir, filepath.FromSlash(name))); err != nil {
			return err
		}
	}
	if !found {
		return errors.New(file + " has nothing below " + below)
	}
	return nil
}

func unpackEntry(entry *zip.File, to string) error {
	in, err := entry.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, entry.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
