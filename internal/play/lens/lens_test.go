package lens

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/eventually"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
	"listwatch/internal/play/otherserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a lens in front of the test's backend.
type bench struct {
	lens    *Lens
	url     string
	backend *httptest.Server
	client  *http.Client
}

// newBench starts the lens and the backend, and stops both at the end of the test.
func newBench(t *testing.T, writes bool, backend http.HandlerFunc) *bench {
	t.Helper()
	b := &bench{backend: httptest.NewServer(backend), client: &http.Client{
		Transport: &http.Transport{DisableCompression: true}}}
	target := require.Value(url.Parse(b.backend.URL))(t)
	b.lens = New(Config{Servers: []*url.URL{target}, Writes: writes, Clock: clock.RealClock{}})
	front := httptest.NewServer(b.lens)
	b.url = front.URL
	stop := bubble.Go(t, "test.lens", b.lens.Run)
	t.Cleanup(func() {
		b.client.CloseIdleConnections()
		eventually.Closes(front)
		stop()
		b.lens.transport.CloseIdleConnections()
		eventually.Closes(b.backend)
	})
	return b
}

func (b *bench) send(t *testing.T, method, path string, header http.Header) (*http.Response, string) {
	t.Helper()
	request := require.Value(http.NewRequestWithContext(t.Context(), method, b.url+path, nil))(t)
	for name, values := range header {
		request.Header[name] = values
	}
	response := require.Value(b.client.Do(request))(t)
	defer response.Body.Close()
	body := require.Value(io.ReadAll(response.Body))(t)
	return response, string(body)
}

