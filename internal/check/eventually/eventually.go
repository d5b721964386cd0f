// Package eventually lets a test wait for what no channel tells it: another process, a socket, etcd.
package eventually

import (
	"net/http/httptest"
	"testing"
	"time"
)

// patience is far longer than anything takes.
const patience = 2 * time.Minute

// Holds returns when fact does, and ends the test if that takes too long. The failure shows what: a text, or where fact
// puts what it has seen.
func Holds(tb testing.TB, what any, fact func() bool) {
	tb.Helper()
	if !Did(patience, fact) {
		tb.Fatalf("not within %v of pauses: %+v", patience, what)
	}
}

// Did asks for a fact again and again, and returns whether it has held within the given time. What counts is how long
// it pauses between two looks, and not the wall's clock: on a busy machine a look takes long, and a pause, too. The
// longer it has waited, the longer it pauses: an eighth of that time, so that a long wait costs little and ends hardly
// later.
func Did(within time.Duration, fact func() bool) bool {
	for waited := time.Duration(0); !fact(); {
		if waited > within {
			return false
		}
		pause := min(max(waited/8, 5*time.Millisecond), 100*time.Millisecond)
		time.Sleep(pause)
		waited += pause
	}
	return true
}

// Closes ends a server of a test. The server's own Close waits for every request, and a client whose watch was cut
// comes back at once: a stream that it opens just before the listener closes would keep Close waiting for ever. So what
// comes back is cut, too.
func Closes(server *httptest.Server) {
	closed := make(chan struct{}) // closed when Close has returned
	go func() { defer close(closed); server.Close() }()
	for {
		server.CloseClientConnections()
		select {
		case <-closed:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}
