package guest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/eventually"
	"listwatch/internal/check/require"
)

// serve starts a server, and returns its address.
func serve(t *testing.T, handler http.HandlerFunc) []*url.URL {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(func() { eventually.Closes(server) })
	base, err := url.Parse(server.URL)
	require.NoError(t, err)
	return []*url.URL{base}
}

// crowded answers discovery for n groups of one resource each. Before it answers for a group it calls before; false
// refuses with 429.
func crowded(t *testing.T, n int, before func(r *http.Request) bool) []*url.URL {
	t.Helper()
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		group, isGroup := strings.CutPrefix(r.URL.Path, "/apis/")
		switch {
		case r.URL.Path == "/apis":
			var groups []string
			for i := range n {
				groups = append(groups, fmt.Sprintf(
					`{"name":"g%d.test","preferredVersion":{"groupVersion":"g%d.test/v1"}}`, i, i))
			}
			fmt.Fprintf(w, `{"kind":"APIGroupList","groups":[%s]}`, strings.Join(groups, ","))
		case isGroup && !before(r):
			http.Error(w, group, http.StatusTooManyRequests)
		default:
			fmt.Fprint(w,
				`{"kind":"APIResourceList","resources":[{"name":"gadgets","namespaced":true,"verbs":["list","watch"]}]}`)
		}
	})
}

func TestADiscoveryHasHolesWhereAGroupDoesNotAnswer(t *testing.T) {
	var refuse atomic.Bool
	refuse.Store(true)
	blocked := make(chan bool) // closed when group g5 may be answered
	discovery := NewDiscovery(crowded(t, 8, func(r *http.Request) bool {
		if strings.Contains(r.URL.Path, "g5.") && refuse.Load() {
			select {
			case <-r.Context().Done():
			case <-blocked:
			}
		}
		return !strings.Contains(r.URL.Path, "g3.") || !refuse.Load()
	}))
	defer discovery.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	all, _, err := discovery.All(ctx)
	assert.True(t, err != nil, "a discovery that was cut off returned %d resources", len(all))
	close(blocked)
	if all, _, err := discovery.All(t.Context()); err != nil || len(all) != 8 {
		t.Errorf("got %d resources, %v, want all but those of the group that was refused", len(all), err)
	}
	if _, err := discovery.Find(t.Context(), []string{"gadgets.g3.test"}); err == nil || !strings.Contains(err.Error(),
		"g3.test") || strings.Contains(err.Error(), "has no") {
		t.Errorf("a resource of a group that was refused: got %v", err)
	}
	refuse.Store(false)
	all, _, err = discovery.All(t.Context())
	assert.True(t, err == nil && len(all) == 9, "got %d resources, %v, want all", len(all), err)
}

func TestDiscoveryAsksAFewGroupsAtOnce(t *testing.T) {
	var running, most, asked atomic.Int64
	both := make(chan bool)
	discovery := NewDiscovery(crowded(t, 40, func(*http.Request) bool {
		now := running.Add(1)
		defer running.Add(-1)
		for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
		}
		if asked.Add(1) == 2 {
			close(both)
		}
		<-both // the first request waits for a second
		return true
	}))
	defer discovery.Close()
	if all, _, err := discovery.All(t.Context()); err != nil || len(all) != 41 || most.Load() > maxAtOnce {
		t.Errorf("got %d resources, %v, up to %d at once", len(all), err, most.Load())
	}
}

func TestDiscoveryIsBounded(t *testing.T) {
	asked := 0
	for _, n := range []int{maxGroups + 1, 30_000} {
		discovery := NewDiscovery(crowded(t, n, func(*http.Request) bool { asked++; return true }))
		_, _, err := discovery.All(t.Context())
		assert.True(t, err != nil && asked == 0, "%d groups: got %v after %d requests", n, err, asked)
		discovery.Close()
	}
	names := strings.Repeat(`{"name":"`+strings.Repeat("x", 100)+`","verbs":["list","watch"]},`, maxResources+1)
	discovery := NewDiscovery(serve(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"resources":[%s{}],"groups":[]}`, names)
	}))
	defer discovery.Close()
	all, _, err := discovery.All(t.Context())
	assert.True(t, err != nil, "got %d resources", len(all))
}

// attend runs a guest on pods of a server.
func attend(t *testing.T, watchList bool, handler http.HandlerFunc) *Guest {
	t.Helper()
	guest, err := New(Config{Servers: serve(t, handler), Choice: Choice{Resources: []string{"pods"}},
		Resources: []Resource{Pods}, Clock: clock.RealClock{}, UseWatchList: watchList, MaxObjects: 10_000})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { guest.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return guest
}

// heap returns how many bytes of the heap are in use.
func heap() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// TestAnEndlessStateIsCutOffWhileItArrives has the server send objects as fast as it can, with as much as fits in
// beside their names.
func TestAnEndlessStateIsCutOffWhileItArrives(t *testing.T) {
	fat := fmt.Sprintf(`"annotations":{"a":%q},"labels":{"b":%q},"managedFields":[{"manager":%q}]`, strings.Repeat("a",
		500), strings.Repeat("b", 500), strings.Repeat("c", 500))
	for name, c := range map[string]struct {
		watchList          bool
		begin, object, sep string
	}{
		"list": {false,
			`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7"},"items":[`, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"pod-%d","namespace":"x","resourceVersion":"%d",%s}}`, ","},
		"watch-list": {true, "",
			`{"type":"ADDED","object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"pod-%d","namespace":"x","resourceVersion":"%d",%s}}}`, "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var sent atomic.Int64
			guest := attend(t, c.watchList, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, c.begin)
				for i := 0; r.Context().Err() == nil; i++ {
					fmt.Fprintf(w, c.object+c.sep, i, i+1, fat)
					sent.Add(1)
				}
			})
			guest.until(t, func(s WatchedState) bool {
				return strings.Contains(s.Trouble,
					"there are more than 10000 objects")
			})
			if used := heap(); used > 100<<20 || sent.Load() > 200_000 {
				t.Errorf("%d MB of memory, %d objects sent", used>>20, sent.Load())
			}
			state := guest.State()
			assert.False(t, state.Watched[0].Synced, "an informer that was cut off is synced")
		})
	}
}

