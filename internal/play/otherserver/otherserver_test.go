package otherserver

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/eventually"
	"listwatch/internal/check/require"
)

// cluster is a server for tests. It serves gadgets, a custom resource.
type cluster struct {
	*httptest.Server // set by visit

	mu       sync.Mutex // guards the fields below
	status   int        // the status of every list and watch; 0: the server answers them
	requests []string   // the method, path, selector, version and Accept header of each list and watch
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/metrics" {
		http.NotFound(w, r)
		return
	}
	c.mu.Lock()
	c.requests = append(c.requests, r.Method+" "+r.URL.Path+" "+r.URL.Query().Get("labelSelector")+" "+
		r.URL.Query().Get("resourceVersion")+" "+r.Header.Get("Accept"))
	status := c.status
	c.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if status != 0 {
		w.Header().Set("Location", "http://elsewhere.example/")
		w.WriteHeader(status)
		return
	}
	const kind = `"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1"`
	if !r.URL.Query().Has("watch") {
		fmt.Fprintf(w,
			`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7"},`+
				`"items":[{%s,"metadata":{"name":"a","namespace":"x","resourceVersion":"5",`+
				`"annotations":{"long":"x"}}}]}`, kind)
		return
	}
	fmt.Fprintf(w, `{"type":"ADDED","object":{%s,"metadata":{"name":"b","namespace":"x","resourceVersion":"8"}}}`+
		"\n", kind)
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

// visit starts the clusters as the addresses of one server, and runs a guest on it until the test ends.
func visit(t *testing.T, addresses ...*cluster) *Guest {
	t.Helper()
	var servers []*url.URL
	for _, c := range addresses {
		c.Server = httptest.NewServer(c)
		t.Cleanup(func() { eventually.Closes(c.Server) })
		base := require.Value(url.Parse(c.URL))(t)
		servers = append(servers, base)
	}
	return attend(t, Config{Servers: servers, Choice: Choice{Resources: []string{"gadgets.v2.example.com"},
		Namespace: "x", Labels: "app=web"}})
}

// attend runs a guest until the test ends.
func attend(t *testing.T, config Config) *Guest {
	t.Helper()
	config.Clock = clock.RealClock{}
	guest := require.Value(New(config))(t)
	bubble.Go(t, "test.guest", guest.Run)
	return guest
}

func (g *Guest) until(t *testing.T, fact func(WatchedState) bool) {
	t.Helper()
	var state State
	eventually.Holds(t, &state, func() bool { state = g.State(); return fact(state.Watched[0]) })
}

