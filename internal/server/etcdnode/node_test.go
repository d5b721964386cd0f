package etcdnode

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, dir string) *Etcd {
	t.Helper()
	node, err := Start(context.Background(), Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := node.Close(); err != nil {
			t.Error(err)
		}
	})
	return node
}

func put(t *testing.T, c *clientv3.Client, key, value string) int64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	response, err := c.Put(ctx, key, value)
	if err != nil {
		t.Fatal(err)
	}
	return response.Header.Revision
}

func TestDataSurvivesClose(t *testing.T) {
	t.Parallel()
	for _, durable := range []bool{false, true} {
		dir := t.TempDir()
		first, err := Start(context.Background(), Options{Dir: dir, Durable: durable})
		if err != nil {
			t.Fatal(err)
		}
		put(t, first.Client(), "a", "1")
		if err := errors.Join(first.Close(), first.Close()); err != nil {
			t.Fatalf("close twice: %v", err)
		}
		response, err := start(t, dir).Client().Get(context.Background(), "a")
		if err != nil || len(response.Kvs) != 1 || string(response.Kvs[0].Value) != "1" {
			t.Errorf("durable %v: got %v, %v, want a=1", durable, response, err)
		}
	}
}

func TestWatchLosesNothingOverARestart(t *testing.T) {
	t.Parallel()
	node := start(t, t.TempDir())
	ctx, cancel := context.WithCancel(context.Background())
	watched := node.Client().Watch(ctx, "a", clientv3.WithCreatedNotify())
	if created := <-watched; !created.Created {
		t.Fatalf("got %v, want the news that the watch exists", created)
	}
	put(t, node.Client(), "a", "1")
	if err := node.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	put(t, node.Client(), "a", "2")
	var values []string
	for len(values) < 2 {
		for _, e := range (<-watched).Events {
			values = append(values, string(e.Kv.Value))
		}
	}
	if got := strings.Join(values, " "); got != "1 2" {
		t.Errorf("got %q, want 1 2", got)
	}
	cancel()
	for range watched {
	}
}

// restarting restarts etcd until it is seen between the two halves of a restart, and returns where that one's error
// comes. On a busy machine a whole restart may pass between two looks.
func (e *Etcd) restarting(ctx context.Context, t *testing.T) <-chan error {
	t.Helper()
	for {
		restarted := make(chan error, 1) // sent once by the goroutine below
		go func() { restarted <- e.Restart(ctx) }()
		for e.Running(e.Names()[0]) && len(restarted) == 0 {
			runtime.Gosched()
		}
		if len(restarted) == 0 {
			return restarted
		}
		if err := <-restarted; err != nil {
			t.Fatal(err)
		}
	}
}

func TestACallerWhoGoesAwayDoesNotLeaveEtcdDown(t *testing.T) {
	t.Parallel()
	node := start(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	restarted := node.restarting(ctx, t)
	cancel()
	if err := <-restarted; err != nil {
		t.Errorf("the restart: %v", err)
	}
	put(t, node.Client(), "a", "1")
	if err := node.Restart(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a restart whose caller has gone before it began: got %v", err)
	}
	put(t, node.Client(), "a", "2")
}

func TestOneRestartAtATime(t *testing.T) {
	t.Parallel()
	node := start(t, t.TempDir())
	node.lifeMu.Lock() // as a restart does
	if err := node.Restart(t.Context()); !errors.Is(err, ErrRestarting) {
		t.Errorf("a second restart meanwhile: got %v, want ErrRestarting", err)
	}
	node.lifeMu.Unlock()
	put(t, node.Client(), "a", "1")
}

func TestCloseWaitsForARestart(t *testing.T) {
	t.Parallel()
	node, err := Start(t.Context(), Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	restarted := node.restarting(t.Context(), t)
	if err := errors.Join(node.Close(), <-restarted); err != nil {
		t.Error(err)
	}
	if err := node.Restart(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: got %v, want ErrClosed", err)
	}
}

func TestARequestMayTakeTwoMinutes(t *testing.T) {
	t.Parallel()
	if got, want := start(t, t.TempDir()).nodes[0].member.Load().server.Cfg.ReqTimeout(), 125*time.Second; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestStartWithoutAFolderIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := Start(context.Background(), Options{}); err == nil {
		t.Error("got no error")
	}
}

func wantInUse(t *testing.T, dir string) {
	t.Helper()
	node, err := Start(context.Background(), Options{Dir: dir})
	if err == nil {
		node.Close()
	}
	if err == nil || !strings.Contains(err.Error(), dir+" is in use") {
		t.Fatalf("got %v, want an error that names %s", err, dir)
	}
}

func TestFolderInUseByThisProcessIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	node := start(t, dir)
	wantInUse(t, dir)
	put(t, node.Client(), "a", "1") // the first is none the worse
}

func TestAFolderOfAnotherNumberOfNodesIsRefused(t *testing.T) {
	t.Parallel()
	lone, several := t.TempDir(), t.TempDir()
	closeNow := func(e *Etcd, err error) {
		if err == nil {
			err = e.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	closeNow(Start(t.Context(), Options{Dir: lone}))
	closeNow(Start(t.Context(), Options{Dir: several, Nodes: 3}))
	for dir, test := range map[string]struct {
		nodes int
		want  string
	}{
		lone:    {3, "was made with -etcd-nodes 1, not 3: start with -etcd-nodes 1, or with another -data-dir"},
		several: {1, "was made with -etcd-nodes 3, not 1: start with -etcd-nodes 3, or with another -data-dir"},
	} {
		before, _ := filepath.Glob(dir + "/*")
		e, err := Start(t.Context(), Options{Dir: dir, Nodes: test.nodes})
		if err == nil {
			e.Close()
		}
		if err == nil || !strings.Contains(err.Error(), dir+" "+test.want) {
			t.Errorf("got %v", err)
		}
		if after, _ := filepath.Glob(dir + "/*"); !slices.Equal(after, before) {
			t.Errorf("got files %v, want %v as before", after, before)
		}
	}
	// Earlier programs started the other number beside what was there. Both are let in.
	made := os.Mkdir(filepath.Join(several, "member"), 0o700)
	if err := errors.Join(made, checkNodes(several, 1), checkNodes(several, 3)); err != nil {
		t.Errorf("a folder with both: %v", err)
	}
}

func TestDialReachesAnEtcdElsewhere(t *testing.T) {
	t.Parallel()
	node := start(t, t.TempDir())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := v3rpc.Server(node.nodes[0].member.Load().server, nil, nil)
	served := make(chan error, 1) // sent once by the goroutine below
	go func() { served <- server.Serve(listener) }()
	client, err := Dial(context.Background(), []string{"http://" + listener.Addr().String()}, TLSFiles{})
	if err != nil {
		t.Fatal(err)
	}
	put(t, client, "a", "1")
	client.Close()
	server.Stop()
	<-served
}

func TestDialSaysWhatCannotBeReached(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close() // now no program listens there
	if _, err := Dial(context.Background(), []string{address}, TLSFiles{}); err == nil ||
		!strings.Contains(err.Error(), address+" cannot be reached") {
		t.Errorf("got %v, want an error that names %s", err, address)
	}
	if _, err := Dial(context.Background(), nil, TLSFiles{}); err == nil {
		t.Error("no endpoints: got no error")
	}
}
