package main

import (
	"encoding/json"
	"fmt"
	"net/http"
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
	t.Logf("a write after the leader is gone took %v; the aim is 3s", p.createUntilItIs(t, "after"))
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
	t.Run("without a majority", func(t *testing.T) { askWithoutMajority(t, p, known, newest) })
	eventually.Holds(t, "the log says why", func() bool {
		_, body := p.get(t, "/viz/records")
		return strings.Contains(body,
			"it takes no writes, etcd has no leader: a majority of its members cannot be reached")
	})
	p.send(t, "POST", "/viz/reset", "")
	eventually.Holds(t, "ready again", func() bool { code, _ := p.get(t, "/readyz"); return code == http.StatusOK })
	p.createUntilItIs(t, "again")
	for _, each := range []*program{other, p} {
		if status := each.end(t); status != exitOK {
			t.Errorf("status: got %d; stderr %q", status, each.stderr)
		}
	}
}
