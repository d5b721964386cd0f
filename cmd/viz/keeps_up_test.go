package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/eventually"
	"listwatch/internal/check/require"
)

// TestTheClientHalfKeepsUp writes as fast as eight clients can. Nothing of the client half may be evicted or begin
// again. With a ring of this size each watcher's channels hold a hundred events: enough for a moment in which a busy
// machine does not let the program run, and nothing to a client that reads slowly.
func TestTheClientHalfKeepsUp(t *testing.T) {
	const clients, each = 8, 250
	p := start(t, "-demo=false", "-controllers=false", "-flight=off", "-ring-capacity=8192")
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

var versions = regexp.MustCompile(`at \d+`)

// TestOnlyTheClientThatSleepsIsEvicted is block 4 of docs/WORKSHOP.md: the reader, registered behind the sleeper, gets
// the change after the wait or before it.
func TestOnlyTheClientThatSleepsIsEvicted(t *testing.T) {
	for dispatch, wait := range map[string]string{ // w5 sleeps, w6 reads
		"sequential": "waits with MODIFIED default/big at N.\n  MODIFIED default/big at N enters the input of w6.\n",
		"two-phase":  "waits with MODIFIED default/big at N.\n  1 watcher had no room; the dispatcher may wait up to",
	} {
		t.Run(dispatch, func(t *testing.T) {
			p := start(t, "-demo=false", "-flight=off", "-dispatch="+dispatch)
			var out, stderr strings.Builder
			if status := run(t.Context(), []string{"-sleeper", p.url}, &out, &stderr); status != exitOK {
				t.Fatalf("status %d, %s", status, &stderr)
			}
			t.Logf("%s", &out)
			for _, want := range []string{"the reader was sent 100 changes\n", wait, "does not keep up and is closed",
				"the end of its stream, and no error\n"} {
				if !strings.Contains(versions.ReplaceAllString(out.String(), "at N"), want) {
					t.Errorf("got %q without %q", out.String(), want)
				}
			}
			if got := p.pods(t); got["WatcherForced"] != 1 || got["ReflectorWatchEnded"] != 0 {
				t.Errorf("got %d evictions, and %d reflectors whose watch ended; want 1 and 0", got["WatcherForced"],
					got["ReflectorWatchEnded"])
			}
			code, _ := p.get(t, "/api/v1/namespaces/default/pods/big")
			assert.Equal(t, code, http.StatusNotFound, "the pod is left behind")
			p.end(t)
		})
	}
}

func TestAStreamThatBreaksIsNoEndOfAStream(t *testing.T) {
	const change = `{"object":{"metadata":{"annotations":{"n":"3"}}}}`
	for stream, want := range map[string]error{"": nil, change: nil, change + "\n": nil, change +
		`{"obj`: io.ErrUnexpectedEOF} {
		seen, err := readChanges(strings.NewReader(stream))
		assert.True(t, errors.Is(err, want) && !seen.last, "%q: got %+v, %v, want %v", stream, seen, err, want)
	}
}

func TestAWatchThatIsRefusedIsNotRead(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	at, err := url.Parse(server.URL)
	require.NoError(t, err)
	if stream, err := open(t.Context(), server.Client(), at, "sleeper"); err == nil || !strings.Contains(err.Error(),
		"404") {
		t.Errorf("got %v, %v", stream, err)
	}
}

// TestTheSleeperWritesToNoOtherServer: its pod would be one too many in a cluster at work.
func TestTheSleeperWritesToNoOtherServer(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, r.Method, http.MethodGet, "got %s %s", r.Method, r.URL)
		http.NotFound(w, r)
	}))
	defer other.Close()
	var stderr strings.Builder
	if status := run(t.Context(), []string{"-sleeper", other.URL}, io.Discard, &stderr); status != exitError ||
		!strings.Contains(stderr.String(), "no listwatch at "+other.URL) {
		t.Errorf("got status %d, %s", status, &stderr)
	}
}

// patchPod returns the resource version of the pod that the merge patch made.
func (p *program) patchPod(t *testing.T, name, patch string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, p.url+"/api/v1/namespaces/default/pods/"+
		name, strings.NewReader(patch))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/merge-patch+json")
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
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
	require.NoError(t, json.Unmarshal([]byte(body), &snapshot))
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
	require.NoError(t, json.Unmarshal([]byte(body), &now))
	return now
}

func (p *program) informerHolds(t *testing.T, n int) {
	t.Helper()
	eventually.Holds(t, fmt.Sprintf("the informer holds %d pods", n),
		func() bool { return p.informer(t).Client.Informer.Indexer.Objects >= n })
}
