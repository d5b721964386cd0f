package lens

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/eventually"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
)

func TestWhatIsAWatchForTheServerIsOneForTheLens(t *testing.T) {
	for query, want := range map[string]bool{
		"watch": true, "watch=": true, "watch=yes": true, "watch=1": true, "watch=true": true, "watch=TRUE": true,
		"watch=t": true, "watch=2": true,
		"": false, "watch=0": false, "watch=false": false, "watch=False": false, "Watch=true": false,
		"watch=false&watch=true": false, "watch=1;x": false,
	} {
		for path, watchable := range map[string]bool{"/api/v1/pods": true, "/api/v1/namespaces/d/pods/a": false} {
			request := require.Value(http.NewRequest(http.MethodGet, "http://x"+path+"?"+query, nil))(t)
			assert.Equal(t, want && watchable, newAsk(request).Watch, "%s?%s", path, query)
		}
	}
}

// TestWhatIsForwardedCannotRunUnderOurOrigin has the server set headers that change a browser's rights: none may pass.
func TestWhatIsForwardedCannotRunUnderOurOrigin(t *testing.T) {
	b := newBench(t, false, func(w http.ResponseWriter, r *http.Request) {
		for name := range strings.FieldsSeq("Access-Control-Allow-Origin Access-Control-Allow-Credentials Alt-Svc " +
			"Link Content-Security-Policy Content-Security-Policy-Report-Only Set-Cookie Clear-Site-Data Refresh " +
			"X-Frame-Options Service-Worker-Allowed Strict-Transport-Security Permissions-Policy Speculation-Rules " +
			"X-Of-Tomorrow") {
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
		assert.True(t, response.Header.Get("Audit-Id") == "kept" &&
			response.Header.Get("X-Content-Type-Options") == "nosniff" && strings.HasPrefix(body, "<script"),
			"%s: got %v %s", path, response.Header, body)
	}
}

// TestWhatTheLensKeepsIsShort sends very long texts wherever the lens saves a text. The lens may keep 4 MB of them.
func TestWhatTheLensKeepsIsShort(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	b := newBench(t, false, func(w http.ResponseWriter, r *http.Request) {
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
	l := b.lens
	eventually.Holds(t, l, func() bool { l.mu.Lock(); defer l.mu.Unlock(); return len(l.running) == 0 })
	runtime.GC()
	runtime.ReadMemStats(&after)
	kept := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	assert.True(t, kept <= 4<<20 && len(l.trails) == 21, "%d bytes are kept of %d trails", kept, len(l.trails))
}

// told waits until the log has a record of each point, and returns the log's sentences.
func told(t *testing.T, log *probe.Log, points ...probe.Point) (lines []string) {
	t.Helper()
	eventually.Holds(t, &lines, func() bool {
		records, _ := log.Since(nil, 0, 100)
		lines = nil
		missing := slices.Clone(points)
		for _, r := range records {
			lines = append(lines, fmt.Sprintf("%s %s %s", r.Resource, r.Subject, r.Sentence()))
			missing = slices.DeleteFunc(missing, func(p probe.Point) bool { return p == r.Point })
		}
		return len(missing) == 0
	})
	return lines
}

// TestWhatIsSeenIsToldInTheLog checks the log's sentences, and that the log, the report and the errors contain no
// credentials. The gate holds the world all the time, but not the lens.
func TestWhatIsSeenIsToldInTheLog(t *testing.T) {
	next := make(chan bool) // closed to end the watch
	b := newBench(t, false, func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "s3cret"})
		if !r.URL.Query().Has("watch") {
			_, _ = io.WriteString(w, `{"kind":"SecretList","metadata":{"resourceVersion":"7"},`+
				`"items":[{"data":{"p":"s3cret"}}]}`)
			return
		}
		_, _ = io.WriteString(w,
			`{"type":"ADDED","object":{"kind":"Secret","metadata":{"name":"a","namespace":"x","resourceVersion":"8"},`+
				`"data":{"p":"s3cret"}}}`+"\n")
		w.(http.Flusher).Flush()
		<-next
	})
	log := probe.NewLog(clock.RealClock{}, 0)
	log.Gate().Hold()
	defer log.Gate().Release()
	b.lens.Show(log)
	header := http.Header{"Authorization": {"Bearer s3cret"}, "Cookie": {"a=s3cret"},
		"User-Agent": {"me/1 authorization: s3cret"}}
	b.send(t, http.MethodGet, "/apis/example.com/v1/secrets?limit=5&access_token=s3cret", header)
	told(t, log, probe.RequestAnswered)
	answered := make(chan bool) // closed when the watch has ended
	go func() {
		defer close(answered)
		b.send(t, http.MethodGet,
			"/apis/example.com/v1/secrets?watch=true&resourceVersion=7&labelSelector=app%3Dx&token=s3cret", header)
	}()
	told(t, log, probe.FrameWritten)
	other := probe.NewLog(clock.RealClock{}, 0)
	b.lens.Show(other)
	lines := told(t, other, probe.WireOpened)
	assert.True(t, len(lines) == 2, "the next log has %q about an open watch, want two records", lines)
	close(next)
	<-answered
	lines = append(told(t, log), told(t, other, probe.RequestAnswered)[2:]...)
	received := func(query string) string {
		return "  " + (&probe.Record{Point: probe.RequestReceived, Texts: probe.TextsOf(probe.RequestReceived, "GET",
			"/apis/example.com/v1/secrets", query, "me")}).Sentence()
	}
	want := []string{
		received("limit=5&access_token=***"),
		"  Answered GET /apis/example.com/v1/secrets?limit=5&access_token=*** with 200 (90 bytes at version 7).",
		received("watch=true&resourceVersion=7&labelSelector=app%3Dx&token=***"),
		"secrets c2 Watcher c2 is registered from 7: secrets.example.com with app=x.",
		"secrets c2 The stream of c2 is open: me/1 authorization: *** " +
			"/apis/example.com/v1/secrets?watch=true&resourceVersion=7&labelSelector=app%3Dx&token=***.",
		"secrets c2 ADDED x/a at 8 is written as 128 bytes; result still holds 0.",
		"secrets c2 The stream of c2 ends: the server ended it.",
		"secrets c2 Watcher c2 is gone.",
		"  Answered GET " +
			"/apis/example.com/v1/secrets?watch=true&resourceVersion=7&labelSelector=app%3Dx&token=*** with 200.",
	}
	assert.EqualSlices(t, want, lines, "got %s\nwant %s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	b.backend.Close()
	_, refusal := b.send(t, http.MethodGet, "/api/v1/secrets?token=s3cret", header)
	report := string(require.Value(json.Marshal(b.lens.Report()))(t))
	assert.True(t, strings.Contains(refusal, "is kubectl proxy still running?") &&
		!strings.Contains(report+refusal, "s3cret"), "got %s and %s", refusal, report)
}

// TestALogNamesSoManyResourcesThatItsRecordingCanBeShown requests more resources than it may name: the rest get "".
func TestALogNamesSoManyResourcesThatItsRecordingCanBeShown(t *testing.T) {
	b := newBench(t, false, func(w http.ResponseWriter, _ *http.Request) {})
	log := probe.NewLog(clock.RealClock{}, 0)
	b.lens.Show(log)
	const asked = maxNamed + 20
	for i := range asked {
		b.send(t, http.MethodGet, fmt.Sprintf("/api/v1/things%d?watch=true", i), nil)
	}
	var named map[string]bool
	eventually.Holds(t, &named, func() bool {
		named = map[string]bool{}
		records, _ := log.Since(nil, 0, 1<<16)
		answered := 0
		for _, r := range records {
			named[r.Resource] = true
			if r.Point == probe.RequestAnswered {
				answered++
			}
		}
		return answered == asked
	})
	if len(named) > fold.MaxResources || len(named) != maxNamed+1 { // one more: "" is for unnamed resources
		t.Errorf("the log names %d resources", len(named))
	}
}
