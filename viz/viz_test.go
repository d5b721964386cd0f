package viz

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/takes"
	"listwatch/internal/play/lens"
	"listwatch/internal/play/otherserver"
	"listwatch/internal/play/sandbox"
	"listwatch/viz/frame"
	lensroom "listwatch/viz/lens"
	"listwatch/viz/reply"
	"listwatch/viz/stories"
)

// ask sends one request straight to the handler. header has names and values in turn.
func ask(handler http.Handler, method, path, body string, header ...string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(method, "http://localhost:8080"+path, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	return recorder
}

// show returns a page that only shows a log, with the additions of change.
func show(log *probe.Log, change ...func(*frame.Page)) *UI {
	pictures := NewPictures(log, nil, nil)
	page := frame.New(log, pictures)
	for _, each := range change {
		each(page)
	}
	return New(pictures, page, nil)
}

// acted returns a change for show that gives the page the knobs and the console of a world.
func acted(on *fakeWorld) func(*frame.Page) {
	return func(p *frame.Page) {
		p.Knobs.Sandbox, p.Console.Ask = on, on.Ask
	}
}

func newLog() (*probe.Log, *probe.Probe) {
	log := probe.NewLog(clock.RealClock{}, 16)
	return log, probe.New(log).Resource("pods")
}

func snapshotOf(t *testing.T, ui *UI) (seq uint64, state *fold.State) {
	t.Helper()
	var answer struct {
		Seq   uint64
		State json.RawMessage
	}
	require.NoError(t, json.Unmarshal(ask(ui, "GET", "/viz/snapshot", "").Body.Bytes(), &answer))
	return answer.Seq, require.Value(fold.Read(answer.State))(t)
}

func TestASnapshotAfterAGapSaysWhatIsMissingAndGoesOn(t *testing.T) {
	log, pods := newLog()
	ui := show(log)
	pods.At(probe.TxnCommitted, "a", 1)
	snapshotOf(t, ui)
	for range 40 {
		pods.At(probe.TxnCommitted, "a", 2)
	}
	seq, state := snapshotOf(t, ui)
	assert.True(t, seq == 41 && state.Lost == 24, "got seq %d with %d lost, want 41 with 24", seq, state.Lost)
}

func TestRunKeepsTheFoldCurrentWithoutAnyPage(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		log, pods := newLog()
		ui := show(log)
		bubble.Go(t, "test.ui", ui.Run)
		for range 100 { // more records than the log holds, but few in each period
			pods.At(probe.TxnCommitted, "a", 1)
			time.Sleep(framePeriod / 4)
		}
		synctest.Wait()
		seq, state := snapshotOf(t, ui)
		assert.True(t, seq == 100 && state.Lost == 0, "got seq %d with %d lost, want 100 with none", seq, state.Lost)
	})
}

func TestStateIsPulledFromTheComponents(t *testing.T) {
	log, _ := newLog()
	ui := show(log, func(p *frame.Page) {
		p.Inspector.Components = func() any { return map[string]int{"fifo": 3} }
	})
	assert.Equal(t, `{"fifo":3}`, ask(ui, "GET", "/viz/state", "").Body.String(), "state")
	assert.Equal(t, http.StatusNotFound, ask(show(log), "GET", "/viz/state", "").Code, "without components")
}

func TestEveryOtherPathIsTheAPIs(t *testing.T) {
	log, _ := newLog()
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Method+" "+r.URL.Path)
	})
	pictures := NewPictures(log, nil, nil)
	page := frame.New(log, pictures)
	page.Book.Pages = http.NotFoundHandler()
	ui := New(pictures, page, api)
	for _, path := range []string{"/api", "/api/v1/pods", "/apis", "/version", "/openapi/v3", "/healthz", "/metrics",
		"/no/such"} {
		assert.Equal(t, "DELETE "+path, ask(ui, "DELETE", path, "").Body.String(), path)
	}
	assert.Equal(t, http.StatusNotFound, ask(ui, "GET", "/book/06-cacher", "").Code, "the book")
	assert.Equal(t, http.StatusMethodNotAllowed, ask(ui, "POST", "/viz/snapshot", "").Code, "POST /viz/snapshot")
	assert.Equal(t, http.StatusMethodNotAllowed, ask(ui, "POST", "/book/", "").Code, "POST /book/")
	assert.Equal(t, http.StatusOK, ask(ui, "HEAD", "/", "").Code, "HEAD /")
}

