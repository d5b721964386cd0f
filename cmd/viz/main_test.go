package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/eventually"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience limits waits for the program. Anything that takes longer, even on a busy machine, is stuck.
const patience = 5 * time.Minute

// program is a call of runUntil that runs in a goroutine.
type program struct {
	url    string
	clock  *clocktesting.FakeClock // never moves, so the program has to end by itself
	stop   context.CancelFunc
	status chan int // sent once, when runUntil returns
	stderr *strings.Builder
}

// start runs the program with args on a free port, and returns when the program has printed that it listens.
func start(t *testing.T, args ...string) *program {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	p := &program{stop: cancel, status: make(chan int, 1), stderr: &strings.Builder{},
		clock: clocktesting.NewFakeClock(time.Time{})}
	go func() {
		status := runUntil(ctx, &ending{clock: p.clock}, append([]string{"-listen", "127.0.0.1:0"}, args...), in,
			p.stderr)
		in.Close()
		p.status <- status
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err != nil || !ok {
		cancel()
		t.Fatalf("first line: got %q, %v; status %d, stderr %q", line, err, <-p.status, p.stderr)
	}
	p.url = url
	return p
}

// child returns a command that is not started yet, and the text that the command will write to stderr. The command runs
// this test binary with one more environment variable, chosen ("NAME=value"), for the init functions.
func child(t *testing.T, chosen string, args ...string) (*exec.Cmd, *strings.Builder) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	c, stderr := exec.CommandContext(ctx, os.Args[0], args...), &strings.Builder{}
	c.Env, c.Stderr = append(os.Environ(), chosen), stderr
	return c, stderr
}

// end stops the program as an interrupt would and returns its status.
func (p *program) end(t *testing.T) int {
	t.Helper()
	http.DefaultClient.CloseIdleConnections()
	p.stop()
	select {
	case status := <-p.status:
		return status
	case <-time.After(patience):
		t.Fatal("the program does not end")
		return -1
	}
}

// ask sends one request, and returns the status and the body of the response.
func (p *program) ask(t *testing.T, method, path, contentType, body string) (int, string) {
	t.Helper()
	request := require.Value(http.NewRequestWithContext(t.Context(), method, p.url+path, strings.NewReader(body)))(t)
	request.Header.Set("Content-Type", contentType)
	return answer(t, request)
}

func answer(t *testing.T, request *http.Request) (int, string) {
	t.Helper()
	response := require.Value(http.DefaultClient.Do(request))(t)
	defer response.Body.Close()
	return response.StatusCode, string(require.Value(io.ReadAll(response.Body))(t))
}

func (p *program) get(t *testing.T, path string) (int, string) {
	t.Helper()
	return p.ask(t, http.MethodGet, path, "", "")
}

func (p *program) post(t *testing.T, path, body string) (int, string) {
	t.Helper()
	return p.ask(t, http.MethodPost, path, "application/json", body)
}

func TestEverythingIsServedOnOnePortAndNothingIsLeftBehind(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp) // Unix
	t.Setenv("TMP", temp)    // Windows
	p := start(t, "-flight=off")
	_, body := p.get(t, "/viz/records") // this client does not retry; ours would wait for a second after a 429
	refused := regexp.MustCompile(`\{[^{}]*"args":\[429\][^{}]*(\{[^{}]*\})?`).FindAllString(body, -1)
	assert.EqualSlices(t, nil, refused, "requests of our own that were answered 429")
	assert.True(t, strings.Contains(body, `"EtcdLookedAt"`), "the log does not say how etcd is")
	for path, want := range map[string]string{
		"/":                       "data-station",
		"/book/":                  "listwatch",
		"/book/06-cacher":         "Cacher",
		"/viz/snapshot":           `"seq":`,
		"/viz/state":              `"cachers"`,
		"/api/v1/pods":            `"PodList"`,
		"/version":                `"gitVersion"`,
		"/readyz":                 "ok",
		"/metrics":                `rest_client_requests_total{code="200"`,
		"/metrics?":               `watch_cache_capacity{group="",resource="pods"}`,
		"/api/v1/nodes":           `"NodeList"`,
		"/viz/points":             "RingAppend",
		"/viz/assets/log/fold.js": "",
	} {
		code, body := p.get(t, path)
		assert.True(t, code == http.StatusOK && strings.Contains(body, want), "GET %s: got %d without %q", path, code,
			want)
	}
	entries, _ := os.ReadDir(temp)
	assert.Equal(t, 1, len(entries), "while running: got %d temporary folders, want 1", len(entries))
	watch := require.Value(http.Get(p.url + "/api/v1/pods?watch=true"))(t)
	defer watch.Body.Close()
	p.endsWell(t)
	assert.NoError(t, assert.ErrorOf(io.ReadAll(watch.Body)), "the end of a stream that was open")
	entries, _ = os.ReadDir(temp)
	assert.Equal(t, 0, len(entries), "left behind: %v", entries)
}

