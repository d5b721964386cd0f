package tabhttp

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/server/pipenet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// page plays the web page, which exchanges messages with a Proxy. It saves those that it receives.
type page struct {
	proxy *Proxy
	ctx   context.Context

	mu  sync.Mutex // guards got
	got []Message
}

// open serves a handler in the test's bubble, and returns a page connected to it. Both end with the test.
func open(t *testing.T, handler http.Handler) *page {
	t.Helper()
	var network pipenet.Network
	client := network.Client()
	p := &page{}
	p.proxy = New(client, func(m Message) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.got = append(p.got, m)
	})
	bubble.Go(t, "test.serve", func(ctx context.Context) {
		p.ctx = ctx
		network.Serve(ctx, handler, func(err error) { t.Error(err) })
	})
	synctest.Wait() // waits until the server listens
	t.Cleanup(func() { p.proxy.Wait(); client.CloseIdleConnections() })
	return p
}

func (p *page) say(m Message) { p.proxy.Receive(p.ctx, m) }

// told waits until every goroutine is blocked, and returns the messages of exchange 1: their kinds, all their bytes,
// and the last message.
func (p *page) told() (kinds []string, body string, last Message) {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.got {
		if m.ID == 1 {
			kinds, body, last = append(kinds, m.Kind), body+string(m.Body), m
		}
	}
	return kinds, body, last
}

func TestAnAnswerComesAsFarAsThereIsRoom(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := open(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			w.Header().Set("X-Agent", r.UserAgent())
			w.WriteHeader(http.StatusAccepted)
			fmt.Fprintf(w, "%s %s %s", r.Method, r.URL.Path, body)
		}))
		p.say(Message{ID: 1, Kind: Request, Method: "POST", URL: "http://localhost/a", Body: []byte("hello"),
			Header: http.Header{"User-Agent": {"page"}}})
		if kinds, _, head := p.told(); len(kinds) != 1 || head.Status != 202 || head.Header.Get("X-Agent") != "page" {
			t.Errorf("before there is room: got %v, %+v", kinds, head)
		}
		p.say(Message{ID: 1, Kind: Room, Room: 4})
		kinds, body, _ := p.told()
		assert.True(t, body == "POST", "with room for 4: got %v, %q", kinds, body)
		p.say(Message{ID: 1, Kind: Room, Room: 100})
		_, body, last := p.told()
		assert.True(t, body == "POST /a hello" && last.Kind == End, "in the end: got %q, %+v", body, last)
		p.say(Message{ID: 1, Kind: Room, Room: 1}) // no effect: the exchange has ended
	})
}

func TestAnAbortedRequestEndsItsHandler(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		p := open(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			close(ended)
		}))
		p.say(Message{ID: 1, Kind: Request, Method: "GET", URL: "http://localhost/"})
		synctest.Wait()
		p.say(Message{ID: 1, Kind: Abort})
		<-ended
		kinds, _, last := p.told()
		assert.True(t, last.Kind == Abort && last.Reason != "", "got %v, %+v", kinds, last)
	})
}