func TestAssetsHaveATypeAndAnETag(t *testing.T) {
	log, _ := newLog()
	ui := show(log)
	for _, name := range assets() {
		first := ask(ui, "GET", "/viz/assets/"+name, "")
		etag := first.Header().Get("ETag")
		assert.True(t, first.Code == http.StatusOK && first.Header().Get("Content-Type") != "" && etag != "",
			"%s: got %d, %q, ETag %q", name, first.Code, first.Header().Get("Content-Type"), etag)
		again := ask(ui, "GET", "/viz/assets/"+name, "", "If-None-Match", etag)
		assert.True(t, again.Code == http.StatusNotModified, "%s, unchanged: got %d, want 304", name, again.Code)
	}
	for _, name := range []string{"none.js", "../viz.go", ""} {
		assert.Equal(t, http.StatusNotFound, ask(ui, "GET", "/viz/assets/"+name, "").Code, "%q", name)
	}
}

// fakeWorld has one watcher. It refuses version 1 and all requests of the console; etcd.restart and watch-lists wait.
type fakeWorld struct {
	stories.Sandbox
	added []sandbox.WatcherOptions
	state sandbox.KnobState
}

func (w *fakeWorld) AddWatcher(_ context.Context, _ *sandbox.Run,
	options sandbox.WatcherOptions) (sandbox.WatcherInfo, sandbox.Receipt, error) {
	if options.ResourceVersion == "1" {
		return sandbox.WatcherInfo{}, sandbox.Receipt{}, apierrors.NewResourceExpired("too old resource version: 1 (7)")
	}
	w.added = append(w.added, options)
	added := sandbox.WatcherInfo{ID: "page-1", UserAgent: "listwatch-page-1"}
	return added, sandbox.Receipt{ID: 7, UnderWay: options.WatchList}, nil
}

func (w *fakeWorld) Turn(_ context.Context, _ *sandbox.Run, knob sandbox.Knob) (sandbox.Receipt, error) {
	return sandbox.Receipt{ID: 7, UnderWay: knob.Name == "etcd.restart"}, nil
}

func (w *fakeWorld) Knobs() sandbox.KnobState { return w.state }

func (w *fakeWorld) RemoveWatcher(_ context.Context, id string) error {
	if id != "page-1" {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "watchers"}, id)
	}
	return nil
}

func (w *fakeWorld) Ask(*http.Request) (*http.Response, error) {
	return nil, apierrors.NewTooManyRequests("one too many", 0)
}

func (w *fakeWorld) Watchers() []sandbox.WatcherInfo {
	return []sandbox.WatcherInfo{{ID: "page-1", UserAgent: "listwatch-page-1", Options: sandbox.WatcherOptions{
		Resource: "pods"}}}
}

type guestThatNotes struct {
	lensroom.Guest
	chosen []otherserver.Choice
}

func (g *guestThatNotes) Choose(c otherserver.Choice) error {
	g.chosen = append(g.chosen, c)
	return nil
}

