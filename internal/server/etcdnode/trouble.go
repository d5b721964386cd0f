package etcdnode

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"go.etcd.io/etcd/server/v3/config"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.uber.org/zap/zapcore"
)

// trouble makes an error of etcd's end. An etcd that cannot continue calls Fatal or Panic of its logger, on any of its
// goroutines, with locks held: these would end the process, silently or with a stack.
type trouble struct {
	// Set by newTrouble, never changed.
	dir    string
	broken context.Context // ended by report; its cause is the first, which causes those that follow
	fail   context.CancelCauseFunc
}

func newTrouble(dir string) *trouble {
	t := &trouble{dir: dir}
	t.broken, t.fail = context.WithCancelCause(context.Background())
	return t
}

// report ends broken with a description, an error, which may be nil, and advice.
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

var _ zapcore.CheckWriteHook = (*trouble)(nil)

// OnWrite is called instead of os.Exit and panic. It never returns: etcd must not continue with data that it could not
// write, and ending the goroutine would release locks that keep the others from doing so.
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

// newServer opens the data, on a goroutine of its own, because OnWrite never returns.
func (t *trouble) newServer(cfg config.ServerConfig) (*etcdserver.EtcdServer, error) {
	var server *etcdserver.EtcdServer
	made := make(chan error, 1) // sent once by the goroutine below, if at all, when server is set
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
