package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/eventually"
	"listwatch/internal/check/require"
	"listwatch/internal/play/sandbox"
	"listwatch/internal/server/etcdnode"
)

// send returns the status and body of one request.
func (p *program) send(t *testing.T, method, path, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, p.url+path, strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	answer, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(answer)
}

func TestAFullEtcdRefusesWritesUntilSomethingIsDeleted(t *testing.T) {
	t.Parallel()
	p := start(t, "-flight=off", "-demo=false", "-controllers=false", "-etcd-quota=4194304")
	const configMaps = "/api/v1/namespaces/default/configmaps"
	configMap := func(name string, kB int) string {
		return fmt.Sprintf(`{"metadata":{"name":%q},"data":{"a":%q}}`, name, strings.Repeat("x", kB<<10))
	}
	ready := func() bool { code, _ := p.get(t, "/readyz"); return code == http.StatusOK }
	eventually.Holds(t, "ready", ready)
	code, body := 0, ""
	for i := 0; i < 100 && (code == 0 || code == http.StatusCreated); i++ {
		code, body = p.send(t, "POST", configMaps, configMap(fmt.Sprint("c", i), 300))
	}
	if code != http.StatusInternalServerError || !strings.Contains(body, "etcdserver: mvcc: database space exceeded") {
		t.Fatalf("got %d %s", code, body)
	}
	// For what was refused there was no room; for something smaller there may be, until that is full, too.
	n, failed, told := 0, false, false
	eventually.Holds(t, "readyz fails, and the page says why", func() bool {
		n++
		p.send(t, "POST", configMaps, configMap(fmt.Sprint("small", n), 20))
		_, body := p.get(t, "/readyz")
		failed = failed || strings.Contains(body, "[-]etcd failed: etcdserver: mvcc: database space exceeded\n")
		_, body = p.get(t, "/viz/records")
		told = told || strings.Contains(body, "it takes no writes, etcdserver: mvcc: database space exceeded")
		return failed && told
	})
	if code, _ := p.get(t, "/livez"); code != http.StatusOK {
		t.Errorf("livez: %d", code)
	}
	if code, body := p.send(t, "DELETE", configMaps, ""); code != http.StatusOK {
		t.Fatalf("delete: %d %s", code, body)
	}
	// Something small may fit before the space of what was deleted has come back.
	eventually.Holds(t, "something large can be created again", func() bool {
		code, _ := p.send(t, "POST", configMaps, configMap("again", 300))
		return code == http.StatusCreated
	})
	eventually.Holds(t, "ready again", ready)
	if status := p.end(t); status != exitOK {
		t.Errorf("status: got %d; stderr %q", status, p.stderr)
	}
}

// asProgram in the environment makes this test binary the program.
const asProgram = "VIZ_TEST_AS_PROGRAM"

func init() {
	if os.Getenv(asProgram) != "" {
		main()
	}
}

// fill creates large configmaps until the program at url ends.
func fill(url string) {
	body := `{"metadata":{"generateName":"big-"},"data":{"x":"` + strings.Repeat("x", 300<<10) + `"}}`
	for {
		answer, err := http.Post(url+"/api/v1/namespaces/default/configmaps", "application/json",
			strings.NewReader(body))
		if err != nil {
			return
		}
		answer.Body.Close()
	}
}

// TestADataFolderThatIsGoneEndsTheProgramWithOneLine writes until etcd wants its next file. It runs another process:
// what is left of a broken etcd cannot be ended.
func TestADataFolderThatIsGoneEndsTheProgramWithOneLine(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	flags := []string{"-listen", "127.0.0.1:0", "-flight=off", "-demo=false", "-controllers=false", "-data-dir", dir}
	child := exec.CommandContext(ctx, os.Args[0], flags...)
	child.Env = append(os.Environ(), asProgram+"=1")
	var stderr strings.Builder
	child.Stderr = &stderr
	stdout, err := child.StdoutPipe()
	require.NoError(t, errors.Join(err, child.Start()))
	line, err := bufio.NewReader(stdout).ReadString('\n')
	url, listens := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err := errors.Join(err, os.RemoveAll(dir)); err != nil || !listens {
		t.Fatalf("the first line is %q, %v", line, err)
	}
	go fill(url)
	p := &program{url: url}
	eventually.Holds(t, "the page says it", func() bool {
		_, body := p.get(t, "/viz/snapshot")
		return strings.Contains(body, "EtcdFailed")
	})
	http.DefaultClient.CloseIdleConnections()
	_ = child.Wait() // says which status it was
	said := stderr.String()
	if child.ProcessState.ExitCode() != exitError || strings.Count(said, "\n") != 1 ||
		!strings.Contains(said, dir) || !strings.Contains(said, "The folder is gone") {
		t.Errorf("got %v and %q", child.ProcessState, said)
	}
}

const podsPath = "/api/v1/namespaces/default/pods"

// nodes returns how the nodes of etcd stand, and who leads.
func (p *program) nodes(t *testing.T) (nodes []sandbox.NodeInfo, leader string) {
	t.Helper()
	_, body := p.get(t, "/viz/knobs")
	var knobs struct {
		Nodes []sandbox.NodeInfo
		Etcd  etcdnode.State
	}
	require.NoError(t, json.Unmarshal([]byte(body), &knobs))
	for _, m := range knobs.Etcd.Members {
		if m.Leader {
			leader = m.Name
		}
	}
	return knobs.Nodes, leader
}

