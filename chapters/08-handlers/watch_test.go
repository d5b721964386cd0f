package handlers

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	"listwatch/internal/probe"
	"listwatch/internal/routine"
)

// next returns the next frame of a stream.
func next(t *testing.T, lines *bufio.Scanner) frame {
	t.Helper()
	if !lines.Scan() {
		t.Fatalf("the stream ended: %v", lines.Err())
	}
	var f frame
	if err := json.Unmarshal(lines.Bytes(), &f); err != nil {
		t.Fatalf("line %q: %v", lines.Text(), err)
	}
	return f
}

func TestAWatchStreamsOneLineForEachEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newCachedAPI(t)
		client := a.serve()
		started := time.Now()
		response, err := client.Get("http://api" + podsPath + "?watch=1&allowWatchBookmarks=true&timeoutSeconds=60")
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		// The headers are here, and nothing has happened yet.
		if response.StatusCode != 200 || response.Header.Get("Content-Type") != "application/json" || !slices.Equal(response.TransferEncoding, []string{"chunked"}) {
			t.Errorf("got %s %v %v", response.Status, response.Header, response.TransferEncoding)
		}
		lines := bufio.NewScanner(response.Body)
		bookmark := into[corev1.Pod](t, strings.NewReader(string(next(t, lines).Object)))
		if bookmark.Annotations[metav1.InitialEventsAnnotationKey] != "true" || bookmark.Kind != "Pod" {
			t.Errorf("first: got %+v, want the end of the initial events", bookmark)
		}
		a.create(podA)
		a.do("DELETE", podsPath+"/a", "")
		var got []watch.EventType
		var version string
		for lines.Scan() {
			f := frame{}
			if err := json.Unmarshal(lines.Bytes(), &f); err != nil {
				t.Fatal(err)
			}
			pod := into[corev1.Pod](t, strings.NewReader(string(f.Object)))
			if pod.Kind != "Pod" || pod.APIVersion != "v1" || pod.ResourceVersion == "" {
				t.Errorf("%s: got %+v", f.Type, pod)
			}
			if f.Type != watch.Bookmark {
				got = append(got, f.Type)
			} else {
				version = pod.ResourceVersion
			}
		}
		if want := []watch.EventType{watch.Added, watch.Modified, watch.Deleted}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if version == "" {
			t.Error("no bookmark before the end")
		}
		if elapsed := time.Since(started); lines.Err() != nil || elapsed != time.Minute {
			t.Errorf("the end: got %v after %v, want a clean one after a minute", lines.Err(), elapsed)
		}
	})
}

func TestDeprecatedWatchPathsWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newCachedAPI(t)
		client := a.serve()
		a.create(podA)
		for _, path := range []string{"/api/v1/watch/pods", "/api/v1/watch/namespaces/default/pods", "/api/v1/watch/namespaces/default/pods/a"} {
			response, err := client.Get("http://api" + path + "?resourceVersion=0&timeoutSeconds=1")
			if err != nil {
				t.Fatal(err)
			}
			if f := next(t, bufio.NewScanner(response.Body)); f.Type != watch.Added {
				t.Errorf("%s: got %s", path, f.Type)
			}
			response.Body.Close()
		}
	})
}

func TestTheProbesTellTheStoryOfAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newCachedAPI(t)
		client := a.serve()
		a.create(podA)
		path := podsPath + "?watch=1&timeoutSeconds=1"
		response, err := client.Get("http://api" + path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(response.Body); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		want := []string{
			"PredicateChosen everything under /registry/pods/default/ default",
			"WireOpened Go-http-client/1.1 " + path,
			"ResultReceived ADDED default/a",
			"FrameWritten ADDED default/a",
			"WireClosed timeoutSeconds is over",
		}
		got := a.recorded(probe.PredicateChosen, probe.WireOpened, probe.ResultReceived, probe.FrameWritten, probe.WireClosed)
		if !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		requests := a.recorded(probe.RequestReceived, probe.RequestAnswered)
		if want := []string{"RequestReceived POST " + podsPath, "RequestAnswered POST " + podsPath, "RequestReceived GET " + path, "RequestAnswered GET " + path}; !slices.Equal(requests, want) {
			t.Errorf("requests: got %v, want %v", requests, want)
		}
	})
}

