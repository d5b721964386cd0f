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

// addressesOf returns two addresses of loopback for each of n nodes, which the members have in their data: those that
// dir remembers, or free ones, which it then does. One node needs none. The error is that dir holds data, but none of n
// nodes: etcd itself would start an empty database beside what is there.
func addressesOf(dir string, n int) (addresses []string, err error) {
	file := filepath.Join(dir, "addresses.json")
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &addresses)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the addresses of the etcd nodes in %s: %w", dir, err)
	}
	_, err = os.Stat(filepath.Join(dir, "member"))
	lone, made := err == nil, max(1, len(addresses)/2)
	switch {
	case n == 1 && (lone || made == 1) || n > 1 && made == n:
		return addresses, nil
	case made > 1 || lone:
		return nil, fmt.Errorf("the etcd data in %s was made with -etcd-nodes %d, not %d: start with -etcd-nodes %d, "+
			"or with another -data-dir", dir, made, n, made)
	}
	for tries := 0; len(addresses) < 2*n; tries++ {
		// Below the ports that systems give to outgoing connections: one of these could take the port before the member
		// listens on it.
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(12_000)))
		switch {
		case err == nil:
			defer l.Close() // all are held until the last is found
			addresses = append(addresses, l.Addr().String())
		case tries > 100:
			return nil, fmt.Errorf("find a port for etcd: %w", err)
		}
	}
	text, _ = json.Marshal(addresses) // strings always marshal
	err = errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(file, text, 0o600))
	if err != nil {
		return nil, fmt.Errorf("write the addresses of the etcd nodes: %w", err)
	}
	return addresses, nil
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
