package handlers

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	storage "listwatch/chapters/01-storage"
	registry "listwatch/chapters/07-registry"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
	"listwatch/internal/kube/negotiation"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
)

// counting is a response that counts its writes and flushes.
type counting struct {
	httptest.ResponseRecorder
	trace []string
}

func (c *counting) WriteHeader(int) { c.trace = append(c.trace, "headers") }
func (c *counting) Flush()          { c.trace = append(c.trace, "flush") }
func (c *counting) Write(p []byte) (int, error) {
	c.trace = append(c.trace, "write")
	return c.ResponseRecorder.Body.Write(p)
}

// serveWatch serves what is queued in a fake watch, and its end.
func serveWatch(t *testing.T, s *Scope, accept string, watching *watch.FakeWatcher,
	w http.ResponseWriter) *WatchServer {
	t.Helper()
	r := request(t, podsPath+"?watch=1")
	r.Header.Set("Accept", accept)
	output, err := negotiation.Output(r)
	require.NoError(t, err)
	server, err := s.newWatchServer(r, watching, time.Hour, output, false)
	require.NoError(t, err)
	require.NoError(t, server.HandleHTTP(w, r))
	return server
}

func watchScope(t *testing.T) *Scope {
	s := podScope(t)
	s.server = &Server{clock: clock.RealClock{}, meter: uncounted{}}
	return s
}

func TestABacklogIsFlushedOnce(t *testing.T) {
	watching := watch.NewFakeWithChanSize(3, false)
	for _, name := range []string{"a", "b", "c"} {
		watching.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	watching.Stop()
	w := &counting{ResponseRecorder: *httptest.NewRecorder()}
	serveWatch(t, watchScope(t), "application/json", watching, w)
	assert.EqualSlices(t, w.trace, []string{"headers", "flush", "write", "write", "write", "flush"})
}

func TestOnlyTheFirstTableHasHeadersAndErrorsAreNoTables(t *testing.T) {
	watching := watch.NewFakeWithChanSize(5, false)
	watching.Error(&metav1.Status{Status: "Failure", Code: 410, Reason: metav1.StatusReasonExpired})
	watching.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "1"}})
	watching.Modify(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "2"}})
	watching.Action(watch.Bookmark, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "3",
		Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}})
	watching.Stop()
	w := httptest.NewRecorder()
	s := watchScope(t)
	serveWatch(t, s, tableV1, watching, w)
	lines := bufio.NewScanner(w.Body)
	status := into[metav1.Status](t, strings.NewReader(string(next(t, lines).Object)))
	assert.True(t, status.Kind == "Status" && status.Code == 410, "error: got %+v", status)
	for i, wantColumns := range []bool{true, false, false} {
		table := into[metav1.Table](t, strings.NewReader(string(next(t, lines).Object)))
		if table.Kind != "Table" || (len(table.ColumnDefinitions) > 0) != wantColumns || len(table.Rows) != 1 {
			t.Errorf("table %d: got %+v", i, table)
		}
		var row metav1.PartialObjectMetadata
		err := json.Unmarshal(table.Rows[0].Object.Raw, &row)
		assert.True(t, err == nil && row.Kind == "PartialObjectMetadata" && row.APIVersion == "meta.k8s.io/v1",
			"row %d: got %+v, %v", i, row, err)
	}
}

// cached is an object that keeps its encodings and counts how often it is encoded.
type cached struct {
	runtime.Object
	frames  map[runtime.Identifier]string
	encoded int
}

func (c *cached) GetObject() runtime.Object { return c.Object }

func (c *cached) CacheEncode(id runtime.Identifier, encode func(runtime.Object, io.Writer) error, w io.Writer) error {
	if _, ok := c.frames[id]; !ok {
		var b strings.Builder
		c.encoded++
		if err := encode(c.Object, &b); err != nil {
			return err
		}
		c.frames[id] = b.String()
	}
	_, err := io.WriteString(w, c.frames[id])
	return err
}

// unencodable is an object that no encoder can write.
type unencodable struct{ runtime.Object }

func (u unencodable) GetObject() runtime.Object { return u.Object }

func (u unencodable) CacheEncode(runtime.Identifier, func(runtime.Object, io.Writer) error, io.Writer) error {
	return io.ErrUnexpectedEOF
}

func TestAnObjectThatCannotBeEncodedEndsTheStreamWithoutAWord(t *testing.T) {
	watching := watch.NewFakeWithChanSize(3, false)
	watching.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	watching.Add(unencodable{&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "b"}}})
	watching.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "c"}})
	w := httptest.NewRecorder()
	serveWatch(t, watchScope(t), "application/json", watching, w) // comes back, though the watch goes on
	if body := w.Body.String(); strings.Count(body, "\n") != 1 || !strings.Contains(body, `"name":"a"`) {
		t.Errorf("got %s, want a and the end", body)
	}
}

func TestManyWatchersOfOneObjectEncodeItOnce(t *testing.T) {
	object := &cached{Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}},
		frames: map[runtime.Identifier]string{}}
	bodies := map[string]bool{}
	s := watchScope(t)
	for range 5 {
		watching := watch.NewFakeWithChanSize(1, false)
		watching.Add(object)
		watching.Stop()
		w := httptest.NewRecorder()
		serveWatch(t, s, "application/json", watching, w)
		bodies[w.Body.String()] = true
	}
	assert.True(t, object.encoded == 1 && len(bodies) == 1,
		"got %d encodings and %d different streams", object.encoded, len(bodies))
	watching := watch.NewFakeWithChanSize(2, false)
	watching.Add(object)
	watching.Add(object)
	watching.Stop()
	serveWatch(t, s, tableV1, watching, httptest.NewRecorder())
	assert.Equal(t, object.encoded, 3,
		"a table with headers and one without: got %d encodings in all, want 3", object.encoded)
}

