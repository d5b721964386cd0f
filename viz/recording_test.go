package viz

import (
	"context"
	"errors"
	"testing"

	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
)

// TestAPictureAheadOfItsLogIsShown: the fold waits for nothing that will never come.
func TestAPictureAheadOfItsLogIsShown(t *testing.T) {
	log, p := newLog()
	p.At(probe.RingAppend, "default/a", 1)
	ui := New(Config{Log: log, Replay: true, Keyframe: &fold.State{Seq: 1_000_000,
		Resources: map[string]*fold.Resource{}}})
	seq, _ := snapshotOf(t, ui)
	assert.Equal(t, seq, 1_000_000, "the picture stands at")
}

// TestOneStateIsWrittenForAllPages: pages that are sent sums share them.
func TestOneStateIsWrittenForAllPages(t *testing.T) {
	log, p := newLog()
	f := newFolder(log, nil)
	p.At(probe.RingAppend, "default/a", 1)
	_, first, _ := f.shared(t.Context(), 0)
	p.At(probe.RingAppend, "default/b", 2)
	_, second, _ := f.shared(t.Context(), 0)
	assert.Equal(t, &first[0], &second[0], "a second page had the state written again")
	seq, _, _ := f.shared(t.Context(), 1)
	assert.Equal(t, seq, 2, "a page that knows record 1 was sent")
}

// TestFoldingALongLogEndsWithItsCaller folds one batch for a caller who has gone, and releases the lock; the rest is
// folded for the next one.
func TestFoldingALongLogEndsWithItsCaller(t *testing.T) {
	log := probe.NewLog(clock.RealClock{}, 10*foldBatch)
	for range 10 * foldBatch {
		probe.New(log).Resource("pods").At(probe.TxnCommitted, "default/a", 1)
	}
	f := newFolder(log, nil)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.now(gone); !errors.Is(err, context.Canceled) || f.state.Seq != foldBatch {
		t.Errorf("folded up to %d: %v; want %d and that the caller has gone", f.state.Seq, err, foldBatch)
	}
	if state, err := f.now(t.Context()); err != nil || state.Seq != 10*foldBatch {
		t.Errorf("then up to %d: %v", state.Seq, err)
	}
}
