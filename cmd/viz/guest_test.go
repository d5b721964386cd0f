package main

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/eventually"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
)

// upstreamOf starts a server that is not ours. It answers with its name, and keeps watches open.
func upstreamOf(t *testing.T, name string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, name+" "+r.Proto+" "+r.URL.Path)
		if r.URL.Query().Has("watch") {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}))
	t.Cleanup(func() { eventually.Closes(server) })
	return server
}

func TestTheServerHalfIsElsewhere(t *testing.T) {
	p := start(t, "-server", upstreamOf(t, "theirs").URL)
	host := strings.TrimPrefix(p.url, "http://")
	for _, c := range []struct {
		method, path, host, header, want string // header is "Name: value"
		status                           int
	}{
		{"GET", "/version", host, "", "theirs HTTP/1.1 /version", 200},
		{"GET", "/version", "evil.example", "", "not called that", 421},
		{"GET", "/viz/nothing", host, "", "nothing at this path", 404},
		{"GET", "/viz/lens", host, "", `"server":"http://127.0.0.1:`, 200},
		{"GET", "/", host, "", "<!doctype html>", 200},
		{"GET", "/api/v1/pods?watch=true", host, "Upgrade: websocket", "become another protocol", 403},
		{"POST", "/api/v1/pods", host, "Origin: http://evil.example", "", 403},
	} {
		request := require.Value(http.NewRequest(c.method, p.url+c.path, nil))(t)
		request.Host = c.host
		if name, value, ok := strings.Cut(c.header, ": "); ok {
			request.Header.Set(name, value)
			request.Header.Set("Connection", name) // an upgrade needs this header; other requests do not
		}
		code, body := answer(t, request)
		assert.True(t, code == c.status && strings.Contains(body, c.want), "%s at %s: got %d %.200s", c.path, c.host,
			code, body)
	}
	p.endsWell(t)
}

// TestARecordingOfTheLensHasTheEndsOfItsWatches ends the program while a client watches through it. The client sends
// secrets, and the server answers with more; none of them may be saved.
func TestARecordingOfTheLensHasTheEndsOfItsWatches(t *testing.T) {
	const secret = `{"type":"ADDED","object":{"kind":"Secret","metadata":{"name":"a","resourceVersion":"5"},` +
		`"data":{"p":"s3cret"}}}` + "\n"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Set-Cookie", "a=s3cret")
		_, _ = io.WriteString(w, secret)
		w.(http.Flusher).Flush()
		if r.URL.Query().Has("watch") {
			<-r.Context().Done()
		}
	}))
	t.Cleanup(func() { eventually.Closes(server) })
	file := filepath.Join(t.TempDir(), "lens.gz")
	p := start(t, "-server", server.URL, "-record", file)
	request := require.Value(http.NewRequest(http.MethodGet, p.url+"/api/v1/secrets?watch=true&token=s3cret", nil))(t)
	request.Header = http.Header{"Authorization": {"Bearer s3cret"}, "Cookie": {"a=s3cret"}, "User-Agent": {"watcher"}}
	response := require.Value(http.DefaultClient.Do(request))(t)
	defer response.Body.Close()
	got, err := bufio.NewReader(response.Body).ReadString('\n')
	require.True(t, got == secret && err == nil, "the client was sent %q, %v", got, err)
	eventually.Holds(t, "the frame is in the log", func() bool {
		_, log := p.get(t, "/viz/records")
		return strings.Contains(log, `"resource":"secrets","subject":"c1","type":"ADDED"`)
	})
	p.endsWell(t)
	header, records := readRecording(t, file)
	assert.Equal(t, "elsewhere", header.Switches["server"])
	ends := map[string]string{} // the ends of watches, by client
	for _, r := range records {
		switch r.Point {
		case probe.WireOpened:
			ends[r.Subject] = "open"
		case probe.WireClosed:
			ends[r.Subject] = r.Field(probe.FieldWhy)
		}
	}
	assert.True(t, ends["c1"] == "the lens ended" && !slices.Contains(slices.Collect(maps.Values(ends)), "open"),
		"got the ends %q", ends)
	if all := fmt.Sprint(records); strings.Contains(all, "s3cret") || !strings.Contains(all, "token=") {
		t.Errorf("what is recorded names a secret, or no request: %s", all)
	}
}

func TestAServerThatIsGoneIsToldInAStatus(t *testing.T) {
	gone := require.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	gone.Close()
	p := start(t, "-server", "http://"+gone.Addr().String())
	code, body := p.get(t, "/api/v1/pods")
	assert.True(t, code == http.StatusBadGateway && strings.Contains(body, "is kubectl proxy still running?"),
		"got %d %s", code, body)
	p.endsWell(t)
}