func TestARequestArrivesAsItWasSentUnderTheServersHost(t *testing.T) {
	var got *http.Request
	b := newBench(t, false, func(w http.ResponseWriter, r *http.Request) {
		got = r
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"77"},"items":[]}`)
	})
	log := probe.NewLog(clock.RealClock{}, 0)
	b.lens.Show(log)
	_, body := b.send(t, http.MethodGet, "/api/v1/namespaces/%61/pods?limit=500",
		http.Header{"Authorization": {"Bearer s3cret"}, "User-Agent": {"me/1"}, "Accept-Encoding": {"gzip"},
			"Accept": {"application/vnd.kubernetes.protobuf,application/json"}})
	assert.True(t, got.Host == strings.TrimPrefix(b.backend.URL, "http://") &&
		got.RequestURI == "/api/v1/namespaces/%61/pods?limit=500" &&
		got.Header.Get("Authorization") == "Bearer s3cret" &&
		got.Header.Get("Accept-Encoding") == "gzip" && got.Header.Get("X-Forwarded-For") == "" &&
		got.Header.Get("Accept") == "application/json" && strings.HasPrefix(body, `{"kind"`),
		"got %s %s %v %s", got.Host, got.RequestURI, got.Header, body)
	lines := told(t, log, probe.RequestAnswered)
	want := fmt.Sprintf("  Answered GET /api/v1/namespaces/%%61/pods?limit=500 with 200 (%d bytes at version 77).",
		len(body))
	assert.Equal(t, want, lines[1])
}

func TestAnAnswerInProtobufPassesUnread(t *testing.T) {
	const sent = "\x00\x00\x00\x04k8s\x00\n"
	b := newBench(t, false, func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "application/vnd.kubernetes.protobuf", r.Header.Get("Accept"))
		w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf;stream=watch")
		_, _ = io.WriteString(w, sent)
	})
	log := probe.NewLog(clock.RealClock{}, 0)
	b.lens.Show(log)
	_, body := b.send(t, http.MethodGet, "/api/v1/pods?watch=1",
		http.Header{"Accept": {"application/vnd.kubernetes.protobuf"}})
	assert.Equal(t, sent, body)
	assert.Equal(t, 6, len(told(t, log, probe.RequestAnswered)), "records: none is of a frame")
}

func TestAGuestOnlyReads(t *testing.T) {
	reached := 0
	backend := func(http.ResponseWriter, *http.Request) { reached++ }
	requests := []struct {
		method, path, upgrade string
		want                  int
	}{
		{"POST", "/api/v1/namespaces/default/pods", "", 405},
		{"PATCH", "/api/v1/namespaces/default/pods/a", "", 405},
		{"DELETE", "/api/v1/pods", "", 405},
		{"PUT", "/anything", "", 405},
		{"GET", "/api/v1/namespaces/default/pods/a/exec?command=ls", "", 403},
		{"GET", "/api/v1//namespaces/default/pods/a/%65xec?watch=true", "websocket", 403},
		{"GET", "/api/v1/namespaces/default/pods/a/x/../attach", "", 403},
		{"GET", "/api/v1/namespaces/default/services/a:80/proxy/delete", "", 403},
		{"GET", "/api/v1/proxy/nodes/a", "", 403},
		{"GET", "/anything", "SPDY/3.1", 403},
		{"GET", "/api/v1/pods?watch=1", "websocket", 403},
		{"GET", "/apis/subresources.kubevirt.io/v1/namespaces/d/vms/vm/console?watch=true", "h2c", 403},
		{"GET", "/api/v1/namespaces/proxy/pods", "", 200},
		{"HEAD", "/api/v1/pods", "", 200},
	}
	b := newBench(t, false, backend)
	for _, r := range requests {
		before := reached
		header := http.Header{}
		if r.upgrade != "" {
			header.Set("Connection", "Upgrade")
			header.Set("Upgrade", r.upgrade)
		}
		response, body := b.send(t, r.method, r.path, header)
		assert.True(t, response.StatusCode == r.want && (reached != before) == (r.want == 200),
			"%s %s: got %s, %d requests reached the server", r.method, r.path, response.Status, reached-before)
		var status metav1.Status
		if r.want == 200 {
			continue
		}
		err := json.Unmarshal([]byte(body), &status)
		assert.True(t, err == nil && status.Code == int32(r.want) && strings.Contains(status.Message, "-server-writes"),
			"%s %s: got %s, %v", r.method, r.path, body, err)
	}
	reached = 0
	b = newBench(t, true, backend)
	for _, r := range requests[:9] {
		b.send(t, r.method, r.path, nil)
	}
	assert.Equal(t, 9, reached, "with -server-writes %d of 9 requests reached the server", reached)
}

func TestAnUpgradedStreamPassesUntouched(t *testing.T) {
	b := newBench(t, true, func(w http.ResponseWriter, _ *http.Request) {
		conn, buffered, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_, _ = io.Copy(conn, buffered)
	})
	conn := require.Value(net.Dial("tcp", strings.TrimPrefix(b.url, "http://")))(t)
	defer conn.Close()
	fmt.Fprint(conn, "GET /api/v1/namespaces/default/pods/a/exec HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n"+
		"Upgrade: echo\r\n\r\n")
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, nil)
	require.True(t, err == nil && response.StatusCode == http.StatusSwitchingProtocols &&
		response.Header.Get("Upgrade") == "echo", "got %+v, %v", response, err)
	for size := 1; size < 1<<20; size *= 8 {
		sent := strings.Repeat("\x00\xff\r\n", size)
		go func() { _, _ = io.WriteString(conn, sent) }()
		got := make([]byte, len(sent))
		_, err := io.ReadFull(reader, got)
		require.True(t, err == nil && string(got) == sent, "%d bytes came back changed, %v", len(sent), err)
	}
}

func TestAServerThatDoesNotAnswerIsPassedOverNextTime(t *testing.T) {
	answers := httptest.NewServer(http.NotFoundHandler())
	defer answers.Close()
	there := require.Value(url.Parse(answers.URL))(t)
	deaf, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts connections; no server answers
	require.NoError(t, err)
	defer deaf.Close()
	transport := otherserver.NewTransport([]*url.URL{{Scheme: "http", Host: deaf.Addr().String()}, there})
	transport.ResponseHeaderTimeout = 50 * time.Millisecond
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	if response, err := client.Post("http://x/", "", strings.NewReader("body")); err == nil ||
		transport.Server() != there {
		t.Errorf("got %v from %s, want no second try of what may have been done", response, transport.Server())
	}
	response := require.Value(client.Get("http://x/"))(t)
	response.Body.Close()
}
