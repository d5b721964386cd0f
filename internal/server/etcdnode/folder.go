package etcdnode

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
)

// lockWait is how long a data folder may stay locked before it counts as in use: a server that is just shutting down
// gets that long to finish.
const lockWait = time.Second

// checkFolder returns an error if the data in dir cannot be worked on: three members made it, as older programs could,
// or its database is locked. Etcd itself would start an empty database beside the first, and wait for the lock for
// ever, and silently. The answer may be outdated as soon as it is given: two processes that start at the same
// instant can both pass, and then the later one waits after all.
func checkFolder(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "etcd-1", "member")); err == nil {
		return fmt.Errorf("the etcd data in %s was made by three nodes, which this program does not run: start with "+
			"another -data-dir", dir)
	}
	file := filepath.Join(dir, "member", "snap", "db")
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil
	}
	// Read-only takes a shared lock: it waits for a writer, and changes nothing. The system gives up the lock of a
	// process that has died.
	db, err := bbolt.Open(file, 0o600, &bbolt.Options{ReadOnly: true, Timeout: lockWait})
	if errors.Is(err, bbolt.ErrTimeout) {
		return fmt.Errorf("the etcd data folder %s is in use by another process", dir)
	}
	if err != nil {
		return fmt.Errorf("look at etcd data in %s: %w", dir, err)
	}
	return db.Close()
}
