package etcdnode

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"go.uber.org/goleak"
)

// holdDir names the environment variable by which this test binary, run again, becomes the other process.
const holdDir = "ETCDNODE_TEST_HOLD_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(holdDir); dir != "" {
		hold(dir)
	}
	if parent := os.Getenv(ownDir); parent != "" {
		own(parent)
	}
	goleak.VerifyTestMain(m)
}

// hold runs a node until stdin is closed.
func hold(dir string) {
	node, err := Start(context.Background(), Options{Dir: dir})
	if err != nil {
		os.Stdout.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	os.Stdout.WriteString("holding\n")
	io.Copy(io.Discard, os.Stdin)
	node.Close()
	os.Exit(0)
}

func start(t *testing.T, dir string) *Node {
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

// down waits until etcd is between the two halves of a restart.
func (n *Node) down() {
	for {
		n.mu.Lock()
		m := n.member
		n.mu.Unlock()
		if m == nil {
			return
		}
		runtime.Gosched()
	}
}

func TestACallerWhoGoesAwayDoesNotLeaveEtcdDown(t *testing.T) {
	node := start(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	restarted := make(chan error, 1) // sent once by the goroutine below
	go func() { restarted <- node.Restart(ctx) }()
	node.down()
	cancel()
	if err := node.Restart(t.Context()); !errors.Is(err, ErrRestarting) {
		t.Errorf("a second restart meanwhile: got %v, want ErrRestarting", err)
	}
	if err := <-restarted; err != nil {
		t.Errorf("the restart: %v", err)
	}
	put(t, node.Client(), "a", "1")
	if err := node.Restart(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a restart whose caller has gone before it began: got %v", err)
	}
	put(t, node.Client(), "a", "2")
}

func TestCloseWaitsForARestart(t *testing.T) {
	node, err := Start(t.Context(), Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	restarted := make(chan error, 1) // sent once by the goroutine below
	go func() { restarted <- node.Restart(t.Context()) }()
	node.down()
	if err := errors.Join(node.Close(), <-restarted); err != nil {
		t.Error(err)
	}
	if err := node.Restart(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: got %v, want ErrClosed", err)
	}
}

func TestARequestMayTakeTwoMinutes(t *testing.T) {
	if got, want := start(t, t.TempDir()).member.server.Cfg.ReqTimeout(), 125*time.Second; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestStartWithoutAFolderIsRefused(t *testing.T) {
	if _, err := Start(context.Background(), Options{}); err == nil {
		t.Error("got no error")
	}
}

func wantInUse(t *testing.T, dir string) {
	t.Helper()
	begin := time.Now()
	node, err := Start(context.Background(), Options{Dir: dir})
	if err == nil {
		node.Close()
	}
	var inUse *InUseError
	if !errors.As(err, &inUse) || inUse.Dir != dir {
		t.Fatalf("got %v, want an InUseError for %s", err, dir)
	}
	if elapsed := time.Since(begin); elapsed > 2*lockWait {
		t.Errorf("it took %v to say so", elapsed)
	}
}

func TestFolderInUseByThisProcessIsRefused(t *testing.T) {
	dir := t.TempDir()
	node := start(t, dir)
	wantInUse(t, dir)
	put(t, node.Client(), "a", "1") // the first is none the worse
}

func TestFolderInUseByAnotherProcessIsRefused(t *testing.T) {
	dir := t.TempDir()
	other := exec.Command(os.Args[0])
	other.Env = append(os.Environ(), holdDir+"="+dir)
	stdin, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	said, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || said != "holding\n" {
		t.Fatalf("the other process said %q, %v", said, err)
	}
	wantInUse(t, dir)
	stdin.Close()
	if err := other.Wait(); err != nil {
		t.Fatal(err)
	}
	start(t, dir)
}

func TestDialReachesAnEtcdElsewhere(t *testing.T) {
	node := start(t, t.TempDir())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := v3rpc.Server(node.member.server, nil, nil)
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
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close() // now no program listens there
	begin := time.Now()
	if _, err := Dial(context.Background(), []string{address}, TLSFiles{}); err == nil || !strings.Contains(err.Error(), address+" cannot be reached") {
		t.Errorf("got %v, want an error that names %s", err, address)
	}
	if elapsed := time.Since(begin); elapsed > 2*dialTimeout {
		t.Errorf("it took %v to say so", elapsed)
	}
	if _, err := Dial(context.Background(), nil, TLSFiles{}); err == nil {
		t.Error("no endpoints: got no error")
	}
}
