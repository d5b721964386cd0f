package etcd3

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
)

// trace collects what a watch delivers.
type trace struct {
	watch.Interface
}

// start begins a watch that ends with the test.
func start(t *testing.T, s *Store, opts storage.ListOptions) trace {
	t.Helper()
	w := require.Value(s.Watch(t.Context(), prefix, opts))(t)
	return trace{w}
}

// next returns the events so far once nothing moves in the bubble; "closed" at the end of the channel.
func (w trace) next() []string { return bubble.Drain(w.ResultChan(), line) }

func (w trace) want(t *testing.T, want ...string) {
	t.Helper()
	assert.EqualSlices(t, want, w.next())
}

// A state of more than one page is still one state: without a hole where one page ends, and without what was written
// while the reader was slow. The two objects on either side of the end are neighbours in the order of keys.
func TestAStateOfManyPagesIsThatOfOneRevision(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, client := newMVCC(t)
		const n = maxLimit + 10
		want := make([]string, 0, n)
		for i := range n {
			p := pod(fmt.Sprintf("p%05d", i), "")
			if i == maxLimit {
				p.Name = fmt.Sprintf("p%05d-1", i-1)
			}
			data := require.Value(runtime.Encode(s.codec, p))(t)
			want = append(want, fmt.Sprintf("ADDED %s %d", p.Name, client.Put(key(p.Name), data)))
		}
		at := client.Revision()
		last := fmt.Sprintf("p%05d", n-1)
		w := start(t, s, initial())
		synctest.Wait() // the channels are full, and the first page is being read
		relabel(t, s, last, "web")
		want = append(want, fmt.Sprintf("BOOKMARK %d end", at), fmt.Sprintf("MODIFIED %s %d web", last, at+1))
		got := w.next()
		assert.True(t, slices.Equal(got, want), "got %d events, want %d; the last are %q, want %q", len(got),
			len(want), got[max(0, len(got)-3):], want[n-1:])
	})
}

func TestWhoeverCancelledIsNotToldOfIt(t *testing.T) {
	s, _ := newMVCC(t)
	for name, err := range map[string]error{"ours": context.Canceled, "etcd's": status.Error(codes.Canceled,
		"the client is closing")} {
		ended := false
		w := s.newStream(prefix, 0, storage.ListOptions{}, func() { ended = true })
		w.sendError(t.Context(), err)
		assert.True(t, len(w.resultChan) == 0 && ended, "%s: %d events, ended: %t", name, len(w.resultChan), ended)
	}
}
