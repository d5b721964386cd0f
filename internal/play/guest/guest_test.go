package guest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/eventually"
	"listwatch/internal/check/require"
)

// cluster is a server of the test's own: gadgets of a group that only a CustomResourceDefinition knows.
type cluster struct {
	*httptest.Server // set by visit

	mu       sync.Mutex // guards the fields below
	status   int        // of every list and watch; 0: they are answered
	requests []string   // method, path, selector, version and what is accepted
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
				`"items":[{%s,"metadata":{"name":"a","namespace":"x","resourceVersion":"5","annotations":{"long":"x"}}}]}`, kind)
		return
	}
	fmt.Fprintf(w, `{"type":"ADDED","object":{%s,"metadata":{"name":"b","namespace":"x","resourceVersion":"8"}}}`+
		"\n", kind)
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

// visit runs a guest on a cluster's addresses until the test ends.
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
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { guest.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
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
	if want := gadgets + "8 " + metadataOnly; !slices.Equal(second.requests, []string{want}) {
		t.Errorf("the second address was asked %q, want %q", second.requests, want)
	}
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
