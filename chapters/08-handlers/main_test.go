package handlers

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	storage "listwatch/chapters/01-storage"
	etcd3 "listwatch/chapters/02-etcd3"
	registry "listwatch/chapters/07-registry"
	"listwatch/internal/check/apitest"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/chapterdrawing"
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
	apitest.API
	log  *probe.Log
	etcd *mvcc.Store

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
	a := &api{API: apitest.API{T: t}, etcd: mvcc.New(clock.RealClock{}), log: probe.NewLog(clock.RealClock{}, 4096),
		shutdown: make(chan struct{})}
	for range firstVersion {
		a.etcd.Put("/elsewhere", nil)
	}
	probetest.Story(t, a.log)
	root := probe.New(a.log)
	storages := map[string]Storage{}
	for _, r := range registry.Resources() {
		p := root.Resource(r.Name)
		raw := require.Value(etcd3.New(etcd3.Config{
			Client: a.etcd, Codec: codec, NewFunc: r.NewFunc,
			ResourcePrefix: r.Prefix, Clock: clock.RealClock{}, Probe: p,
		}))(t)
		maps.Copy(storages, Storages(registry.Config{Resource: r, Storage: wrap(r, raw, p), Clock: clock.RealClock{},
			Probe: p}))
	}
	a.Handler = New(Config{Storage: storages, Clock: clock.RealClock{}, Probe: root, Shutdown: a.shutdown})
	return a
}

// serve starts a real HTTP server over pipes, in a bubble.
func (a *api) serve() *http.Client { return a.serveUntil(a.T.Context()) }

// serveUntil is serve, with requests whose contexts end when ctx does.
func (a *api) serveUntil(ctx context.Context) *http.Client {
	a.T.Helper()
	listener := pipenet.Listen()
	server := &http.Server{Handler: a.Handler, BaseContext: func(net.Listener) context.Context { return ctx }}
	var group routine.Group
	group.Go(a.T.Context(), "test.server", func(context.Context) { _ = server.Serve(listener) })
	client := listener.Client()
	a.T.Cleanup(func() {
		client.CloseIdleConnections()
		_ = server.Close()
		group.Wait()
		synctest.Wait()
	})
	return client
}

// firstVersion is how many revisions there are before the API is.
const firstVersion = 5

const podsPath, podA = apitest.PodsPath, apitest.PodA

var wantStatus = apitest.WantStatus

func into[T any](t testing.TB, body io.Reader) T { return apitest.Into[T](t, body) }

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

// The drawing of a stream: one answer of a minute, frame by frame, with the second at which the client has each.
func TestTheDrawingOfAStreamIsOfThisServer(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		a := newCachedAPI(t)
		client := a.serve()
		began := time.Now()
		response, err := client.Get("http://api" + podsPath + "?watch=1&allowWatchBookmarks=true&timeoutSeconds=60")
		require.NoError(t, err)
		defer response.Body.Close()
		// The headers are here, and nothing has happened yet.
		assert.True(t, response.Header.Get("Content-Type") == "application/json" &&
			slices.Equal(response.TransferEncoding, []string{"chunked"}), "got %v %v", response.Header,
			response.TransferEncoding)
		d := chapterdrawing.New("stream.svg", 216)
		at := func(second float64) int { return 40 + int(second*9.4) }
		d.Text(16, 24, "", "GET …/pods?watch=1&timeoutSeconds=60")
		d.Path("way", "M%d 104H%d", at(0), at(60))
		time.AfterFunc(15*time.Second, func() { a.Create(podA) })
		time.AfterFunc(35*time.Second, func() { a.Do("DELETE", podsPath+"/a", "") })
		d.Text(at(0)-10, 70, "", "%d, headers", response.StatusCode)
		lines := bufio.NewScanner(response.Body)
		last := -1.0
		var types []watch.EventType
		for n := 0; lines.Scan(); n++ {
			var f frame
			require.NoError(t, json.Unmarshal(lines.Bytes(), &f))
			pod := into[corev1.Pod](t, bytes.NewReader(f.Object))
			assert.True(t, pod.Kind == "Pod" && pod.APIVersion == "v1" && pod.ResourceVersion != "" &&
				(pod.Annotations[metav1.InitialEventsAnnotationKey] == "true") == (n == 0), "%s: got %+v", f.Type, pod)
			types = append(types, f.Type)
			second := time.Since(began).Seconds()
			if f.Type == "BOOKMARK" && second > 50 {
				second = 58 // about: the cacher's timer is random
			}
			d.In("queue", func() { d.Box(at(second)-4, 92, 8, 24, "fill") })
			y := 138
			if second-last < 4 {
				y = 160
			}
			class := "mid"
			if second > 50 {
				class = "end"
			} else if second < 5 {
				class = ""
			}
			d.Text(at(second), y, class, "%s", f.Type)
			last = second
		}
		assert.EqualSlices(t, []watch.EventType{watch.Bookmark, watch.Added, watch.Modified, watch.Deleted,
			watch.Bookmark}, types)
		second := time.Since(began).Seconds()
		assert.True(t, lines.Err() == nil && second == 60, "the end: got %v after %v s, want a clean one", lines.Err(),
			second)
		d.Path("cross", "M%d 94v20", at(second))
		d.Text(at(second), 70, "end", "a clean end")
		for tick := 0; tick <= 60; tick += 15 {
			d.Text(at(float64(tick)), 186, "mid soft", "%s", fmt.Sprint(tick, " s"))
		}
		d.Text(16, 208, "soft", "From the headers on there is no status any more: an error is a frame, or an end.")
		d.Check(t)
	})
}
