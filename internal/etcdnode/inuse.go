package etcdnode

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
)

// lockWait is how long a data folder may stay locked before it counts as in use: a server that is just shutting down
// gets that long to finish.
const lockWait = time.Second

// InUseError says that another process works on a data folder.
type InUseError struct {
	Dir string
}

func (e *InUseError) Error() string {
	return fmt.Sprintf("the etcd data folder %s is in use by another process", e.Dir)
}

// checkUnused returns an [*InUseError] if the database below dir is locked. Etcd itself would wait for that lock
// for ever, and silently. The lock is bbolt's, which has one on every platform; for that reason it is bbolt that is
// asked. The answer may be outdated as soon as it is given: two processes that start at the same instant can both pass,
// and then the later one waits after all.
func checkUnused(dir string) error {
	file := filepath.Join(dir, "member", "snap", "db")
	info, err := os.Stat(file)
	if errors.Is(err, os.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at etcd data: %w", err)
	}
	held, err := locked(file, lockWait)
	if err != nil {
		return fmt.Errorf("look at etcd data in %s: %w", dir, err)
	}
	if held {
		return &InUseError{Dir: dir}
	}
	return nil
}

// locked reports whether a process has had the database open all the time that it waits. The system gives up the lock of
// a process that has died.
func locked(file string, wait time.Duration) (bool, error) {
	// Read-only takes a shared lock: it waits for a writer, and changes nothing.
	db, err := bbolt.Open(file, 0o600, &bbolt.Options{ReadOnly: true, Timeout: wait})
	if errors.Is(err, bbolt.ErrTimeout) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return false, db.Close()
}
