package viz

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/observe/hold"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/worldclock"
	"listwatch/viz/frame"
	"listwatch/viz/timeline"
)

func TestTheGuardLetsInWhoMeansUs(t *testing.T) {
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	type header map[string]string
	tests := []struct {
		name   string
		hosts  []string
		method string
		host   string
		header header
		code   int
	}{
		{"kubectl", nil, "POST", "127.0.0.1:8080", nil, 200},
		{"localhost", nil, "GET", "localhost:8080", nil, 200},
		{"a name below localhost", nil, "GET", "app.localhost:8080", nil, 200},
		{"loopback of version 6", nil, "DELETE", "[::1]:8080", nil, 200},
		{"without a port", nil, "GET", "[::1]", nil, 200},
		{"another loopback address", nil, "GET", "127.1.2.3", nil, 200},
		{"a name that was rebound", nil, "GET", "evil.example:8080", nil, 421},
		{"a name that begins like ours", nil, "GET", "localhost.evil.example", nil, 421},
		{"no name at all", nil, "GET", "", nil, 421},
		{"the address that is listened on", []string{"192.0.2.7:8080"}, "GET", "192.0.2.7:8080", nil, 200},
		{"another address", []string{"192.0.2.7:8080"}, "GET", "192.0.2.8:8080", nil, 421},
		{"a name that was asked for", []string{"Workshop.Local"}, "GET", "workshop.local:80", nil, 200},
		{"any address when all are listened on", []string{"0.0.0.0:8080"}, "GET", "192.0.2.8:8080", nil, 200},
		{"no name when all are listened on", []string{"[::]:8080"}, "GET", "evil.example", nil, 421},
		{"the page's own write", nil, "POST", "localhost:8080", header{"Origin": "http://localhost:8080",
			"Sec-Fetch-Site": "same-origin"}, 200},
		{"another page's write", nil, "POST", "localhost:8080", header{"Origin": "http://evil.example",
			"Sec-Fetch-Site": "cross-site"}, 403},
		{"another port's write", nil, "POST", "localhost:8080", header{"Origin": "http://localhost:9090"}, 403},
		{"a write from nowhere", nil, "DELETE", "localhost:8080", header{"Origin": "null"}, 403},
		{"another page's read, which it cannot see", nil, "GET", "localhost:8080",
			header{"Origin": "http://evil.example"}, 200},
		{"another page's websocket, which it could", nil, "GET", "localhost:8080",
			header{"Origin": "http://evil.example", "Upgrade": "websocket"}, 403},
		{"our page's websocket", nil, "GET", "localhost:8080", header{"Origin": "http://localhost:8080",
			"Upgrade": "websocket"}, 200},
		{"a websocket without a page", nil, "GET", "localhost:8080", header{"Upgrade": "websocket"}, 200},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			request := httptest.NewRequest(test.method, "/api/v1/pods", nil)
			request.Host = test.host
			for name, value := range test.header {
				request.Header.Set(name, value)
			}
			recorder := httptest.NewRecorder()
			Guard(test.hosts...)(ok).ServeHTTP(recorder, request)
			assert.Equal(t, test.code, recorder.Code, "got %d %s, want %d", recorder.Code, recorder.Body, test.code)
		})
	}
}

// TestAGetOfAForeignPageHasNoEffects opens the feed and inspects a lane. Only a foreign page neither counts as a viewer
// nor makes the log record the lane's events.
func TestAGetOfAForeignPageHasNoEffects(t *testing.T) {
	for name, c := range map[string]struct {
		site, origin string
		effects      int
	}{
		"our page":                          {"same-origin", "", 1},
		"our page in an old browser":        {"", "http://localhost:8080", 1},
		"the address bar":                   {"none", "", 1},
		"curl":                              {"", "", 1},
		"a script of a foreign page":        {"cross-site", "", 0},
		"a fetch of a foreign page":         {"cross-site", "http://evil.example", 0},
		"a page on another port":            {"same-site", "http://localhost:9090", 0},
		"a foreign page in an old browser":  {"", "http://evil.example", 0},
		"a frame that is from nowhere":      {"", "null", 0},
		"our address, but a foreign script": {"cross-site", "http://localhost:8080", 0},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			world := worldclock.New(time.Now())
			log := probe.NewLog(world, 64)
			log.LimitLoud(1, func(string) bool { return false })
			pods := probe.New(log).Resource("pods")
			empty := func() (int, int, int) { return 0, 0, 10 }
			pods.Lane("w1", empty).At(probe.WatcherAdded, "", 1, 10)
			quiet := pods.Lane("w2", empty)
			quiet.At(probe.WatcherAdded, "", 1, 10)
			held := hold.New(hold.Config{Gate: log.Gate(), Clock: world, Patience: world, Say: func(string) {}})
			ui := show(log, func(p *frame.Page) { p.Hold = timeline.Hold{World: held} })
			get := func(path string) {
				r := httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost:8080"+path, nil)
				r.Header.Set("Sec-Fetch-Site", c.site)
				r.Header.Set("Origin", c.origin)
				ui.ServeHTTP(httptest.NewRecorder(), r)
			}
			go get("/viz/events")
			get("/viz/part/watcher/what?resource=pods&subject=w2")
			synctest.Wait()
			before := log.Last()
			quiet.Event(probe.InputSent, "ADDED", "default/a", 6, 1, 10)
			got := []int{held.Status().Attending, int(log.Last() - before)}
			assert.EqualSlices(t, slices.Repeat([]int{c.effects}, 2), got)
		})
	}
}

func TestEveryAnswerForbidsScriptsFramesAndGuesses(t *testing.T) {
	log, _ := newLog()
	ui := show(log)
	for _, path := range []string{"/", "/viz/snapshot", "/viz/assets/frame/page.css", "/no/such"} {
		header := ask(ui, "GET", path, "").Header()
		policy := header.Get("Content-Security-Policy")
		assert.True(t, strings.Contains(policy, "default-src 'self'") && !strings.Contains(policy, "unsafe") &&
			strings.Contains(policy, "frame-ancestors 'none'"), "%s: Content-Security-Policy %q", path, policy)
		assert.True(t, header.Get("X-Content-Type-Options") == "nosniff" && header.Get("X-Frame-Options") == "DENY",
			"%s: nosniff or frame denial is missing: %v", path, header)
	}
}