func TestSharedObjectsAreNotTouched(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	watching := watch.NewFakeWithChanSize(1, false)
	watching.Add(pod)
	watching.Stop()
	serveWatch(t, watchScope(t), "application/json", watching, httptest.NewRecorder())
	assert.Equal(t, pod.Kind, "", "the object was given the kind")
}

func TestAWriterThatCannotFlushIsAnError(t *testing.T) {
	s := watchScope(t)
	r := request(t, podsPath)
	output, _ := negotiation.Output(r)
	server, err := s.newWatchServer(r, watch.NewFake(), time.Hour, output, false)
	require.NoError(t, err)
	var w struct{ http.ResponseWriter }
	assert.True(t, server.HandleHTTP(w, r) != nil, "got no error")
}

// countingEncoder is an encoder that counts. Everything else about it is the other's, so what it has encoded and what
// the other has are interchangeable.
type countingEncoder struct {
	runtime.Encoder
	n *int
}

func (c countingEncoder) Encode(obj runtime.Object, w io.Writer) error {
	*c.n++
	return c.Encoder.Encode(obj, w)
}

// cachedPods returns an API with a cached storage of pods, and that storage.
func cachedPods(t *testing.T) (*api, storage.Interface) {
	ctx, cancel := context.WithCancel(t.Context())
	var group routine.Group
	var pods storage.Interface
	a := buildAPI(t, func(r *registry.Resource, raw storage.Interface, p *probe.Probe) storage.Interface {
		if r.Name != "pods" {
			return raw
		}
		config := r.CacherConfig()
		config.Clock, config.Probe, config.UseWatchList = clock.RealClock{}, p, true
		c, cached, err := registry.StorageWithCacher(raw, config)
		require.NoError(t, err)
		pods = cached
		group.Go(ctx, "cacher", c.Run)
		return cached
	})
	t.Cleanup(func() { cancel(); group.Wait() })
	synctest.Wait()
	return a, pods
}

// client is one watcher, from the cache to the bytes on its wire.
type client struct {
	watch   watch.Interface
	encoder *watchEncoder
	wire    bytes.Buffer
}

// newClient begins a watch whose encodings count into n.
func newClient(t *testing.T, pods storage.Interface, s *Scope, accept string, n *int) *client {
	t.Helper()
	r := request(t, podsPath+"?watch=1")
	r.Header.Set("Accept", accept)
	output, err := negotiation.Output(r)
	require.NoError(t, err)
	media, err := negotiation.Stream(output)
	require.NoError(t, err)
	media.Encoder = countingEncoder{media.Encoder, n}
	options, err := negotiation.TableOptions(r, media)
	require.NoError(t, err)
	w, err := pods.Watch(t.Context(), "/registry/pods", storage.ListOptions{Predicate: storage.Everything,
		Recursive: true})
	require.NoError(t, err)
	return &client{watch: w, encoder: newWatchEncoder(s, media, options)}
}

// writeAll has everything written that there is to write.
func writeAll(t *testing.T, clients []*client) {
	t.Helper()
	synctest.Wait()
	for _, c := range clients {
		for len(c.watch.ResultChan()) > 0 {
			_, err := c.encoder.Encode(<-c.watch.ResultChan(), &c.wire)
			require.NoError(t, err)
		}
	}
}

const acceptTables = "application/json;as=Table;v=v1;g=meta.k8s.io"

func TestAnEventIsEncodedOnceForAllWatchersWithTheSameAccept(t *testing.T) {
	for name, c := range map[string]struct {
		accepts []string
		want    int // encodings of one event
	}{
		"one form":                     {[]string{"application/json"}, 1},
		"two forms":                    {[]string{"application/json", acceptTables}, 2},
		"one form, asked in two words": {[]string{"application/json", "*/*"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) { countEncodings(t, c.accepts, c.want) })
		})
	}
}

func countEncodings(t *testing.T, accepts []string, want int) {
	a, pods := cachedPods(t)
	s := podScope(t)
	n := 0
	byAccept := map[string][]*client{}
	var clients []*client
	for _, accept := range accepts {
		for range 5 {
			c := newClient(t, pods, s, accept, &n)
			byAccept[accept] = append(byAccept[accept], c)
			clients = append(clients, c)
		}
	}
	steps := []func(){
		func() { a.create(podA) },
		func() {
			changed := strings.Replace(podA, `"web"`, `"changed"`, 1)
			w := a.do("PUT", podsPath+"/a", changed)
			require.Equal(t, w.Code, http.StatusOK, "update: %d %s", w.Code, w.Body)
		},
		func() {
			w := a.do("DELETE", podsPath+"/a?gracePeriodSeconds=0", "")
			require.Equal(t, w.Code, http.StatusOK, "delete: %d %s", w.Code, w.Body)
		},
	}
	for _, step := range steps {
		step()
		writeAll(t, clients)
	}
	events := strings.Count(clients[0].wire.String(), "\n")
	assert.True(t, events >= len(steps) && n == want*events,
		"%d events were encoded %d times, want %d each", events, n, want)
	for accept, clients := range byAccept {
		for _, c := range clients[1:] {
			if first := clients[0].wire.String(); first == "" || c.wire.String() != first {
				t.Errorf("%s: one client was sent %q, another %q", accept, first, c.wire.String())
			}
		}
	}
}