func TestAnAnswerThatIsNotUnderstoodIsNamed(t *testing.T) {
	const list = `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7"},"items":[]}`
	const pod = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a","resourceVersion":"8"}}`
	for name, c := range map[string]struct{ mediaType, list, watch, want string }{
		"HTML":              {"text/html; charset=utf-8", "<html>", "", "text/html"},
		"protobuf":          {"application/vnd.kubernetes.protobuf", "k8s\x00", "", "protobuf"},
		"protobuf, as JSON": {"application/json", "k8s\x00\x01", "", "not understood"},
		"broken list":       {"application/json", list[:70], "", "not understood"},
		"broken item": {"application/json", strings.Replace(list, "[]", `[{"metadata":5}]`, 1), "",
			"not understood"},
		"no list":      {"application/json", `[1]`, "", "not understood"},
		"broken frame": {"application/json", list, `{"type":"ADDED","object":{` + "\n", "not understood"},
		"broken object": {"application/json", list, `{"type":"ADDED","object":{"metadata":{}}}` + "\n",
			"not understood"},
		"large object": {"application/json", list, `{"type":"ADDED","object":{"a":"` + strings.Repeat("x", 250_000) +
			`"}}` + "\n", "not understood"},
		"later":   {"", "", "", "wait 1000000000000000 seconds"},
		"healthy": {"application/json", list, `{"type":"MODIFIED","object":` + pod + "}\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			guest := attend(t, false, func(w http.ResponseWriter, r *http.Request) {
				if c.mediaType == "" {
					w.Header().Set("Retry-After", "1000000000000000")
					w.WriteHeader(http.StatusTooManyRequests)
					return
				}
				w.Header().Set("Content-Type", c.mediaType)
				if !r.URL.Query().Has("watch") {
					_, _ = io.WriteString(w, c.list)
					return
				}
				_, _ = io.WriteString(w, c.watch)
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			})
			guest.until(t, func(s WatchedState) bool {
				require.True(t, len(s.Trouble) <= 400, "it is told in %d bytes", len(s.Trouble))
				return c.want != "" && strings.Contains(s.Trouble, c.want) || c.want == "" && s.Trouble == "" &&
					s.Synced && s.Objects == 1
			})
		})
	}
}

// endless is a body that repeats a line, whose verb is given the number of the line.
type endless struct {
	format string
	n, end int
	left   string
}

func (e *endless) Read(p []byte) (int, error) {
	if e.left == "" {
		if e.n == e.end {
			return 0, io.EOF
		}
		e.left = fmt.Sprintf(e.format, e.n)
		e.n++
	}
	n := copy(p, e.left)
	e.left = e.left[n:]
	return n, nil
}

func TestTheServersMetricsAreBounded(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	text := io.MultiReader(
		strings.NewReader(`apiserver_request_total{a="`+long+"\"} 1\nwatch_cache_capacity{resource=\""+long[:1000]+
			"\"} 1\n"),
		&endless{format: `watch_cache_capacity{a="` + long[:2000] + `",resource="r%d"} 1` + "\n", end: 5_000},
		strings.NewReader("go_goroutines 12\nwatch_cache_capacity{resource=\"r0\"} 200\n"),
	)
	before := heap()
	values, trouble := readMetrics(text)
	if len(values) > maxMetricResources || values["r0"]["ring capacity"] != 201 || !strings.Contains(trouble,
		"1,000 resources") {
		t.Errorf("got %d resources, %v, %q", len(values), values["r0"], trouble)
	}
	runtime.GC()
	kept := int64(heap()) - int64(before)
	assert.True(t, kept <= 2<<20, "%d bytes are kept of the metrics of %d resources", kept, len(values))
	runtime.KeepAlive(values)
}
