// Package etcdnode runs an etcd of one member inside the process, and reads the state of an etcd, here or elsewhere.
//
// The member opens no listener: it serves gRPC on an in-memory connection (bufconn), so no port can collide, and the
// data folder is all that remains after Close. The client is an ordinary clientv3.Client: while [Etcd.Restart] has
// stopped the member, calls wait, and watches then resume from their last revision.
//
// # Goroutines and locks
//
// Start starts etcd's own goroutines, one that serves the connection, and the client's. [Etcd.Close] returns when all
// of them have ended, unless etcd is broken. Etcd.lifeMu orders Restart and Close against each other; it is the only
// lock.
package etcdnode

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/config"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc"
)

var errClosed = errors.New("etcd has been closed")

// Options are the settings of an [Etcd].
type Options struct {
	Dir     string // the data folder, for etcd's folder "member"; created if missing
	Durable bool   // wait for the disk on each write; otherwise a power failure may lose writes
}

// Etcd runs an etcd of one member. Any goroutine may call its methods.
type Etcd struct {
	// Set by Start, never changed.
	options Options
	trouble *trouble
	client  *clientv3.Client

	lifeMu sync.Mutex             // held by Restart and Close
	closed bool                   // guarded by lifeMu
	member atomic.Pointer[member] // nil while the member is down; after Start, replaced with lifeMu held
}

// Start starts etcd on the data in options.Dir, and returns when etcd accepts writes. It returns an error if another
// process or another Etcd uses the data. The caller closes the Etcd.
func Start(ctx context.Context, options Options) (*Etcd, error) {
	if options.Dir == "" {
		return nil, errors.New("start etcd: no data folder given")
	}
	e := &Etcd{options: options, trouble: &trouble{dir: options.Dir}}
	e.trouble.broken, e.trouble.fail = context.WithCancelCause(context.Background())
	var err error
	// The client sends no keep-alives: if a debugger stopped etcd, a late response would break the connection.
	e.client, err = newClient([]string{"passthrough:///etcd"}, TLSFiles{}, 0, grpc.WithContextDialer(e.dial))
	if err != nil {
		return nil, err
	}
	if err := e.start(ctx); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// Client returns the only client of the etcd. It survives restarts; Close closes it.
func (e *Etcd) Client() *clientv3.Client { return e.client }

// Broken returns a context that ends when etcd cannot continue; its cause has advice. After that, call only Close.
func (e *Etcd) Broken() context.Context { return e.trouble.broken }

// dial connects the client to the current member.
func (e *Etcd) dial(ctx context.Context, _ string) (net.Conn, error) {
	m := e.member.Load()
	if m == nil {
		return nil, errors.New("etcd is down")
	}
	return m.pipe.DialContext(ctx)
}

// Restart stops the member and starts another one on the same data. The client reconnects by itself, and its watches
// lose nothing. Concurrent restarts run one after the other. Once the stop has begun, the end of ctx has no effect, so
// that etcd does not stay down. If the etcd is closed, or ctx is done before the stop, Restart returns an error and
// does nothing. If the member does not start again, the etcd is broken.
func (e *Etcd) Restart(ctx context.Context) error {
	e.lifeMu.Lock()
	defer e.lifeMu.Unlock()
	if e.closed {
		return errClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	e.stop()
	err := e.start(context.WithoutCancel(ctx))
	if err != nil {
		e.trouble.report("it did not come back after a restart", err)
	}
	return err
}

// Close stops the client and the member, and returns when all their goroutines have ended. A second call does nothing.
// A broken etcd's goroutines end only with the process.
func (e *Etcd) Close() error {
	e.lifeMu.Lock() // waits for a restart that is under way
	defer e.lifeMu.Unlock()
	if e.closed {
		return nil
	}
	e.closed = true
	err := e.client.Close() // the client first, because without a server it would try to reconnect
	e.stop()
	return err
}

// stop stops the member, if there is one. It clears e.member first, because the client reconnects at once.
func (e *Etcd) stop() {
	if m := e.member.Swap(nil); m != nil {
		m.stop()
	}
}

// lockWait is the time after which a locked data folder counts as in use. A server that shuts down unlocks it sooner.
const lockWait = time.Second

// checkFolder returns an error if the data in dir is unusable: an older version of this program wrote it with three
// members, or another process has locked the database. In the first case etcd would start an empty database next to the
// old one; in the second it would wait for the lock forever, without a message. The check has a race: if two processes
// start at the same time, both may pass, and one of them then waits.
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
	// Opening the database read-only changes nothing. It waits for a shared lock while a writer has the lock. The
	// system releases the lock of a process that has died.
	db, err := bbolt.Open(file, 0o600, &bbolt.Options{ReadOnly: true, Timeout: lockWait})
	if errors.Is(err, bbolterrors.ErrTimeout) {
		return fmt.Errorf("the etcd data folder %s is in use by another process", dir)
	}
	if err != nil {
		return fmt.Errorf("look at etcd data in %s: %w", dir, err)
	}
	return db.Close()
}

// trouble turns etcd's end into an error. An etcd that cannot continue calls its logger's Fatal or Panic, on any
// goroutine and with locks held. Both would end the process, silently or with a stack.
type trouble struct {
	// Set by Start, never changed.
	dir    string
	broken context.Context // cancelled by report; the cause is the first error, which causes the later ones
	fail   context.CancelCauseFunc
}

// report cancels broken with an error that has a description, advice, and err unless it is nil.
func (t *trouble) report(what string, err error) {
	advice := "Start again; if that does not help, with another -data-dir"
	switch {
	case errors.Is(err, syscall.ENOSPC):
		advice = "The disk is full: make room there, or start again with -data-dir on another disk"
	case errors.Is(err, fs.ErrNotExist):
		advice = "The folder is gone: it was removed, renamed or unmounted; start again"
	}
	why := errors.New(what)
	if err != nil {
		why = fmt.Errorf("%s: %w", what, err)
	}
	t.fail(fmt.Errorf("etcd cannot continue with its data in %s: %w. %s", t.dir, why, advice))
}

// OnWrite replaces os.Exit and panic. It never returns: etcd must not continue with data that it could not write, and
// if the goroutine ended, it would release locks that stop the other goroutines.
func (t *trouble) OnWrite(entry *zapcore.CheckedEntry, fields []zapcore.Field) {
	var err error
	for _, field := range fields {
		if field.Type == zapcore.ErrorType {
			err, _ = field.Interface.(error)
		}
	}
	t.report(entry.Message, err)
	select {}
}

// newServer makes a server. It opens the data on another goroutine, because that may call OnWrite, which never returns.
func (t *trouble) newServer(cfg config.ServerConfig) (*etcdserver.EtcdServer, error) {
	var server *etcdserver.EtcdServer
	made := make(chan error, 1) // sent at most once, by the goroutine below, after it has set server
	go func() {
		var err error
		server, err = etcdserver.NewServer(cfg)
		made <- err
	}()
	select {
	case err := <-made:
		return server, err
	case <-t.broken.Done():
		return nil, context.Cause(t.broken)
	}
}
