package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestTheClientHalfKeepsUp writes as fast as eight clients can. Nothing of the client half may be evicted or begin again.
func TestTheClientHalfKeepsUp(t *testing.T) {
	const clients, each = 8, 500
	p := start(t, "-demo=false", "-controllers=false", "-flight=off")
	before := p.pods(t)
	var writers sync.WaitGroup
	began := time.Now()
	for client := range clients {
		writers.Go(func() {
			for i := range each {
				p.createPod(t, fmt.Sprintf("p-%d-%d", client, i))
			}
		})
	}
	writers.Wait()
	took := time.Since(began)
	began = time.Now()
	p.informerHolds(t, clients*each)
	t.Logf("%d pods created in %v; the informer held the last one %v later", clients*each, took, time.Since(began))
	after := p.pods(t)
	for _, point := range []string{"WatcherForced", "ReflectorListed", "ReflectorWatchEnded"} {
		if before[point] != after[point] {
			t.Errorf("%s: %d before, %d after", point, before[point], after[point])
		}
	}
	p.end(t)
}

// TestOnlyTheClientThatSleepsIsEvicted is block 4 of docs/WORKSHOP.md.
func TestOnlyTheClientThatSleepsIsEvicted(t *testing.T) {
	for _, dispatch := range []string{"sequential", "two-phase"} {
		t.Run(dispatch, func(t *testing.T) {
			p := start(t, "-demo=false", "-flight=off", "-dispatch="+dispatch)
			open := p.pods(t)["WireOpened"]
			sleeper, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer sleeper.Close()
			fmt.Fprintf(sleeper, "GET /api/v1/pods?watch=true HTTP/1.1\r\nHost: %s\r\nUser-Agent: sleeper\r\n\r\n", sleeper.RemoteAddr())
			until(t, "the sleeper's watch is open", func() bool { return p.pods(t)["WireOpened"] > open })
			p.createPod(t, "a")
			p.patchPod(t, "a", fmt.Sprintf(`{"metadata":{"annotations":{"big":%q}}}`, strings.Repeat("x", 100_000)))
			last := ""
			for i := range 200 {
				last = p.patchPod(t, "a", fmt.Sprintf(`{"metadata":{"labels":{"n":"%d"}}}`, i))
			}
			began := time.Now()
			p.informerReaches(t, last)
			t.Logf("the informer held the last change %v later", time.Since(began))
			if got := p.pods(t); got["WatcherForced"] != 1 || got["ReflectorWatchEnded"] != 0 {
				t.Errorf("got %d evictions, and %d reflectors whose watch ended; want 1 and 0", got["WatcherForced"], got["ReflectorWatchEnded"])
			}
			// The sleeper wakes up, reads what the kernel kept for it, and finds the end of its stream.
			_ = sleeper.SetReadDeadline(time.Now().Add(patience))
			stream, err := http.ReadResponse(bufio.NewReader(sleeper), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, stream.Body); err != nil {
				t.Errorf("the sleeper's stream ends with %v", err)
			}
			p.end(t)
		})
	}
}

// patchPod returns the resource version of the pod that the merge patch made.
func (p *program) patchPod(t *testing.T, name, patch string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, p.url+"/api/v1/namespaces/default/pods/"+name, strings.NewReader(patch))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/merge-patch+json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var pod struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.NewDecoder(response.Body).Decode(&pod); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("patch %s: %d, %v", name, response.StatusCode, err)
	}
	return pod.Metadata.ResourceVersion
}

// pods returns how often each point of the pods was reported.
func (p *program) pods(t *testing.T) map[string]int {
	t.Helper()
	_, body := p.get(t, "/viz/snapshot")
	var snapshot struct {
		State struct {
			Resources map[string]struct{ Points map[string]int }
		}
	}
	if err := json.Unmarshal([]byte(body), &snapshot); err != nil {
		t.Fatal(err)
	}
	return snapshot.State.Resources["pods"].Points
}

// informerOf is what /viz/state says of the informer of all pods.
type informerOf struct {
	Client struct {
		Informer struct {
			Reflector struct{ LastSyncResourceVersion string }
			Indexer   struct{ Objects int }
		}
	}
}

func (p *program) informer(t *testing.T) (now informerOf) {
	t.Helper()
	_, body := p.get(t, "/viz/state")
	if err := json.Unmarshal([]byte(body), &now); err != nil {
		t.Fatal(err)
	}
	return now
}

func (p *program) informerHolds(t *testing.T, n int) {
	t.Helper()
	until(t, fmt.Sprintf("the informer holds %d pods", n), func() bool { return p.informer(t).Client.Informer.Indexer.Objects >= n })
}

func (p *program) informerReaches(t *testing.T, rv string) {
	t.Helper()
	want, err := strconv.ParseUint(rv, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the informer is at "+rv, func() bool {
		now, _ := strconv.ParseUint(p.informer(t).Client.Informer.Reflector.LastSyncResourceVersion, 10, 64)
		return now >= want
	})
}

// until returns when fact is true.
func until(t *testing.T, what string, fact func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !fact(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not in time: " + what)
		}
	}
}
