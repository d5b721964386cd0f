// Package eventually lets a test wait for facts that no channel reports: about another process, a socket, or etcd.
package eventually

import (
	"net/http/httptest"
	"testing"
	"time"
)

// patience is far longer than any fact needs to become true.
const patience = 2 * time.Minute

// Holds waits until fact returns true, and ends the test if that takes longer than patience. The failure prints the
// value what: a text, or a pointer in which fact stores its findings.
func Holds(tb testing.TB, what any, fact func() bool) {
	tb.Helper()
	if !Did(patience, fact) {
		tb.Fatalf("not within %v of pauses: %+v", patience, what)
	}
}

// Did repeats fact until fact returns true. It returns false if that takes longer than within. Only the pauses between
// calls count, not the wall-clock time, because on a busy machine calls and pauses take long. A pause is an eighth of
// the time waited so far, from 5 to 100 ms, so that a long wait costs little CPU and ends without much delay.
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

// Closes closes a test server, and cuts connections until Server.Close returns. Close alone waits for every request,
// and a client whose watch was cut reconnects at once: a stream opened just before the listener closes would make Close
// wait forever.
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
