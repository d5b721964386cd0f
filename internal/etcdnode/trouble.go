package etcdnode

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"go.etcd.io/etcd/server/v3/config"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// TroubleError says why etcd cannot go on, and what to do about it.
type TroubleError struct {
	Dir  string // of its data
	What string // in etcd's words
	Err  error  // nil: etcd gave none
}

func (e *TroubleError) Error() string {
	what := e.What
	if e.Err != nil {
		what += ": " + e.Err.Error()
	}
	return fmt.Sprintf("etcd cannot continue with its data in %s: %s. %s", e.Dir, what, e.advice())
}

func (e *TroubleError) Unwrap() error { return e.Err }

func (e *TroubleError) advice() string {
	switch {
	case errors.Is(e.Err, syscall.ENOSPC):
		return "The disk is full: make room there, or start again with -data-dir on another disk"
	case errors.Is(e.Err, fs.ErrNotExist):
		return "The folder is gone: it was removed, renamed or unmounted; start again"
	}
	return "Start again; if that does not help, with another -data-dir"
}

// trouble turns what etcd does when it cannot go on into an error. Etcd calls Fatal or Panic of its logger, on whichever
// of its goroutines noticed, with locks held: the one ends the process without a word, the other with a stack.
type trouble struct {
	// Set by newTrouble, never changed.
	dir    string
	broken chan struct{} // closed by report, once
	stuck  chan struct{} // closed by OnWrite, once: etcd cannot even be stopped

	mu  sync.Mutex // guards the field below; innermost
	why *TroubleError

	sticks sync.Once
}

func newTrouble(dir string) *trouble {
	return &trouble{dir: dir, broken: make(chan struct{}), stuck: make(chan struct{})}
}

// report keeps the first trouble, which is the cause of those that follow.
func (t *trouble) report(what string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.why == nil {
		t.why = &TroubleError{Dir: t.dir, What: what, Err: err}
		close(t.broken)
	}
}

func (t *trouble) err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.why == nil {
		return nil
	}
	return t.why
}

var _ zapcore.CheckWriteHook = (*trouble)(nil)

// OnWrite is called instead of os.Exit and panic. It never returns: to go on with data that could not be written would be
// worse, and to end the goroutine would release the locks that keep all others from doing so.
func (t *trouble) OnWrite(entry *zapcore.CheckedEntry, fields []zapcore.Field) {
	var err error
	for _, field := range fields {
		if field.Type == zapcore.ErrorType {
			err, _ = field.Interface.(error)
		}
	}
	t.report(entry.Message, err)
	t.sticks.Do(func() { close(t.stuck) })
	select {}
}

// logger returns a logger that is silent until etcd cannot go on.
func (t *trouble) logger() *zap.Logger {
	return zap.NewNop().WithOptions(zap.WithFatalHook(t), zap.WithPanicHook(t))
}

// newServer makes a server, which opens the data: on a goroutine of its own, because trouble never returns.
func (t *trouble) newServer(cfg config.ServerConfig) (*etcdserver.EtcdServer, error) {
	type made struct {
		server *etcdserver.EtcdServer
		err    error
	}
	done := make(chan made, 1) // sent once by the goroutine below
	go func() {
		server, err := etcdserver.NewServer(cfg)
		done <- made{server, err}
	}()
	select {
	case result := <-done:
		return result.server, result.err
	case <-t.broken:
		return nil, t.err()
	}
}

// folderPeriod is how often the data folder is looked for.
const folderPeriod = time.Second

// watchFolders reports trouble when one of the data folders is gone, and runs until then or until ctx is done. Etcd itself
// notices only when it wants the next file: until then it acknowledges writes that the next start will not find.
func (t *trouble) watchFolders(ctx context.Context, dirs ...string) {
	ticker := time.NewTicker(folderPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.broken:
			return
		case <-ticker.C:
		}
		for _, dir := range dirs {
			t.checkFolder(dir)
		}
	}
}

func (t *trouble) checkFolder(dir string) {
	if _, err := os.Stat(filepath.Join(dir, "member", "snap", "db")); errors.Is(err, fs.ErrNotExist) {
		t.report("look at the database", err)
	}
}

// minFree is what etcd needs to start, and for some writes.
const minFree = 8 << 20

// checkSpace returns a [*TroubleError] if there is no room for data in dir, or in the folder where it is to be made.
func checkSpace(dir string) error {
	at := dir
	for {
		_, err := os.Stat(at)
		if !errors.Is(err, fs.ErrNotExist) || filepath.Dir(at) == at {
			break
		}
		at = filepath.Dir(at)
	}
	free, ok := FreeSpace(at)
	if !ok || free >= minFree {
		return nil
	}
	what := fmt.Sprintf("%d bytes are free, and it needs %d to start", free, minFree)
	return &TroubleError{Dir: dir, What: what, Err: syscall.ENOSPC}
}
