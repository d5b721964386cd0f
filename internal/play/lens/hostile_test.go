package lens

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// TestOnlyAWatchThatIsKnownBecomesAWebsocket has a server that turns every request into a stream in both directions.
func TestOnlyAWatchThatIsKnownBecomesAWebsocket(t *testing.T) {
	var reached atomic.Int64
	b := newBench(t, false, true, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/v1":
			_, _ = io.WriteString(w,
				`{"resources":[{"name":"pods","verbs":["list","watch"]},{"name":"bindings","verbs":["create"]}]}`)
		case "/apis/apps/v1beta9":
			_, _ = io.WriteString(w, `{"resources":[{"name":"deployments","verbs":["list","watch"]}]}`)
		case "/apis/away.test/v1":
			http.Error(w, "", http.StatusServiceUnavailable)
		default:
			reached.Add(1)
			w.Header().Set("Connection", "Upgrade")
			w.Header().Set("Upgrade", r.Header.Get("Upgrade"))
			w.WriteHeader(http.StatusSwitchingProtocols)
		}
	})
	const console = "/apis/subresources.kubevirt.io/v1/namespaces/d/virtualmachineinstances/vm/"
	for _, c := range []struct {
		method, path string
		upgrade      []string
		want         int
	}{
		{"GET", console + "console?watch=true", []string{"websocket"}, 403},
		{"GET", console + "vnc?watch=1", []string{"SPDY/3.1"}, 403},
		{"GET", "/anything?watch=true", []string{"websocket"}, 403},
		{"GET", "/api/v1/pods?watch=1", []string{"h2c"}, 403},
		{"GET", "/api/v1/pods?watch=1", []string{"websocket", "h2c"}, 403},
		{"GET", "/api/v1/pods?watch=1", []string{"websocket, h2c"}, 403},
		{"GET", "/api/v1/pods?watch=1", []string{""}, 403},
		{"HEAD", "/api/v1/pods?watch=1", []string{"websocket"}, 403},
		{"POST", "/api/v1/pods?watch=1", []string{"websocket"}, 405},
		{"GET", "/api/v1/pods", []string{"websocket"}, 403},
		{"GET", "/api/v1/pods?watch=0", []string{"websocket"}, 403},
		{"GET", "/api/v1/namespaces/d/pods/a?watch=1", []string{"websocket"}, 403},
		{"GET", "/api/v1/watch/pods", []string{"websocket"}, 403},
		{"GET", "/api/v1/%70ods?watch=1", []string{"websocket"}, 403},
		{"GET", "/api/v1/namespaces/d%2Fpods?watch=1", []string{"websocket"}, 403},
		{"GET", "/api/v1/namespaces/../pods?watch=1", []string{"websocket"}, 403},
		{"GET", "/api/v1/bindings?watch=1", []string{"websocket"}, 403},
		{"GET", "/api/v1/gadgets?watch=1", []string{"websocket"}, 403},
		{"GET", "/apis/away.test/v1/gadgets?watch=1", []string{"websocket"}, 403},
		{"GET", "/api/v1/pods?watch=1", []string{"WebSocket"}, 101},
		{"GET", "/api/v1/namespaces/d/pods?watch", []string{"websocket"}, 101},
		{"GET", "/apis/apps/v1beta9/namespaces/d/deployments?watch=yes", []string{"websocket"}, 101},
	} {
		before := reached.Load()
		request, err := http.NewRequestWithContext(t.Context(), c.method, b.url+c.path, nil)
		require.NoError(t, err)
		request.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": c.upgrade}
		response, err := b.client.Do(request)
		require.NoError(t, err)
		response.Body.Close()
		if response.StatusCode != c.want || (reached.Load() > before) != (c.want == http.StatusSwitchingProtocols) {
			t.Errorf("%s %s to %q: got %s, %d requests reached the server", c.method, c.path, c.upgrade,
				response.Status, reached.Load()-before)
		}
	}
}