func TestCommandsAreCheckedAndAnsweredWithTheRightStatus(t *testing.T) {
	log, _ := newLog()
	world := &fakeWorld{}
	g := &guestThatNotes{}
	ui := show(log, acted(world), func(p *frame.Page) {
		p.Lens = lensroom.Room{Guest: g, Report: func() lens.Report { return lens.Report{} }}
	})
	tests := []struct {
		name, method, path, mediaType, body string
		code                                int
	}{
		{"good", "POST", "/viz/watchers", "application/json",
			`{"labelSelector":"app=web","fieldSelector":"spec.nodeName=","bookmarks":true}`, 201},
		{"empty", "POST", "/viz/watchers", "application/json; charset=utf-8", `{}`, 201},
		{"without a type", "POST", "/viz/watchers", "", `{}`, 201},
		{"held", "POST", "/viz/watchers", "", `{"watchList":true}`, 202},
		{"a knob", "POST", "/viz/knobs", "", `{"name":"line.drop","target":"x"}`, 200},
		{"a knob that waits with the world", "POST", "/viz/knobs", "", `{"name":"etcd.restart"}`, 202},
		{"no JSON", "POST", "/viz/watchers", "application/json", `{`, 400},
		{"two values", "POST", "/viz/watchers", "application/json", `{}{}`, 400},
		{"unknown field", "POST", "/viz/watchers", "application/json", `{"selector":"a"}`, 400},
		{"wrong type", "POST", "/viz/watchers", "application/json", `{"bookmarks":"yes"}`, 400},
		{"a form", "POST", "/viz/watchers", "application/x-www-form-urlencoded", `a=b`, 415},
		{"too large", "POST", "/viz/watchers", "application/json", `{"labelSelector":"` + strings.Repeat("a",
			reply.MaxBody) + `"}`, 413},
		{"a choice in a form", "POST", "/viz/guest", "text/plain", `{"resources":["pods"]}`, 415},
		{"a choice of an unknown field", "POST", "/viz/guest", "application/json", `{"resource":["pods"]}`, 400},
		{"refused by the API", "POST", "/viz/watchers", "application/json", `{"resourceVersion":"1"}`, 410},
		{"no such story", "GET", "/viz/scenario/none", "", "", 404},
		{"no request", "POST", "/viz/console", "application/json", `{"request":"hello"}`, 400},
		{"a request that is refused", "POST", "/viz/console", "application/json", `{"request":"GET /api"}`, 429},
		{"remove", "DELETE", "/viz/watchers/page-1", "", "", 204},
		{"remove what is not there", "DELETE", "/viz/watchers/page-9", "", "", 404},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := ask(ui, test.method, test.path, test.body, "Content-Type", test.mediaType)
			assert.Equal(t, test.code, got.Code, "got %d %s, want %d", got.Code, got.Body, test.code)
			if got.Code < 400 {
				return
			}
			var status metav1.Status
			err := json.Unmarshal(got.Body.Bytes(), &status)
			assert.True(t, err == nil && status.Kind == "Status" && int(status.Code) == test.code,
				"body: got %s, want a Status of %d", got.Body, test.code)
		})
	}
	assert.Equal(t, 0, len(g.chosen), "choices")
	want := sandbox.WatcherOptions{
		Resource: "pods", LabelSelector: "app=web", FieldSelector: "spec.nodeName=", Bookmarks: true,
	}
	assert.True(t, len(world.added) == 4 && world.added[0] == want,
		"added: got %+v, want %+v first of four", world.added, want)
	opened := ask(ui, "POST", "/viz/watchers", `{}`, "Content-Type", "application/json").Body.String()
	assert.True(t, strings.Contains(opened, `"userAgent":"listwatch-page-1"`), "opened: got %s, want its name", opened)
	held := ask(ui, "POST", "/viz/knobs", `{"name":"etcd.restart"}`, "Content-Type", "application/json").Body.String()
	assert.True(t, strings.Contains(held, `"id":7`), "a knob that waits with the world: got %s, want its id", held)
	got := ask(ui, "GET", "/viz/watchers", "").Body.String()
	assert.True(t, strings.Contains(got, `"userAgent":"listwatch-page-1"`), "watchers: got %s", got)
	alone := ask(show(log), "POST", "/viz/watchers", `{}`, "Content-Type", "application/json")
	assert.Equal(t, 404, alone.Code, "without a world")
}

