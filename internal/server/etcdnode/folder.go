package etcdnode

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
)

// lockWait is how long a data folder may stay locked before it counts as in use: a server that is just shutting down
// gets that long to finish.
const lockWait = time.Second

// InUseError says that another process works on a data folder.
type InUseError struct{ Dir string }

func (e *InUseError) Error() string {
	return fmt.Sprintf("the etcd data folder %s is in use by another process", e.Dir)
}

// NodesError says that a data folder was made with another number of nodes. Etcd itself would start an empty database
// beside what is there.
type NodesError struct {
	Dir         string
	Made, Asked int
}

func (e *NodesError) Error() string {
	return fmt.Sprintf("the etcd data in %s was made with -etcd-nodes %d, not %d: start with -etcd-nodes %d, or with another -data-dir",
		e.Dir, e.Made, e.Asked, e.Made)
}

// checkNodes returns a [*NodesError] if dir holds data, but none of n nodes.
func checkNodes(dir string, n int) error {
	var several []string
	text, err := os.ReadFile(addressFile(dir))
	if err == nil {
		err = json.Unmarshal(text, &several)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the addresses of the etcd nodes in %s: %w", dir, err)
	}
	_, err = os.Stat(filepath.Join(dir, "member"))
	lone := err == nil
	switch made := len(several) / 2; {
	case n == 1 && lone, n > 1 && made == n, made == 0 && !lone:
		return nil
	case made > 0:
		return &NodesError{dir, made, n}
	}
	return &NodesError{dir, 1, n}
}

func addressFile(dir string) string { return filepath.Join(dir, "addresses.json") }

// addressesIn returns two addresses for each of n nodes. They are free ones of loopback, or those that dir remembers:
// the members have them in their data.
func addressesIn(dir string, n int) (addresses []string, err error) {
	if text, err := os.ReadFile(addressFile(dir)); err == nil {
		return addresses, json.Unmarshal(text, &addresses) // checkNodes has read it, too
	}
	for range 2 * n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a port for etcd: %w", err)
		}
		defer l.Close() // all are held until the last is found
		addresses = append(addresses, l.Addr().String())
	}
	text, _ := json.Marshal(addresses) // strings always marshal
	err = errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(addressFile(dir), text, 0o600))
	if err != nil {
		return nil, fmt.Errorf("write the addresses of the etcd nodes: %w", err)
	}
	return addresses, nil
}

// checkUnused returns an [*InUseError] if the database below dir is locked. Etcd itself would wait for that lock for
// ever, and silently. The answer may be outdated as soon as it is given: two processes that start at the same instant
// can both pass, and then the later one waits after all.
func checkUnused(dir string) error {
	file := filepath.Join(dir, "member", "snap", "db")
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil
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

// locked reports whether a process has had the database open all the time that it waits. The lock is bbolt's, which has
// one on every platform. The system gives up the lock of a process that has died.
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
		trouble := &TroubleError{Dir: dir, What: "mark the folder as ours", Err: err}
		return "", nil, errors.Join(trouble, os.RemoveAll(dir))
	}
	// The mark first: Windows does not remove open files.
	return dir, func() error { return errors.Join(mark.Close(), os.RemoveAll(dir)) }, nil
}

// RemoveLeft removes the folders of [Temporary] below parent whose programs have died. It leaves alone those of
// living programs, those of other users, and what it cannot look into.
func RemoveLeft(parent string) (err error) {
	if parent == "" {
		parent = os.TempDir()
	}
	marks, err := fs.Glob(os.DirFS(parent), temporaryPrefix+"*/"+ownerMark())
	for _, mark := range marks {
		if dir := filepath.Join(parent, filepath.Dir(mark)); left(dir) {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}
	return err
}

// left reports whether the program that made dir has died. A mark without contents may belong to a program that is just
// about to lock it; every other mark was locked before it was written. A link is none of ours.
func left(dir string) bool {
	folder, err := os.Lstat(dir)
	if err != nil || !folder.IsDir() {
		return false
	}
	mark := filepath.Join(dir, ownerMark())
	info, err := os.Lstat(mark)
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return false
	}
	held, err := locked(mark, time.Nanosecond) // one try
	return err == nil && !held
}