func TestWhatIsAWatchForTheServerIsOneForTheLens(t *testing.T) {
	for query, want := range map[string]bool{
		"watch": true, "watch=": true, "watch=yes": true, "watch=1": true, "watch=true": true, "watch=TRUE": true,
		"watch=t": true, "watch=2": true,
		"": false, "watch=0": false, "watch=false": false, "watch=False": false, "Watch=true": false,
		"watch=false&watch=true": false, "watch=1;x": false,
	} {
		for path, watchable := range map[string]bool{"/api/v1/pods": true, "/api/v1/namespaces/d/pods/a": false} {
			request, err := http.NewRequest(http.MethodGet, "http://x"+path+"?"+query, nil)
			require.NoError(t, err)
			ask := newAsk(request)
			assert.Equal(t, ask.Watch, want && watchable, "%s?%s", path, query)
		}
	}
}

// TestWhatIsForwardedCannotRunUnderOurOrigin has a server that sets every rule for browsers that it can.
func TestWhatIsForwardedCannotRunUnderOurOrigin(t *testing.T) {
	b := newBench(t, false, true, func(w http.ResponseWriter, r *http.Request) {
		for _, name := range append([]string{"Access-Control-Allow-Origin", "Access-Control-Allow-Credentials",
			"Content-Security-Policy"}, forBrowsers...) {
			w.Header()[name] = []string{"theirs", "theirs"}
		}
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Audit-Id", "kept")
		if r.URL.Path == "/missing" {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = io.WriteString(w, "<script src=/x.js></script>")
	})
	for _, path := range []string{"/", "/missing", "/api/v1/pods?watch=1"} {
		response, body := b.send(t, http.MethodGet, path, nil)
		for name, values := range response.Header {
			assert.False(t, strings.Contains(strings.Join(values, ""), "theirs"), "%s: the server sets %s", path, name)
		}
		csp := response.Header["Content-Security-Policy"]
		assert.True(t, len(csp) == 1 && csp[0] == "sandbox; default-src 'none'", "%s: got %q", path, csp)
		if response.Header.Get("Audit-Id") != "kept" || response.Header.Get("X-Content-Type-Options") != "nosniff" ||
			!strings.HasPrefix(body, "<script") {
			t.Errorf("%s: got %v %s", path, response.Header, body)
		}
	}
}

// TestWhatTheLensKeepsIsShort has a server and a client that put as much as they can into everything that the lens
// keeps.
func TestWhatTheLensKeepsIsShort(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	b := newBench(t, false, true, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if !r.URL.Query().Has("watch") {
			fmt.Fprintf(w, `{"kind":"PodList","metadata":{"resourceVersion":"7%s"}}`, long[:3000])
			return
		}
		for i := range 1500 {
			fmt.Fprintf(w, `{"type":"MODIFIED","object":{"metadata":{"name":"a","resourceVersion":"%d%s"}}}`+"\n", i,
				long[:20_000])
		}
		fmt.Fprintf(w, `{"type":"MODIFIED%s","object":{"metadata":{"name":"%[1]s","resourceVersion":"1"}}}`+"\n",
			long[:100_000])
	})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	query := strings.Repeat("y", 20_000)
	for i := range 20 {
		header := http.Header{"User-Agent": {fmt.Sprint(i, query)}}
		b.send(t, http.MethodGet, fmt.Sprintf("/api/v1/namespaces/%d%s/pods?labelSelector=%[2]s&fieldSelector=%[2]s",
			i, query[:6000]), header)
	}
	b.send(t, http.MethodGet, "/api/v1/pods?watch=1", nil)
	report := b.until(t, func(r Report) bool { return len(r.Rows) == 21 && r.Rows[0].End != "" })
	runtime.GC()
	runtime.ReadMemStats(&after)
	if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > 4<<20 || report.Rows[0].Frames != 1501 {
		t.Errorf("%d bytes are kept of %d frames", kept, report.Rows[0].Frames)
	}
	shown, err := json.Marshal(report)
	assert.True(t, err == nil && len(shown) <= 100_000, "the page is sent %d bytes, %v", len(shown), err)
}
