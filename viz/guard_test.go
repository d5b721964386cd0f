package viz

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
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
			assert.Equal(t, recorder.Code, test.code, "got %d %s, want %d", recorder.Code, recorder.Body, test.code)
		})
	}
}

func TestEveryAnswerForbidsScriptsFramesAndGuesses(t *testing.T) {
	log, _ := newLog()
	ui := New(Config{Log: log})
	for _, path := range []string{"/", "/viz/snapshot", "/viz/assets/frame/page.css", "/no/such"} {
		header := ask(ui, "GET", path, "").Header()
		policy := header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'self'") || strings.Contains(policy, "unsafe") ||
			!strings.Contains(policy, "frame-ancestors 'none'") {
			t.Errorf("%s: Content-Security-Policy %q", path, policy)
		}
		assert.True(t, header.Get("X-Content-Type-Options") == "nosniff" && header.Get("X-Frame-Options") == "DENY",
			"%s: nosniff or frame denial is missing: %v", path, header)
	}
}
