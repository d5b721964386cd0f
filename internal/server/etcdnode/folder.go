package etcdnode

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
)

// lockWait is how long a data folder may stay locked before it counts as in use: a server that is just shutting down
// gets that long to finish.
const lockWait = time.Second

// checkNodes returns an error if dir holds data, but none of n nodes. Etcd itself would start an empty database beside
// what is there. It returns the addresses that dir remembers.
func checkNodes(dir string, n int) (addresses []string, err error) {
	text, err := os.ReadFile(addressFile(dir))
	if err == nil {
		err = json.Unmarshal(text, &addresses)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the addresses of the etcd nodes in %s: %w", dir, err)
	}
	_, err = os.Stat(filepath.Join(dir, "member"))
	lone := err == nil
	made := max(1, len(addresses)/2)
	if n == 1 && lone || n > 1 && made == n || made == 1 && !lone {
		return addresses, nil
	}
	return nil, fmt.Errorf("the etcd data in %s was made with -etcd-nodes %d, not %d: start with -etcd-nodes %d, or "+
		"with another -data-dir", dir, made, n, made)
}

func addressFile(dir string) string { return filepath.Join(dir, "addresses.json") }

// newAddresses returns two free addresses of loopback for each of n nodes, and lets dir remember them: the members will
// have them in their data.
func newAddresses(dir string, n int) (addresses []string, err error) {
	for range 2 * n {
		l, err := listenOnAny()
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

// listenOnAny listens on a free port of loopback below those that systems give to outgoing connections: one of these
// could take the port before the member listens on it.
func listenOnAny() (l net.Listener, err error) {
	for range 100 {
		if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(12_000))); err == nil {
			return l, nil
		}
	}
	return nil, err
}

// checkUnused returns an error if the database below dir is locked. Etcd itself would wait for that lock for
// ever, and silently. The answer may be outdated as soon as it is given: two processes that start at the same instant
// can both pass, and then the later one waits after all.
func checkUnused(dir string) error {
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