func TestEverySwitchRuns(t *testing.T) {
	t.Parallel()
	for _, switches := range [][]string{
		{"-fifo=delta"}, {"-initial=list"}, {"-dispatch=sequential"}, {"-etcd-watcher=etcd2"},
		{"-storage-media-type=application/json"}, {"-ring-capacity=4"}, {"-clock=manual"}, {"-controllers=false",
			"-demo=false"}, {"-controllers=kubelet,namespace-controller"},
	} {
		t.Run(strings.Join(switches, " "), func(t *testing.T) {
			t.Parallel()
			p := start(t, switches...)
			name := strings.TrimLeft(strings.SplitN(switches[0], "=", 2)[0], "-")
			value := strings.SplitN(switches[0], "=", 2)[1]
			_, body := p.get(t, "/viz/snapshot")
			var snapshot struct{ Switches map[string]string }
			require.NoError(t, json.Unmarshal([]byte(body), &snapshot))
			got, shown := snapshot.Switches[name]
			assert.True(t, !shown || got == value, "the page says %s=%s, want %s", name, got, value)
			p.createPod(t, "a")
			code, _ := p.get(t, "/api/v1/namespaces/default/pods/a")
			assert.Equal(t, http.StatusOK, code, "get the pod")
			p.endsWell(t)
		})
	}
}

