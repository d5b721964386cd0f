package messages

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"k8s.io/utils/clock"

	pipeline "listwatch/chapters/15-pipeline"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
	"listwatch/internal/server/apiserver"
	"listwatch/internal/server/mvcc"
	"listwatch/internal/server/pipenet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// page is the other end of the messages: it keeps what it is sent.
type page struct {
	proxy *Proxy
	ctx   context.Context

	mu  sync.Mutex // guards got
	got []Message
}

// open returns a page before a handler, in a bubble. Everything has ended when the bubble does.
func open(t *testing.T, handler http.Handler) *page {
	t.Helper()
	var network pipenet.Network
	client := network.Client()
	ctx, cancel := context.WithCancel(t.Context())
	p := &page{ctx: ctx}
	p.proxy = New(client, func(m Message) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.got = append(p.got, m)
	})
	var serving sync.WaitGroup
	serving.Go(func() { network.Serve(ctx, handler, func(err error) { t.Error(err) }) })
	synctest.Wait() // it listens
	t.Cleanup(func() {
		cancel()
		p.proxy.Wait()
		client.CloseIdleConnections()
		serving.Wait()
	})
	return p
}

func (p *page) say(m Message) { p.proxy.Receive(p.ctx, m) }

// told waits until nothing moves, and returns what the page was sent in one exchange: kinds, and the bytes in all.
func (p *page) told(id int) (kinds []string, body string, last Message) {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.got {
		if m.ID == id {
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
		if kinds, _, head := p.told(1); len(kinds) != 1 || head.Status != 202 || head.Header.Get("X-Agent") != "page" {
			t.Errorf("before there is room: got %v, %+v", kinds, head)
		}
		p.say(Message{ID: 1, Kind: Room, Room: 4})
		kinds, body, _ := p.told(1)
		assert.True(t, body == "POST", "with room for 4: got %v, %q", kinds, body)
		p.say(Message{ID: 1, Kind: Room, Room: 3})
		synctest.Wait()
		p.say(Message{ID: 1, Kind: Room, Room: 5})
		p.say(Message{ID: 1, Kind: Room, Room: -5}) // what the page takes back, as when it is hidden
		_, body, _ = p.told(1)
		assert.True(t, body == "POST /a", "with room taken back: got %q", body)
		p.say(Message{ID: 1, Kind: Room, Room: 100})
		_, body, last := p.told(1)
		assert.True(t, body == "POST /a hello" && last.Kind == End, "in the end: got %q, %+v", body, last)
		p.say(Message{ID: 1, Kind: Room, Room: 1}) // too late, and no matter
	})
}

// TestRoomThatIsTakenBackHoldsForWhatComesLater: the program waits for the next piece of an answer when the page takes
// back the room that it had granted.
func TestRoomThatIsTakenBackHoldsForWhatComesLater(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		next := make(chan string)
		p := open(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for text := range next {
				fmt.Fprint(w, text)
				_ = http.NewResponseController(w).Flush()
			}
		}))
		p.say(Message{ID: 1, Kind: Request, Method: "GET", URL: "http://localhost/"})
		p.say(Message{ID: 1, Kind: Room, Room: 10})
		next <- "abc"
		_, body, _ := p.told(1)
		assert.True(t, body == "abc", "at first: got %q", body)
		p.say(Message{ID: 1, Kind: Room, Room: -10}) // the page did not know of the three yet
		next <- "def"
		_, body, _ = p.told(1)
		assert.True(t, body == "abc", "without room: got %q", body)
		p.say(Message{ID: 1, Kind: Room, Room: 3})
		p.say(Message{ID: 1, Kind: Room, Room: 10})
		close(next)
		_, body, last := p.told(1)
		assert.True(t, body == "abcdef" && last.Kind == End, "in the end: got %q, %+v", body, last)
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
		kinds, _, last := p.told(1)
		assert.True(t, last.Kind == Abort && last.Reason != "", "got %v, %+v", kinds, last)
	})
}

// TestAPageThatDoesNotReadIsEvicted: what the page leaves unread fills the wire, then the watcher's channels, and then
// the dispatcher closes the watcher. The page holds no more than it has granted.
func TestAPageThatDoesNotReadIsEvicted(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		log := probe.NewLog(clock.RealClock{}, 1<<16)
		server, err := pipeline.NewServer(pipeline.ServerConfig{Handler: apiserver.Handler(nil),
			Client: mvcc.New(clock.RealClock{}), Clock: clock.RealClock{}, Probe: probe.New(log), UseWatchList: true,
		})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { server.Run(ctx) })
		defer running.Wait()
		defer cancel()
		require.NoError(t, server.WaitReady(ctx))
		p := open(t, server.Handler())
		const granted, pods = 16 << 10, "http://localhost/api/v1/namespaces/default/pods"
		p.say(Message{ID: 1, Kind: Request, Method: "GET", URL: pods + "?watch=true"})
		p.say(Message{ID: 1, Kind: Room, Room: granted})
		evicted := func() bool {
			for r := range log.Between(log.Oldest(), log.Last()+1) {
				if r.Point == probe.WatcherForced {
					return true
				}
			}
			return false
		}
		created := 0
		for ; created < 1000 && !evicted(); created++ {
			body := fmt.Sprintf(`{"metadata":{"name":"p%d"},"spec":{"containers":[{"name":"c","image":"i"}]}}`, created)
			p.say(Message{ID: 2 + created, Kind: Request, Method: "POST", URL: pods, Body: []byte(body),
				Header: http.Header{"Content-Type": {"application/json"}}})
			time.Sleep(time.Second) // the bubble's
			_, _, head := p.told(2 + created)
			require.True(t, head.Status == http.StatusCreated, "create: %+v", head)
			p.say(Message{ID: 2 + created, Kind: Abort})
		}
		if _, body, _ := p.told(1); !evicted() || len(body) != granted {
			t.Errorf("after %d pods: evicted %v, %d bytes with the page", created, evicted(), len(body))
		}
	})
}
