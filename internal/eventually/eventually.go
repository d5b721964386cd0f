// Package eventually lets a test wait for what no channel tells it: another process, a socket, etcd.
package eventually

import (
	"testing"
	"time"
)

// patience is far longer than anything takes, on a machine with much else to do.
const patience = 30 * time.Second

// Holds returns when fact does, and ends the test if that takes too long. The failure shows what: a text, or where fact puts what it
// has seen.
func Holds(tb testing.TB, what any, fact func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(patience); !fact(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatalf("not within %v: %+v", patience, what)
		}
	}
}