func (p *program) runNode(t *testing.T, name string, up bool) {
	t.Helper()
	if code, body := p.send(t, "POST", "/viz/knobs", fmt.Sprintf(`{"name":"etcd.node","target":%q,"value":"%v"}`, name,
		up)); code != http.StatusOK {
		t.Fatalf("run %s %v: %d %s", name, up, code, body)
	}
}

// createUntilItIs returns how long it took until a new pod was created.
func (p *program) createUntilItIs(t *testing.T, name string) time.Duration {
	t.Helper()
	began := time.Now()
	eventually.Holds(t, "create "+name, func() bool {
		code, _ := p.send(t, "POST", podsPath, onePod(name))
		return code == http.StatusCreated || code == http.StatusConflict
	})
	return time.Since(began)
}

func onePod(name string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"containers":[{"name":"c","image":"i"}]}}`, name)
}

// askWithoutMajority asks for what a server still knows, and for what only etcd could say or do. known is a version
// before the pod "after" was created, newest one that it has.
func askWithoutMajority(t *testing.T, p *program, known, newest string) {
	for _, each := range []struct {
		method, query, body string
		code                int
		says                string
	}{
		{"GET", "?resourceVersion=0", "", http.StatusOK, `"after"`},
		{"GET", "?resourceVersion=" + newest, "", http.StatusOK, `"after"`},
		{"GET", "/after?resourceVersion=0", "", http.StatusOK, `"after"`},
		{"GET", "?watch=true&timeoutSeconds=1&resourceVersion=" + known, "", http.StatusOK, `"after"`},
		{"GET", "?resourceVersion=9" + newest, "", http.StatusGatewayTimeout, "Too large resource version"},
		{"GET", "?timeout=2s", "", http.StatusGatewayTimeout, `"reason":"Timeout"`},
		{"GET", "/after?timeout=2s", "", http.StatusGatewayTimeout, `"reason":"Timeout"`},
		{"POST", "?timeout=2s", onePod("late"), http.StatusGatewayTimeout, `"reason":"Timeout"`},
	} {
		t.Run(each.method+each.query, func(t *testing.T) {
			t.Parallel() // it takes seconds until a request is given up
			code, body := p.send(t, each.method, podsPath+each.query, each.body)
			assert.True(t, code == each.code && strings.Contains(body, each.says),
				"got %d %.300s, want %d with %s", code, body, each.code, each.says)
		})
	}
}

func TestTwoServersOnAClusterOutliveItsLeader(t *testing.T) {
	t.Parallel()
	p := start(t, "-flight=off", "-demo=false", "-controllers=false", "-etcd-nodes=3")
	_, args, ok := strings.Cut(strings.TrimSpace(p.stderr.String()), "another viz on this etcd: ")
	if !ok {
		t.Fatalf("stderr names no endpoints: %q", p.stderr)
	}
	other := start(t, append(strings.Fields(args), "-flight=off", "-demo=false", "-controllers=false")...)
	leader := ""
	eventually.Holds(t, "a leader is seen", func() bool { _, leader = p.nodes(t); return leader != "" })
	p.createPod(t, "before")
	eventually.Holds(t, "the informer sees it",
		func() bool { return p.informer(t).Client.Informer.Indexer.Objects == 1 })
	known := p.informer(t).Client.Informer.Reflector.LastSyncResourceVersion
	before := other.pods(t)

	p.runNode(t, leader, false)
	t.Logf("a write after the leader is gone took %v", p.createUntilItIs(t, "after"))
	for i, each := range []*program{p, other} {
		eventually.Holds(t, "the informer sees it", func() bool {
			return each.informer(t).
				Client.Informer.Indexer.Objects == 2
		})
		if after := each.pods(t); after["WatcherForced"] != 0 || after["ReflectorListed"] != before["ReflectorListed"] {
			t.Errorf("server %d: %d evictions, %d lists, want 0 and %d", i, after["WatcherForced"],
				after["ReflectorListed"], before["ReflectorListed"])
		}
	}

	// Without a majority the cache answers requests that name a version they are content with, and no others.
	newest := p.informer(t).Client.Informer.Reflector.LastSyncResourceVersion
	nodes, _ := p.nodes(t)
	i := slices.IndexFunc(nodes, func(n sandbox.NodeInfo) bool { return n.Running })
	p.runNode(t, nodes[i].Name, false)
	eventually.Holds(t, "readyz fails", func() bool {
		code, _ := p.get(t, "/readyz")
		return code == http.StatusInternalServerError
	})
	// /readyz fails as soon as etcd does not answer. Only when the last node has noticed that its leader is gone does a
	// write have no leader to wait for.
	eventually.Holds(t, "the log says why", func() bool {
		_, body := p.get(t, "/viz/records")
		return strings.Contains(body,
			"it takes no writes, etcd has no leader: a majority of its members cannot be reached")
	})
	t.Run("without a majority", func(t *testing.T) { askWithoutMajority(t, p, known, newest) })
	p.send(t, "POST", "/viz/reset", "")
	eventually.Holds(t, "ready again", func() bool { code, _ := p.get(t, "/readyz"); return code == http.StatusOK })
	p.createUntilItIs(t, "again")
	for _, each := range []*program{other, p} {
		if status := each.end(t); status != exitOK {
			t.Errorf("status: got %d; stderr %q", status, each.stderr)
		}
	}
}