func TestAWatchOnACacheThatIsNotReadyIsToldToComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newColdAPI(t)
		w := a.do("GET", podsPath+"?watch=1&resourceVersion=5", "")
		status := wantStatus(t, w, 429, metav1.StatusReasonTooManyRequests)
		if w.Header().Get("Retry-After") == "" || status.Details.RetryAfterSeconds < 1 {
			t.Errorf("got Retry-After %q, details %+v", w.Header().Get("Retry-After"), status.Details)
		}
	})
}

func TestAWatchOfLostHistoryIsToldSoInTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newCachedAPI(t)
		for _, accept := range []string{"application/json", tableV1} {
			w := a.do("GET", podsPath+"?watch=1&resourceVersion=1", "", "Accept", accept)
			f := next(t, bufio.NewScanner(w.Body))
			status := into[metav1.Status](t, strings.NewReader(string(f.Object)))
			if w.Code != 200 || f.Type != watch.Error || status.Code != 410 || status.Reason != metav1.StatusReasonExpired {
				t.Errorf("%s: got %d, %s %+v", accept, w.Code, f.Type, status)
			}
		}
	})
}

func TestEveryWatcherSeesTheSameOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const watchers, events = 20, 100
		a := newCachedAPI(t)
		client := a.serve()
		streams := make(chan string, watchers) // sent by the readers, never closed; room for all
		var group routine.Group
		for range watchers {
			group.Go(t.Context(), "test.reader", func(context.Context) {
				response, err := client.Get("http://api" + podsPath + "?watch=1&timeoutSeconds=60")
				if err != nil {
					t.Error(err)
					return
				}
				defer response.Body.Close()
				body, err := io.ReadAll(response.Body)
				if err != nil {
					t.Error(err)
				}
				streams <- string(body)
			})
		}
		synctest.Wait()
		for i := range events {
			a.create(strings.Replace(podA, `"a"`, fmt.Sprintf("%q", fmt.Sprint("p", i)), 1))
			synctest.Wait() // in a bubble no time passes, so nobody has any to catch up
		}
		group.Wait()
		first := <-streams
		if got := strings.Count(first, "\n"); got != events {
			t.Errorf("got %d events, want %d", got, events)
		}
		for range watchers - 1 {
			if other := <-streams; other != first {
				t.Error("two watchers saw different streams")
			}
		}
	})
}