func TestAGuestWatchesTheMetadataOfAnyResourceAndWritesNothing(t *testing.T) {
	c := &cluster{}
	guest := visit(t, c)
	guest.until(t, func(s WatchedState) bool { return s.Objects == 2 && s.Synced && s.Trouble == "" })
	for _, object := range guest.watched[0].informer.GetIndexer().List() {
		partial := object.(*metav1.PartialObjectMetadata)
		assert.True(t, partial.Annotations == nil, "%s: its annotations are kept", partial.Name)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	writes := slices.ContainsFunc(c.requests, func(r string) bool { return !strings.HasPrefix(r, "GET ") })
	assert.False(t, writes, "a guest sent %q", c.requests)
	want := []string{gadgets + "0 " + listOfMetadata, gadgets + "7 " + metadataOnly}
	assert.EqualSlices(t, want, c.requests[len(c.requests)-2:], "got %q, want %q", c.requests, want)
}

const gadgets = "GET /apis/example.com/v2/namespaces/x/gadgets app=web "

func TestAGuestFailsOverAndResumes(t *testing.T) {
	first, second := &cluster{}, &cluster{}
	guest := visit(t, first, second)
	guest.until(t, func(s WatchedState) bool { return s.Objects == 2 && s.Synced })
	before := guest.State().Server
	eventually.Closes(first.Server)
	guest.until(t, func(s WatchedState) bool {
		second.mu.Lock()
		defer second.mu.Unlock()
		return len(second.requests) > 0
	})
	second.mu.Lock()
	defer second.mu.Unlock()
	assert.EqualSlices(t, []string{gadgets + "8 " + metadataOnly}, second.requests, "requests to the second address")
	if state := guest.State(); before != first.URL || state.Server != second.URL || state.Watched[0].Trouble != "" {
		t.Errorf("got %s, then %+v", before, state)
	}
}

func TestAGuestIsToldWhatToDo(t *testing.T) {
	for status, want := range map[int]string{
		401: "restart kubectl proxy", 403: "you may not list and watch gadgets.v2.example.com in x. Choose a namespace",
		404: "CustomResourceDefinition",
		302: "leads elsewhere", 503: "tries again",
	} {
		guest := visit(t, &cluster{status: status})
		guest.until(t, func(s WatchedState) bool { return strings.Contains(s.Trouble, want) && !s.Synced })
	}
}

func TestAProxyThatIsGoneIsTold(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	base, err := url.Parse(server.URL)
	server.Close()
	require.NoError(t, err)
	w := &watched{guest: &Guest{transport: NewTransport([]*url.URL{base})}}
	request := httptest.NewRequest(http.MethodGet, base.String()+"/api/v1/pods?token=s3cret", nil)
	_, err = w.RoundTrip(request)
	assert.True(t, err != nil && strings.Contains(w.said(), "is kubectl proxy still running?") &&
		!strings.Contains(w.said(), "s3cret"), "got %q, %v", w.said(), err)
}

func TestWhatCannotBeChosenIsRefused(t *testing.T) {
	for _, names := range [][]string{nil, {"pods/status"}, {"gadgets.example.com"}, {"pods", "pods.v1.metrics.k8s.io"},
		{"..v1.x"}, strings.Split("a b c d e f g h i", " ")} {
		assert.Fails(t, (&Choice{Resources: names}).Check(), apierrors.IsBadRequest, names)
	}
}

func TestMetricsAreAddedUpByResource(t *testing.T) {
	got := readMetrics(strings.NewReader(`# HELP x y
apiserver_watch_cache_events_dispatched_total{group="",resource="pods"} 31
apiserver_watch_cache_events_dispatched_total{resource="deployments.apps"} 7
watch_cache_capacity{resource="/pods"} 200
apiserver_longrunning_requests{group="",resource="pods",scope="cluster",verb="WATCH"} 4
apiserver_longrunning_requests{group="",resource="pods",scope="namespace",verb="WATCH"} 2
apiserver_longrunning_requests{group="",resource="pods",verb="CONNECT"} 9
etcd_request_duration_seconds_sum{operation="get",type="/registry/pods"} 0.5
etcd_request_duration_seconds_count{operation="get",type="/registry/pods"} 100
go_goroutines 12
apiserver_watch_cache_capacity{resource="pods" broken
`))
	assert.Equal(t, "", got.Trouble)
	want := map[string]float64{"dispatch dispatched": 31, "ring capacity": 200, "watcher open": 6, "etcd": 5,
		"etcd seconds": 0.5, "etcd requests": 100}
	assert.NoDiff(t, figures{"pods": want, "deployments": {"dispatch dispatched": 7}}, got.Metrics, "figures")
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// podsOf runs a guest that watches the pods of a server with this handler.
func podsOf(t *testing.T, watchList bool, handler http.HandlerFunc) *Guest {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/api/", handler)
	server := httptest.NewServer(mux)
	t.Cleanup(func() { eventually.Closes(server) })
	base := require.Value(url.Parse(server.URL))(t)
	return attend(t, Config{Servers: []*url.URL{base}, Choice: Choice{Resources: []string{"pods"}},
		UseWatchList: watchList, MaxObjects: 10_000})
}

// heap returns the size of the heap's objects in bytes.
func heap() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// TestAnEndlessStateIsCutOffWhileItArrives: a server sends large objects without end; the informer must stop early.
func TestAnEndlessStateIsCutOffWhileItArrives(t *testing.T) {
	fat := fmt.Sprintf(`"annotations":{"a":%q},"labels":{"b":%q},"managedFields":[{"manager":%q}]`, strings.Repeat("a",
		500), strings.Repeat("b", 500), strings.Repeat("c", 500))
	const (
		object = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",` +
			`"metadata":{"name":"pod-%d","namespace":"x","resourceVersion":"%d",%s}}`
		list = `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1",` +
			`"metadata":{"resourceVersion":"7"},"items":[`
	)
	for name, c := range map[string]struct {
		watchList          bool
		begin, object, sep string
	}{
		"list": {false, list, object, ","}, "watch-list": {true, "", `{"type":"ADDED","object":` + object + "}", "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			runtime.GC() // frees the garbage of other tests
			var sent atomic.Int64
			guest := podsOf(t, c.watchList, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, c.begin)
				for i := 0; r.Context().Err() == nil; i++ {
					fmt.Fprintf(w, c.object+c.sep, i, i+1, fat)
					sent.Add(1)
				}
			})
			guest.until(t, func(s WatchedState) bool {
				return strings.Contains(s.Trouble, "there are more than 10000 objects")
			})
			// The list is in memory in three forms: its bytes, its objects, and garbage that is not collected yet.
			if used := heap(); used > 6*maxList || sent.Load() > 200_000 {
				t.Errorf("%d MB of memory, %d objects sent", used>>20, sent.Load())
			}
			state := guest.State()
			assert.False(t, state.Watched[0].Synced, "an informer that was cut off is synced")
		})
	}
}