func (p *program) createPod(t *testing.T, name string) {
	t.Helper()
	code, body := p.post(t, "/api/v1/namespaces/default/pods",
		fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"containers":[{"name":"c","image":"i"}]}}`, name))
	require.Equal(t, http.StatusCreated, code, "create %s: %d %s", name, code, body)
}

func TestDataInAFolderSurvives(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	p := start(t, "-data-dir", dir, "-demo=false", "-controllers=false")
	p.createPod(t, "a")
	p.endsWell(t)
	p = start(t, "-data-dir", dir, "-demo=false", "-controllers=false")
	code, _ := p.get(t, "/api/v1/namespaces/default/pods/a")
	assert.Equal(t, http.StatusOK, code, "after a restart")
	// The folder is now in use, so a second program has to refuse it.
	var stderr strings.Builder
	status := run(t.Context(), []string{"-listen", "127.0.0.1:0", "-data-dir", dir}, io.Discard, &stderr)
	assert.True(t, status == exitError && strings.Contains(stderr.String(), "use") &&
		strings.Count(stderr.String(), "\n") == 1, "second program: status %d, stderr %q", status, stderr.String())
	p.endsWell(t)
}

func TestARecordingIsReplayed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "log.gz")
	p := start(t, "-record", file, "-demo=false", "-fifo=delta")
	p.createPod(t, "recorded")
	p.endsWell(t)
	_, records := readRecording(t, file)
	count := map[probe.Point]int{}
	for i := range records {
		count[records[i].Point]++
	}
	for begin, end := range map[probe.Point]probe.Point{probe.WatcherAdded: probe.WatcherRemoved,
		probe.ListenerAdded: probe.ListenerRemoved, probe.WireOpened: probe.WireClosed} {
		assert.True(t, count[begin] != 0 && count[begin] == count[end], "%d %v, %d %v", count[begin], begin, count[end],
			end)
	}
	p = start(t, "-replay", file)
	var body string
	appears := func() bool {
		_, body = p.get(t, "/viz/snapshot")
		return strings.Contains(body, "default/recorded") && strings.Contains(body, `"fifo":"delta"`)
	}
	require.True(t, eventually.Did(patience, appears), "the pod does not appear in the replay: %s", body)
	_, body = p.get(t, "/")
	assert.True(t, strings.Contains(body, `data-mode="replay"`), "the page does not say that this is a replay")
	code, _ := p.get(t, "/api/v1/pods")
	assert.Equal(t, http.StatusNotFound, code, "the API of a replay")
	p.endsWell(t)
}

func TestWhatCannotBeStartedIsOneLineAndAStatus(t *testing.T) {
	t.Parallel()
	taken := require.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { taken.Close() }) // the cases run after this function returns
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("hello"), 0o600))
	free := []string{"-listen", "127.0.0.1:0"}
	type refusal struct {
		name   string
		args   []string
		status int
		want   string
	}
	tests := []refusal{
		{"writes to no server", []string{"-server-writes"}, exitUsage, "-server"},
		{"taken port", []string{"-listen", taken.Addr().String()}, exitError, "cannot listen on " +
			taken.Addr().String() + ": " + syscall.EADDRINUSE.Error() + "; -listen 127.0.0.1:0 takes a free port"},
		{"no such flag", []string{"-no-such-flag"}, exitUsage, "-no-such-flag"},
		{"argument", []string{"here"}, exitUsage, `unexpected argument "here"`},
		{"address without port", []string{"-listen", "localhost"}, exitUsage, "missing port"},
		{"unknown queue", []string{"-fifo=lifo"}, exitUsage, "want real or delta"},
		{"negative ring", []string{"-ring-capacity=-1"}, exitUsage, "want 0 to 102400"},
		{"no such controller", []string{"-controllers=kubelet,gardener"}, exitUsage, `no controller "gardener"`},
		{"a log of nothing", []string{"-log-size", "10"}, exitUsage, "want 4096 to 4194304"},
		{"flight to nowhere", []string{"-flight", filepath.Join(file, "x")}, exitUsage, "no such folder"},
		{"export to nowhere", []string{"-export", filepath.Join(file, "x")}, exitError, "-export"},
		{"empty endpoint", append(free, "-etcd-endpoints", "127.0.0.1:1,"), exitError, "cannot be reached"},
		{"endpoint that is no URL", append(free, "-etcd-endpoints", "http://%zz"), exitError, "http://%zz"},
		{"data dir is a file", append(free, "-data-dir", file), exitError, file},
		{"unreachable etcd", append(free, "-etcd-endpoints", "127.0.0.1:1"), exitError, "cannot be reached"},
		{"no such recording", append(free, "-replay", file+".no"), exitError, "-replay"},
		{"no recording at all", append(free, "-replay", file), exitError, "not a recording"},
		{"kubeconfig over a file", append(free, "-kubeconfig", file), exitError, "as this program writes it"},
		{"record over a file", append(free, "-record", file), exitError, "as this program writes it"},
		{"export over files", []string{"-export", filepath.Dir(file)}, exitError, "and not an export"},
		{"record nowhere", append(free, "-record", filepath.Join(file, "x")), exitError, "-record"},
		{"kubeconfig nowhere", append(free, "-kubeconfig", filepath.Join(file, "x")), exitError, "-kubeconfig: open "},
	}
	for _, pair := range [][2]string{{"-data-dir", "-etcd-endpoints"}, {"-record", "-replay"}, {"-replay", "-data-dir"},
		{"-replay", "-etcd-endpoints"}, {"-replay", "-export"}, {"-export", "-etcd-endpoints"},
		{"-server", "-export"}} {
		both := []string{pair[0] + "=http://127.0.0.1:1", pair[1] + "=http://127.0.0.1:1"}
		tests = append(tests, refusal{strings.Join(pair[:], " and "), both, exitUsage, "exclude each other"})
	}
	for _, with := range []string{"-replay=x", "-data-dir=x", "-etcd-endpoints=http://x:1", "-ring-capacity=9", "-demo",
		"-dispatch=sequential"} {
		args := []string{"-server=http://127.0.0.1:8001", with}
		tests = append(tests, refusal{"a server elsewhere and " + with, args, exitUsage, "-server"})
	}
	for _, server := range []string{"127.0.0.1:8001", "ftp://x", "http://me:pw@x"} {
		tests = append(tests, refusal{"the server " + server, []string{"-server=" + server}, exitUsage, "-server"})
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr strings.Builder
			status := run(t.Context(), test.args, &stdout, &stderr)
			assert.True(t, status == test.status && strings.Contains(stderr.String(), test.want),
				"got status %d and %q, want %d and %q", status, stderr.String(), test.status, test.want)
			if strings.Count(stderr.String(), "\n") != 1 || stdout.Len() != 0 ||
				strings.Contains(stderr.String(), "me:pw") {
				t.Errorf("want one line on stderr and none on stdout, got %q and %q", stderr.String(), stdout.String())
			}
		})
	}
}

func TestHelpIsNoMistake(t *testing.T) {
	var stderr strings.Builder
	assert.Equal(t, exitOK, run(t.Context(), []string{"-h"}, io.Discard, &stderr), "status")
	assert.True(t, strings.Contains(stderr.String(), "  -etcd-endpoints"), "got %s", stderr.String())
}

func TestListeningToTheWorldIsWarnedOf(t *testing.T) {
	listener := require.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	var stderr strings.Builder
	warnIfOpen(listener, &stderr)
	assert.True(t, stderr.Len() == 0, "loopback: got %q", stderr.String())
	warnIfOpen(openListener{listener}, &stderr)
	assert.True(t, strings.Contains(stderr.String(), "warning: 192.0.2.1:80"), "beyond loopback: got %q",
		stderr.String())
}

func TestTheAddressThatIsPrintedIsOfTheFamilyThatWasAskedFor(t *testing.T) {
	for asked, want := range map[string]string{
		"0.0.0.0:80": "http://127.0.0.1:80", ":80": "http://127.0.0.1:80", "[::]:80": "http://[::1]:80",
	} {
		assert.Equal(t, want, baseURL(asked, &net.TCPAddr{IP: net.IPv6unspecified, Port: 80}).String(), asked)
	}
	assert.Equal(t, "http://[::1]:80", baseURL("localhost:0", &net.TCPAddr{IP: net.IPv6loopback, Port: 80}).String(),
		"localhost")
}

// openListener pretends to listen beyond loopback; a test must not really listen there.
type openListener struct{ net.Listener }

func (openListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80} }

func TestAKubeconfigNamesTheServer(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "config")
	p := start(t, "-demo=false", "-controllers=false", "-flight=off", "-kubeconfig", file)
	text := require.Value(os.ReadFile(file))(t)
	var config struct {
		Kind     string
		Clusters []struct{ Cluster struct{ Server string } }
	}
	require.NoError(t, yaml.Unmarshal(text, &config))
	assert.Equal(t, "Config", config.Kind)
	assert.Equal(t, p.url, config.Clusters[0].Cluster.Server)
}