func TestAListOfTheFutureTimesOutWithACause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newCachedAPI(t)
		w := a.do("GET", podsPath+"?resourceVersion=1000", "")
		status := wantStatus(t, w, 504, metav1.StatusReasonTimeout)
		if w.Header().Get("Retry-After") != "1" || len(status.Details.Causes) != 1 || status.Details.Causes[0].Type != metav1.CauseTypeResourceVersionTooLarge {
			t.Errorf("got Retry-After %q, details %+v", w.Header().Get("Retry-After"), status.Details)
		}
	})
}

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
func serveWatch(t *testing.T, s *scope, accept string, watching *watch.FakeWatcher, w http.ResponseWriter) *WatchServer {
	t.Helper()
	r := request(t, podsPath+"?watch=1")
	r.Header.Set("Accept", accept)
	output, err := negotiateOutput(r)
	if err != nil {
		t.Fatal(err)
	}
	server, err := s.newWatchServer(r, watching, time.Hour, output, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.HandleHTTP(w, r); err != nil {
		t.Fatal(err)
	}
	return server
}

func watchScope(t *testing.T) *scope {
	s := podScope(t)
	s.server = &server{clock: clock.RealClock{}, metrics: newMetrics(nil)}
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
	if want := []string{"headers", "flush", "write", "write", "write", "flush"}; !slices.Equal(w.trace, want) {
		t.Errorf("got %v, want %v", w.trace, want)
	}
}

func TestOnlyTheFirstTableHasHeadersAndErrorsAreNoTables(t *testing.T) {
	watching := watch.NewFakeWithChanSize(5, false)
	watching.Error(&metav1.Status{Status: "Failure", Code: 410, Reason: metav1.StatusReasonExpired})
	watching.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "1"}})
	watching.Modify(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "2"}})
	watching.Action(watch.Bookmark, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "3", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}})
	watching.Stop()
	w := httptest.NewRecorder()
	s := watchScope(t)
	s.storage = tables(t)
	serveWatch(t, s, tableV1, watching, w)
	lines := bufio.NewScanner(w.Body)
	if status := into[metav1.Status](t, strings.NewReader(string(next(t, lines).Object))); status.Kind != "Status" || status.Code != 410 {
		t.Errorf("error: got %+v", status)
	}
	for i, wantColumns := range []bool{true, false, false} {
		table := into[metav1.Table](t, strings.NewReader(string(next(t, lines).Object)))
		if table.Kind != "Table" || (len(table.ColumnDefinitions) > 0) != wantColumns || len(table.Rows) != 1 {
			t.Errorf("table %d: got %+v", i, table)
		}
		var row metav1.PartialObjectMetadata
		if err := json.Unmarshal(table.Rows[0].Object.Raw, &row); err != nil || row.Kind != "PartialObjectMetadata" || row.APIVersion != "meta.k8s.io/v1" {
			t.Errorf("row %d: got %+v, %v", i, row, err)
		}
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

func TestManyWatchersOfOneObjectEncodeItOnce(t *testing.T) {
	object := &cached{Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, frames: map[runtime.Identifier]string{}}
	bodies := map[string]bool{}
	s := watchScope(t)
	s.storage = tables(t)
	for range 5 {
		watching := watch.NewFakeWithChanSize(1, false)
		watching.Add(object)
		watching.Stop()
		w := httptest.NewRecorder()
		serveWatch(t, s, "application/json", watching, w)
		bodies[w.Body.String()] = true
	}
	if object.encoded != 1 || len(bodies) != 1 {
		t.Errorf("got %d encodings and %d different streams", object.encoded, len(bodies))
	}
	watching := watch.NewFakeWithChanSize(2, false)
	watching.Add(object)
	watching.Add(object)
	watching.Stop()
	serveWatch(t, s, tableV1, watching, httptest.NewRecorder())
	if object.encoded != 3 {
		t.Errorf("a table with headers and one without: got %d encodings in all, want 3", object.encoded)
	}
}

func TestSharedObjectsAreNotTouched(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	watching := watch.NewFakeWithChanSize(1, false)
	watching.Add(pod)
	watching.Stop()
	serveWatch(t, watchScope(t), "application/json", watching, httptest.NewRecorder())
	if pod.Kind != "" {
		t.Errorf("the object was given the kind %q", pod.Kind)
	}
}

func TestAWriterThatCannotFlushIsAnError(t *testing.T) {
	s := watchScope(t)
	r := request(t, podsPath)
	output, _ := negotiateOutput(r)
	server, err := s.newWatchServer(r, watch.NewFake(), time.Hour, output, false)
	if err != nil {
		t.Fatal(err)
	}
	var w struct{ http.ResponseWriter }
	if err := server.HandleHTTP(w, r); err == nil {
		t.Error("got no error")
	}
}

func TestEveryEndOfAStreamStopsTheWatch(t *testing.T) {
	for name, end := range map[string]func(h *hanging){
		"the client goes":       func(h *hanging) { h.response.Body.Close() },
		"the server shuts down": func(h *hanging) { close(h.shutdown) },
		"time is over":          func(*hanging) { time.Sleep(time.Hour) },
		"the watch ends":        func(h *hanging) { h.watching.Stop() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := hang(t)
				end(h)
				synctest.Wait()
				if !h.watching.IsStopped() {
					t.Error("the watch goes on")
				}
			})
		})
	}
}

func TestAClientThatNeverReadsIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hang(t)
		for i := range 100 { // far more than the buffers of net/http hold
			h.watching.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", i), Annotations: map[string]string{"k": strings.Repeat("x", 10<<10)}}})
		}
		time.Sleep(59*time.Minute + writeGrace)
		synctest.Wait()
		if h.watching.IsStopped() {
			t.Fatal("cut off too early")
		}
		time.Sleep(time.Minute + writeGrace)
		synctest.Wait()
		if !h.watching.IsStopped() {
			t.Error("the handler still waits for its client")
		}
	})
}
