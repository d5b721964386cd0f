package handlers

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/kube/negotiation"
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
	return c.Body.Write(p)
}

// serveWatch serves what is queued in a fake watch, and its end.
func serveWatch(t *testing.T, s *Scope, accept string, watching *watch.FakeWatcher, w http.ResponseWriter) {
	t.Helper()
	r := request(t, podsPath+"?watch=1")
	r.Header.Set("Accept", accept)
	output := require.Value(negotiation.Output(r))(t)
	require.NoError(t, require.Value(s.newWatchServer(r, watching, time.Hour, output, false))(t).HandleHTTP(w, r))
}

func watchScope(t *testing.T) *Scope {
	s := podScope(t)
	s.server = &Server{Config: Config{Clock: clock.RealClock{}, Meter: uncounted{}}}
	return s
}

func TestABacklogIsFlushedOnce(t *testing.T) {
	watching := watch.NewFakeWithChanSize(3, false)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	for range 3 {
		watching.Add(pod)
	}
	watching.Stop()
	w := &counting{ResponseRecorder: *httptest.NewRecorder()}
	serveWatch(t, watchScope(t), "application/json", watching, w)
	assert.EqualSlices(t, []string{"headers", "flush", "write", "write", "write", "flush"}, w.trace)
	assert.Equal(t, "", pod.Kind, "the object was given the kind")
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
		assert.True(t, table.Kind == "Table" && (len(table.ColumnDefinitions) > 0) == wantColumns &&
			len(table.Rows) == 1, "table %d: got %+v", i, table)
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
	body := w.Body.String()
	assert.True(t, strings.Count(body, "\n") == 1 && strings.Contains(body, `"name":"a"`), "got %s, want only a", body)
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
	watching := watch.NewFakeWithChanSize(3, false)
	watching.Add(object)
	watching.Add(object)
	watching.Modify(object)
	watching.Stop()
	serveWatch(t, s, tableV1, watching, httptest.NewRecorder())
	assert.Equal(t, 4, object.encoded, "a table with headers, one without, and one of another type: encodings in all")
}

func TestAWriterThatCannotFlushIsAnError(t *testing.T) {
	s := watchScope(t)
	r := request(t, podsPath)
	output, _ := negotiation.Output(r)
	server := require.Value(s.newWatchServer(r, watch.NewFake(), time.Hour, output, false))(t)
	var w struct{ http.ResponseWriter }
	assert.True(t, server.HandleHTTP(w, r) != nil, "got no error")
}
