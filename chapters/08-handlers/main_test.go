package handlers

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	storage "listwatch/chapters/01-storage"
	etcd3 "listwatch/chapters/02-etcd3"
	registry "listwatch/chapters/07-registry"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/probetest"
	"listwatch/internal/check/require"
	"listwatch/internal/kube/scheme"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
	"listwatch/internal/server/mvcc"
	"listwatch/internal/server/pipenet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// api is a whole server half over an etcd in memory. Its clock is the real one, which in a bubble is the bubble's.
type api struct {
	t       *testing.T
	handler http.Handler
	log     *probe.Log
	etcd    *mvcc.Store

	shutdown chan struct{} // closed by a test that lets the server end
}

// newAPI returns an API straight on the store, without a cache.
func newAPI(t *testing.T) *api {
	return buildAPI(t, func(r *registry.Resource, raw storage.Interface, _ *probe.Probe) storage.Interface {
		return raw
	})
}

// newCachedAPI returns an API with a cache for every resource. It must be called in a bubble; the caches are filled
// when it returns, and stopped when the test ends.
func newCachedAPI(t *testing.T) *api {
	ctx, cancel := context.WithCancel(t.Context())
	var group routine.Group
	a := buildAPI(t, func(r *registry.Resource, raw storage.Interface, p *probe.Probe) storage.Interface {
		config := r.CacherConfig()
		config.Clock, config.Probe, config.UseWatchList = clock.RealClock{}, p, true
		c, cached, err := registry.StorageWithCacher(raw, config)
		require.NoError(t, err)
		group.Go(ctx, "cacher", c.Run)
		return cached
	})
	t.Cleanup(func() { cancel(); group.Wait() })
	synctest.Wait()
	return a
}

func buildAPI(t *testing.T, wrap func(*registry.Resource, storage.Interface, *probe.Probe) storage.Interface) *api {
	t.Helper()
	codec := require.Value(etcd3.NewCodec(scheme.Codecs, corev1.SchemeGroupVersion, etcd3.MediaTypeProtobuf))(t)
	a := &api{t: t, etcd: mvcc.New(clock.RealClock{}), log: probe.NewLog(clock.RealClock{}, 4096),
		shutdown: make(chan struct{})}
	for range firstVersion {
		a.etcd.Put("/elsewhere", nil)
	}
	probetest.Story(t, a.log)
	root := probe.New(a.log)
	storages := map[string]Storage{}
	for _, r := range registry.Resources() {
		p := root.Resource(r.Name)
		raw, err := etcd3.New(etcd3.Config{
			Client: a.etcd, Codec: codec, NewFunc: r.NewFunc,
			ResourcePrefix: r.Prefix, Clock: clock.RealClock{}, Probe: p,
		})
		require.NoError(t, err)
		maps.Copy(storages, Storages(registry.Config{Resource: r, Storage: wrap(r, raw, p), Clock: clock.RealClock{},
			Probe: p}))
	}
	a.handler = New(Config{Storage: storages, Clock: clock.RealClock{}, Probe: root, Shutdown: a.shutdown})
	return a
}

// do serves one request. headers come in pairs.
func (a *api) do(method, target, body string, headers ...string) *httptest.ResponseRecorder {
	a.t.Helper()
	r := httptest.NewRequestWithContext(a.t.Context(), method, target, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	a.handler.ServeHTTP(w, r)
	return w
}

// serve starts a real HTTP server over pipes, in a bubble.
func (a *api) serve() *http.Client { return a.serveUntil(a.t.Context()) }

// serveUntil is serve, with requests whose contexts end when ctx does.
func (a *api) serveUntil(ctx context.Context) *http.Client {
	a.t.Helper()
	listener := pipenet.Listen()
	server := &http.Server{Handler: a.handler, BaseContext: func(net.Listener) context.Context { return ctx }}
	var group routine.Group
	group.Go(a.t.Context(), "test.server", func(context.Context) { _ = server.Serve(listener) })
	client := listener.Client()
	a.t.Cleanup(func() {
		client.CloseIdleConnections()
		_ = server.Close()
		group.Wait()
		synctest.Wait()
	})
	return client
}

// firstVersion is how many revisions there are before the API is.
const firstVersion = 5

const podsPath = "/api/v1/namespaces/default/pods"

const podA = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","labels":{"app":"web"}},` +
	`"spec":{"containers":[{"name":"c","image":"i:1"}]}}`

// create posts a pod and fails the test unless it is created.
func (a *api) create(pod string) {
	a.t.Helper()
	w := a.do("POST", podsPath, pod)
	require.Equal(a.t, http.StatusCreated, w.Code, "create: got %d %s", w.Code, w.Body)
}

// into decodes the answer's JSON.
func into[T any](t *testing.T, body io.Reader) T {
	t.Helper()
	var value T
	require.NoError(t, json.NewDecoder(body).Decode(&value), "decode %T", value)
	return value
}

// wantStatus fails the test unless the answer is a Status with code and reason.
func wantStatus(t *testing.T, w *httptest.ResponseRecorder, code int, reason metav1.StatusReason) metav1.Status {
	t.Helper()
	text := w.Body.String()
	status := into[metav1.Status](t, w.Body)
	assert.True(t, w.Code == code && int(status.Code) == code && status.Reason == reason &&
		status.Kind == "Status" && status.Status == metav1.StatusFailure,
		"got %d %s, want %d %s", w.Code, text, code, reason)
	return status
}

// frame is one line of a watch.
type frame struct {
	Type   watch.EventType `json:"type"`
	Object json.RawMessage `json:"object"`
}

// said returns the texts of a record: of a request, its method or client, path and query; of all others, every text.
func said(r *probe.Record) string {
	texts, query := []string{}, r.Field(probe.FieldQuery)
	for _, name := range r.Point.Info().Texts.List() {
		switch text := r.Field(probe.Field(name)); {
		case name == "path" && query != "":
			texts = append(texts, text+"?"+query)
		case name == "agent" && text != "" && r.Point == probe.RequestReceived:
			texts = append(texts, "by", text)
		case name != "query" && name != "version" && (name != "agent" || r.Point == probe.WireOpened):
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, " ")
}

// recorded returns what the log holds of the wanted points: their names, with text, or with type and key.
func (a *api) recorded(wanted ...probe.Point) []string {
	var lines []string
	for _, r := range probetest.Records(a.log, wanted...) {
		words := strings.Fields(strings.Join([]string{r.Point.String(), said(&r), r.Type, probe.ObjectKey(r.Key)}, " "))
		lines = append(lines, strings.Join(words, " "))
	}
	return lines
}