// TestThePanelOfKnobsSaysHowEverythingStands checks the state of each kind of knob, and that names are escaped.
func TestThePanelOfKnobsSaysHowEverythingStands(t *testing.T) {
	log, _ := newLog()
	ui := show(log, acted(&fakeWorld{state: sandbox.KnobState{
		WhyNot:   map[string]string{"etcd.restart": "it is not ours"},
		Traffic:  sandbox.TrafficInfo{Rate: 60, Most: 100, Written: 7},
		Handlers: []sandbox.HandlerInfo{{Name: "handler-1", Delay: 3 * time.Second}},
		Lines:    []sandbox.Connection{{UserAgent: "<b>", Streams: 2, Stalled: true}},
		Rings:    []sandbox.RingInfo{{Resource: "pods", Fixed: 8}},
		Switches: map[string]string{"fifo": "delta"},
	}}))
	panel := ask(ui, "GET", "/viz/panel/knobs", "").Body.String()
	for _, want := range []string{
		`value="50" selected>50/s</option><option value="100">100/s</option></select>`, `60/s, 7 written<`,
		`value="8" selected`, `data-knob="etcd.restart" title="Stop it ` +
			`and start it again on its data" disabled`, `value="3s" selected data-does="takes 3s">`,
		`data-target="handler-2">Add a handler`, `&lt;b&gt;, 2 streams<`, `data-value="false" aria-label="Stall the ` +
			`reader of &lt;b&gt;" aria-pressed="true"`, `listwatch-page-1<`, `data-closes="page-1"`,
		`value="delta" selected`,
	} {
		assert.True(t, strings.Contains(panel, want), "the panel lacks %s: %s", want, panel)
	}
	for _, path := range []string{"/viz/panel/knobs", "/viz/panel/promises"} {
		assert.Equal(t, http.StatusNotFound, ask(show(log), "GET", path, "").Code, path)
	}
}

func TestABodyThatDoesNotComeInTimeIs408(t *testing.T) {
	u := show(holdable())
	r := httptest.NewRequest("POST", "http://localhost:8080/viz/hold", iotest.ErrReader(os.ErrDeadlineExceeded))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	u.ServeHTTP(w, r)
	assert.Equal(t, http.StatusRequestTimeout, w.Code, "got %d %s", w.Code, w.Body)
}

func TestARecordingIsServedAndShownInAFrameOfOurs(t *testing.T) {
	ui := show(probe.NewLog(clock.RealClock{}, 8))
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		ui.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil))
		return w
	}
	life, _ := takes.Find("life")
	if got := get("/viz/takes/life"); got.Code != http.StatusOK || got.Body.String() != string(life.File()) {
		t.Errorf("/viz/takes/life: %d with %d bytes", got.Code, got.Body.Len())
	}
	assert.Equal(t, http.StatusNotFound, get("/viz/takes/none").Code, "/viz/takes/none")
	tests := []struct {
		path, take, frame string
		figure            bool
	}{
		{"/", "", "DENY", false},
		{"/?take=life", "life", "DENY", false},
		{"/?take=none", "", "DENY", false},
		{"/?figure=1&take=life", "life", "SAMEORIGIN", true},
	}
	for _, test := range tests {
		w := get(test.path)
		assert.Equal(t, test.frame, w.Header().Get("X-Frame-Options"), "%s: X-Frame-Options", test.path)
		own := strings.Contains(w.Header().Get("Content-Security-Policy"), "frame-ancestors 'self'")
		assert.True(t, own == test.figure, "%s: %s", test.path, w.Header().Get("Content-Security-Policy"))
		body := regexp.MustCompile(`<body[^>]*>`).FindString(w.Body.String())
		assert.True(t, strings.Contains(body, `data-take="`+test.take+`"`) &&
			strings.Contains(body, `class="figure"`) == test.figure, "%s: %s", test.path, body)
	}
}
