package etcd3

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"listwatch/internal/check/require"
)

// overdue is a context whose deadline has passed by the wall clock although, on the injected one, there is time left.
type overdue struct{ context.Context }

func (overdue) Deadline() (time.Time, bool) { return time.Unix(1, 0), true }

func TestADeadlineOfAnotherClockDoesNotFailAWatch(t *testing.T) {
	s := newStore(t, newEtcd(t), nil)
	create(t, s, pod("a", "web"))
	ctx := overdue{t.Context()}
	if _, err := s.GetCurrentResourceVersion(ctx); err != nil {
		t.Errorf("current version: %v", err)
	}
	w, err := s.Watch(ctx, prefix, everything())
	require.NoError(t, err)
	if event := <-w.ResultChan(); event.Type != watch.Added {
		t.Errorf("got %s, want ADDED", line(event))
	}
	w.Stop()
	for range w.ResultChan() { // until everything of it has ended
	}
}
