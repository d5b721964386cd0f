package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// createOurs creates a file that only its owner may read. A file of that name is replaced if it is empty, or if ours
// says that it begins as this program writes it. Everything else is left as it was, and so is what a link leads to.
func createOurs(name string, ours func(io.Reader) bool) (*os.File, error) {
	create := func() (*os.File, error) { return os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) }
	file, err := create()
	if !errors.Is(err, fs.ErrExist) {
		return file, err
	}
	there, err := os.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !there.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not an ordinary file: name the file itself", name)
	}
	old, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer old.Close()
	opened, err := old.Stat()
	if err != nil {
		return nil, err
	}
	// Only what is looked at is replaced: meanwhile another program may have put a link there.
	if !os.SameFile(there, opened) || opened.Size() > 0 && !ours(old) {
		return nil, fmt.Errorf("%s is there, and not as this program writes it: choose another name, or remove the "+
			"file", name)
	}
	// A new file, not the old one emptied: others may have that open, or have it under a second name.
	if err := errors.Join(old.Close(), os.Remove(name)); err != nil {
		return nil, err
	}
	return create()
}
