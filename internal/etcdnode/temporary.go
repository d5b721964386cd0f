package etcdnode

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/bbolt"
)

// temporaryPrefix begins the names of our folders in the temporary folder.
const temporaryPrefix = "listwatch-"

// ownerMark is the database in a temporary folder that its program keeps open, and so locked. Its name tells users apart,
// because root may open any file. On Windows the number is -1, and each user has a temporary folder of their own.
func ownerMark() string { return fmt.Sprintf("owner-%d.db", os.Getuid()) }

// Temporary makes a folder below parent for data that its program does not outlive; "" is the system's temporary folder.
// The caller calls remove when it has closed what is in there. After a kill, [RemoveLeft] does that.
func Temporary(parent string) (dir string, remove func() error, err error) {
	dir, err = os.MkdirTemp(parent, temporaryPrefix)
	if err != nil {
		return "", nil, err
	}
	mark, err := bbolt.Open(filepath.Join(dir, ownerMark()), 0o600, &bbolt.Options{Timeout: lockWait})
	if err != nil {
		return "", nil, errors.Join(&TroubleError{Dir: dir, What: "mark the folder as ours", Err: err}, os.RemoveAll(dir))
	}
	// The mark first: Windows does not remove open files.
	return dir, func() error { return errors.Join(mark.Close(), os.RemoveAll(dir)) }, nil
}

// RemoveLeft removes the folders of [Temporary] below parent whose programs have died. It leaves alone those of
// living programs, those of other users, and what it cannot look into.
func RemoveLeft(parent string) error {
	if parent == "" {
		parent = os.TempDir()
	}
	entries, err := os.ReadDir(parent)
	if err != nil {
		return err
	}
	var errs []error
	for _, entry := range entries {
		dir := filepath.Join(parent, entry.Name())
		if entry.IsDir() && strings.HasPrefix(entry.Name(), temporaryPrefix) && left(dir) {
			errs = append(errs, notGone(os.RemoveAll(dir)))
		}
	}
	return errors.Join(errs...)
}

// left reports whether the program that made dir has died. A mark without contents may belong to a program that is just
// about to lock it; every other mark was locked before it was written.
func left(dir string) bool {
	mark := filepath.Join(dir, ownerMark())
	info, err := os.Lstat(mark)
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return false
	}
	held, err := locked(mark, time.Nanosecond) // one try
	return err == nil && !held
}

// notGone drops the error that another program has removed the same at the same time.
func notGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
