package viz

import (
	"testing"

	"listwatch/internal/fold"
	"listwatch/internal/probe"
)

// TestAPictureAheadOfItsLogIsShown: the fold waits for nothing that will never come.
func TestAPictureAheadOfItsLogIsShown(t *testing.T) {
	log, p := newLog()
	p.At(probe.RingAppend, "default/a", 1)
	ui := New(Config{Log: log, Replay: true, Keyframe: &fold.State{Seq: 1_000_000, Resources: map[string]*fold.Resource{}}})
	if seq, _ := snapshotOf(t, ui); seq != 1_000_000 {
		t.Errorf("the picture stands at %d", seq)
	}
}

// TestOneStateIsWrittenForAllPages: pages that are sent sums share them.
func TestOneStateIsWrittenForAllPages(t *testing.T) {
	log, p := newLog()
	f := newFolder(log, nil)
	p.At(probe.RingAppend, "default/a", 1)
	_, first := f.shared(0)
	p.At(probe.RingAppend, "default/b", 2)
	if _, second := f.shared(0); &first[0] != &second[0] {
		t.Error("a second page had the state written again")
	}
	if seq, _ := f.shared(1); seq != 2 {
		t.Errorf("a page that knows record 1 was sent %d", seq)
	}
}