func TestAnAnswerThatIsNotUnderstoodIsNamed(t *testing.T) {
	const list = `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1",` +
		`"metadata":{"resourceVersion":"7"},"items":[]}`
	const pod = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",` +
		`"metadata":{"name":"a","resourceVersion":"8"}}`
	for name, c := range map[string]struct{ mediaType, list, watch, want string }{
		"HTML":              {"text/html; charset=utf-8", "<html>", "", "not understood"},
		"protobuf":          {"application/vnd.kubernetes.protobuf", "k8s\x00", "", "not understood"},
		"protobuf, as JSON": {"application/json", "k8s\x00\x01", "", "not understood"},
		"broken list":       {"application/json", list[:70], "", "not understood"},
		"broken item": {"application/json", strings.Replace(list, "[]", `[{"metadata":5}]`, 1), "",
			"not understood"},
		"no list": {"application/json", `[1]`, "", "not understood"},
		"broken object": {"application/json", list, `{"type":"ADDED","object":{"metadata":{}}}` + "\n",
			"not understood"},
		"large object": {"application/json", list, `{"type":"ADDED","object":{"a":"` + strings.Repeat("x", 250_000) +
			`"}}` + "\n", "not understood"},
		"healthy": {"application/json", list, `{"type":"MODIFIED","object":` + pod + "}\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			guest := podsOf(t, false, func(w http.ResponseWriter, r *http.Request) {
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
				require.True(t, len(s.Trouble) <= 400, "the trouble has %d bytes", len(s.Trouble))
				return c.want != "" && strings.Contains(s.Trouble, c.want) || c.want == "" && s.Trouble == "" &&
					s.Synced && s.Objects == 1
			})
		})
	}
}

func TestTheServersMetricsAreBounded(t *testing.T) {
	many := &strings.Builder{}
	for i := range 2 * maxMetricResources {
		fmt.Fprintf(many, "watch_cache_capacity{resource=\"r%d\"} 1\n", i%(maxMetricResources+1)) // r0 to r998 twice
	}
	assert.Equal(t, 2, readMetrics(strings.NewReader(many.String())).Metrics["r0"]["ring capacity"], "a known one")
	for text, want := range map[string]string{
		many.String():                      "1,000 resources",
		strings.Repeat("x", 100_000):       "too long",
		many.String()[:500] + "resource{]": "",
	} {
		got := readMetrics(strings.NewReader(text))
		assert.True(t, len(got.Metrics) <= maxMetricResources && strings.Contains(got.Trouble, want),
			"got %d resources, %q", len(got.Metrics), got.Trouble)
	}
}
