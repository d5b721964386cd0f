package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/eventually"
)

// line is the network between a page and the program. It can stop carrying the feed, as a network does, without telling
// either end; and it hears what the feed says.
type line struct {
	URL  string
	leaf time.Duration // that a leaf of the inspector takes; set before the page opens

	mu    sync.Mutex     // guards the fields below
	free  *sync.Cond     // on mu
	cut   bool           // nothing of the feed is carried
	heard map[string]int // messages, by event
	feeds int            // that were opened
}

// newLine returns a line to the program.
func newLine(t *testing.T, v *viz) *line {
	t.Helper()
	target, err := url.Parse(v.URL)
	if err != nil {
		t.Fatal(err)
	}
	l := &line{heard: map[string]int{}}
	l.free = sync.NewCond(&l.mu)
	proxy := &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target) },
		FlushInterval:  -1,
		ErrorLog:       log.New(io.Discard, "", 0),
		Transport:      &http.Transport{DialContext: dialNarrow},
		ModifyResponse: l.listen,
	}
	server := httptest.NewServer(proxy)
	l.URL = server.URL
	t.Cleanup(func() {
		l.carry(true)
		eventually.Closes(server)
	})
	return l
}

// dialNarrow opens a connection that itself keeps little of what its client does not read.
func dialNarrow(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(64 << 10) // who refuses has the test write a little more
	}
	return conn, err
}

// listen puts the line's own reader before the body of a feed.
func (l *line) listen(response *http.Response) error {
	if strings.HasPrefix(response.Request.URL.Path, "/viz/part/") {
		time.Sleep(l.leaf)
	}
	if response.Request.URL.Path == "/viz/events" {
		response.Body = &feedBody{ReadCloser: response.Body, line: l}
		l.mu.Lock()
		l.feeds++
		l.mu.Unlock()
	}
	return nil
}

// carry says whether the feed is carried.
func (l *line) carry(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = !on
	l.free.Broadcast()
}

func (l *line) said(event string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.heard[event]
}

func (l *line) opened() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.feeds
}

// feedBody is the body of a feed as the line carries it.
type feedBody struct {
	io.ReadCloser
	line *line
	rest []byte // of a line of text that has not ended
}

func (b *feedBody) Read(p []byte) (int, error) {
	b.line.mu.Lock()
	for b.line.cut {
		b.line.free.Wait()
	}
	b.line.mu.Unlock()
	n, err := b.ReadCloser.Read(p)
	b.hear(p[:n])
	return n, err
}

func (b *feedBody) hear(some []byte) {
	lines := bytes.Split(append(b.rest, some...), []byte("\n"))
	b.rest = bytes.Clone(lines[len(lines)-1])
	if len(b.rest) > 64 {
		b.rest = b.rest[:64] // data: who knows that it is no event needs no more of it
	}
	b.line.mu.Lock()
	defer b.line.mu.Unlock()
	for _, text := range lines[:len(lines)-1] {
		if event, ok := bytes.CutPrefix(text, []byte("event: ")); ok {
			b.line.heard[string(event)]++
		}
	}
}

// flood makes the log longer by n records at least, and returns when it grows no more.
func (v *viz) flood(t *testing.T, n uint64) {
	t.Helper()
	begin := v.seq(t)
	traffic := func(rate int) {
		post(t, v.URL+"/viz/knobs", map[string]any{"name": "traffic.rate", "value": fmt.Sprint(rate)})
	}
	traffic(150) // so little that the feed carries every record, as long as anybody reads
	program.Eventually(t, 3*patience, func() (bool, string) {
		now := v.seq(t)
		return now >= begin+n, fmt.Sprintf("%d records of %d", now-begin, n)
	})
	traffic(0)
	last := uint64(0)
	program.Eventually(t, patience, func() (bool, string) {
		before := last
		last = v.seq(t)
		return last == before, "records still come"
	})
}

// TestAPageWhoseNetworkStandsStillLosesNothing stops the network of a page twice. The first time the log still holds
// what the page has missed, and it is sent the newest state in one message. The second time the log has run over it:
// the page is told `gone`, lists again by itself, and ends equal.
func TestAPageWhoseNetworkStandsStillLosesNothing(t *testing.T) {
	t.Parallel()
	const logSize = 24 << 10
	v := startViz(t, "-demo=false", "-controllers=false", "-flight=off", fmt.Sprintf("-log-size=%d", logSize))
	network := newLine(t, v)
	p := openPage(t, network.URL)
	p.sameAsServer(t, v)
	counted := func() (commits float64) {
		return evaluate[float64](t, p, `window.listwatch.state.resources.pods.points.TxnCommitted ?? 0`)
	}

	before := counted()
	network.carry(false)
	v.flood(t, 15_000) // more than sockets swallow and a page may be behind, less than the log holds
	network.carry(true)
	p.sameAsServer(t, v)
	// A line that stands for ten seconds is given up; who comes back is sent every record.
	if network.said("coalesced") == 0 && network.opened() == 1 || network.said("gone") > 0 {
		t.Errorf("a page that fell behind was sent %d coalesced messages and %d gone, want the former only",
			network.said("coalesced"), network.said("gone"))
	}
	if counted() < before+100 {
		t.Errorf("%v commits counted before, %v after", before, counted())
	}

	network.carry(false)
	behind := p.moment(t).Seq
	v.flood(t, 35_000)
	if oldest := v.oldest(t); oldest <= behind+1 {
		t.Fatalf("the log still holds %d, and begins with %d: it has not run over the page", behind+1, oldest)
	}
	network.carry(true)
	p.sameAsServer(t, v)
	if network.said("gone") == 0 {
		t.Error("the page was not told that what it asks for is gone")
	}
	// The picture is the server's before the new stream has said its first word.
	p.until(t,
		`document.body.dataset.mode === "live" && document.querySelector("#mode").dataset.state === "live" && document.querySelector("#banner").hidden`)
	if lost := evaluate[float64](t, p, "window.listwatch.state.lost"); lost != 0 {
		t.Errorf("%v records lost", lost)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.complaints = slices.DeleteFunc(p.complaints, func(said string) bool {
		return strings.Contains(said,
			"/viz/events")
	})
}

// TestALeafThatComesSlowlyIsShown looks at a leaf that takes longer to come than the page waits before it asks for a
// newer one.
func TestALeafThatComesSlowlyIsShown(t *testing.T) {
	t.Parallel()
	v := startViz(t)
	network := newLine(t, v)
	network.leaf = 2 * time.Second
	p := openPage(t, network.URL)
	p.live(t, v)
	post(t, v.URL+"/viz/knobs", map[string]any{"name": "traffic.rate", "value": "6"})
	p.do(t, chromedp.Click(chromedp.CSS("[data-station=wire] .title")), chromedp.Click(chromedp.CSS("#tab-bytes")))
	p.until(t, `document.querySelector("#leaf details.stream") !== null`)
}

// oldest returns the number of the oldest record that the log holds.
func (v *viz) oldest(t *testing.T) uint64 {
	t.Helper()
	var answer struct{ Oldest uint64 }
	v.Get(t, "/viz/records?limit=1", &answer)
	return answer.Oldest
}
