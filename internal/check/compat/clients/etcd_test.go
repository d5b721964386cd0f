//go:build full

package clients

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
)

const configMaps = "/api/v1/namespaces/default/configmaps"

// commands returns the commands in docs/BEYOND.md that start three etcd nodes and two servers, with free ports.
func commands(t *testing.T) (typed []string) {
	t.Helper()
	text := string(require.Value(os.ReadFile("../../../../docs/BEYOND.md"))(t))
	_, block, found := strings.Cut(text, "```console linux "+t.Name()+"\n")
	block, _, _ = strings.Cut(block, "```")
	require.True(t, found, "docs/BEYOND.md has no block of %s", t.Name())
	block = strings.ReplaceAll(block, "\\\n> ", "")
	ports := map[string]string{}
	block = regexp.MustCompile(`127\.0\.0\.1:\d+`).ReplaceAllStringFunc(block, func(address string) string {
		if ports[address] == "" {
			l := require.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
			defer l.Close() // frees the port for the node
			ports[address] = l.Addr().String()
		}
		return ports[address]
	})
	for line := range strings.Lines(block) {
		line, _, _ = strings.Cut(strings.TrimPrefix(line, "$ "), "  #")
		typed = append(typed, strings.TrimSpace(line))
	}
	return typed
}

// three is a cluster of three etcd nodes, and two of our servers that use it.
type three struct {
	nodes   map[string]*program.Process // by client address
	servers []*program.Viz
	client  *clientv3.Client
}

func startThree(t *testing.T) *three {
	c := &three{nodes: map[string]*program.Process{}}
	dir := t.TempDir()
	for _, typed := range commands(t) {
		words := strings.Fields(typed)
		switch words[0] {
		case "bin/etcd":
			etcd := exec.Command(program.BuildOf(t, ".", "go.etcd.io/etcd/server/v3"), words[1:]...)
			etcd.Dir = dir
			i := slices.Index(words, "--advertise-client-urls")
			c.nodes[words[i+1]] = program.Start(t, etcd)
		case "go":
			if strings.HasPrefix(typed, "go run ./cmd/viz -etcd-endpoints ") {
				c.servers = append(c.servers, program.StartViz(t, append(words[3:], "-flight=off", "-demo=false",
					"-controllers=false")...))
			}
		}
	}
	endpoints := slices.Sorted(maps.Keys(c.nodes))
	require.True(t, len(endpoints) == 3 && len(c.servers) == 2, "got %v and %d servers", endpoints, len(c.servers))
	c.client = require.Value(clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop()}))(t)
	t.Cleanup(func() { c.client.Close() })
	return c
}

// leader waits until etcd has a leader, and returns its client address.
func (c *three) leader(t *testing.T) (address string) {
	t.Helper()
	program.Eventually(t, patience, func() (bool, string) {
		for each := range c.nodes {
			status, err := c.client.Status(t.Context(), each)
			if err == nil && status.Leader == status.Header.MemberId {
				address = each
			}
		}
		return address != "", "no node leads"
	})
	return address
}

func (c *three) kill(address string) {
	c.nodes[address].Kill()
	delete(c.nodes, address)
}

// ask sends a request and returns the response's status and body, or 0 and the error.
func ask(t *testing.T, method, url, body string) (int, string) {
	request := require.Value(http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body)))(t)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(text)
}

// writer creates objects at a server, one after the other.
type writer struct {
	server  *program.Viz
	name    string
	created atomic.Int64 // writes that returned 201
	longest atomic.Int64 // the longest time between two such writes, in nanoseconds
}

func (w *writer) run(t *testing.T, end <-chan struct{}) {
	last := time.Now()
	for i := 0; ; i++ {
		select {
		case <-end:
			return
		default:
		}
		code, _ := ask(t, "POST", w.server.URL+configMaps, fmt.Sprintf(`{"metadata":{"name":"%s-%d"}}`, w.name, i))
		if code == http.StatusCreated {
			w.longest.Store(max(w.longest.Load(), int64(time.Since(last))))
			w.created.Add(1)
			last = time.Now()
		}
	}
}

// TestWritesGoOnThroughALeadersDeath runs the commands of docs/BEYOND.md, writes at both servers, and kills the leading
// node of etcd. Then it kills a second node: without a majority, writes must time out, but cached lists must work.
func TestWritesGoOnThroughALeadersDeath(t *testing.T) {
	c := startThree(t)
	lists := func() (n []int) {
		for _, each := range c.servers {
			points := each.Points(t)
			n = append(n, points["ReflectorListed"], points["WatcherForced"])
		}
		return n
	}
	before := lists()
	end := make(chan struct{})
	var writing sync.WaitGroup
	var writers []*writer
	for i, each := range c.servers {
		w := &writer{server: each, name: fmt.Sprintf("w%d", i)}
		writers = append(writers, w)
		writing.Go(func() { w.run(t, end) })
	}
	written := func(more int64) {
		t.Helper()
		var from []int64
		for _, w := range writers {
			from = append(from, w.created.Load())
		}
		program.Eventually(t, patience, func() (bool, string) {
			for i, w := range writers {
				if w.created.Load() < from[i]+more {
					return false, fmt.Sprintf("%s has written %d objects", w.name, w.created.Load())
				}
			}
			return true, ""
		})
	}
	written(20)
	c.kill(c.leader(t))
	written(20)
	close(end)
	writing.Wait()
	assert.EqualSlices(t, before, lists(), "lists and evictions")
	for _, w := range writers {
		t.Logf("%s: %d writes, and %v at most between two", w.name, w.created.Load(), time.Duration(w.longest.Load()))
	}
	for _, server := range c.servers { // both servers must hold every write that returned 201
		code, body := ask(t, "GET", server.URL+configMaps, "")
		var list struct {
			Items []struct{ Metadata struct{ Name string } }
		}
		require.NoError(t, json.Unmarshal([]byte(body), &list), "%d %s", code, body)
		for _, w := range writers {
			n := int64(0)
			for _, item := range list.Items {
				if strings.HasPrefix(item.Metadata.Name, w.name+"-") {
					n++
				}
			}
			told := w.created.Load()
			assert.True(t, n >= told, "%s has %d objects of %s, which created %d", server.URL, n, w.name, told)
		}
	}

	c.kill(slices.Collect(maps.Keys(c.nodes))[0])
	for _, server := range c.servers {
		program.Eventually(t, patience, func() (bool, string) {
			code, body := ask(t, "GET", server.URL+"/readyz", "")
			return code == http.StatusInternalServerError && strings.Contains(body, "etcd has no leader"), body
		})
		for _, each := range []struct {
			method, query, body string
			code                int
			says                string
		}{
			{"GET", "?resourceVersion=0", "", http.StatusOK, `"w0-0"`},
			{"GET", "?timeout=2s", "", http.StatusGatewayTimeout, `"reason":"Timeout"`},
			{"POST", "?timeout=2s", `{"metadata":{"name":"late"}}`, http.StatusGatewayTimeout, `"reason":"Timeout"`},
		} {
			code, body := ask(t, each.method, server.URL+configMaps+each.query, each.body)
			assert.True(t, code == each.code && strings.Contains(body, each.says),
				"%s %s without a majority: %d %.300s", each.method, each.query, code, body)
		}
	}
}
