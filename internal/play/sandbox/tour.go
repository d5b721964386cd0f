package sandbox

import (
	"context"
	"strconv"
)

// Tour notes that a page gives its tour, until the page calls end. Pages are counted: while there is one, the demo
// begins nothing new, and the pods' ring keeps its size. With the last one go the watchers that were opened for a tour.
func (s *Sandbox) Tour(ctx context.Context) (end func()) {
	ctx = context.WithoutCancel(ctx) // a page that has gone still has to be counted out
	if _, err := s.do(ctx, &order{command: touring{s, 1}, name: "a tour"}); err != nil {
		return func() {} // both halves end, and the demo with them
	}
	return func() { _, _ = s.do(ctx, &order{command: touring{s, -1}, name: "the end of a tour", undo: true}) }
}

// touring is the command that counts a tour in or out.
type touring struct {
	*Sandbox
	n int
}

// Do implements command.
func (t touring) Do(context.Context, func()) error {
	before := t.tours > 0
	t.tours += t.n
	open := t.tours > 0
	if open == before {
		return nil
	}
	if t.demo != nil {
		t.demo.rests.Store(open)
		t.turned(Knob{Name: "demo.rest", Value: strconv.FormatBool(open)}.String())
	}
	if ring := t.ring(""); ring != nil && open && t.fixedRing(ring.Resource()) == 0 {
		t.fixRing(ring, ring.RingCapacity())
		t.ringKept = true
	} else if ring != nil && !open && t.ringKept {
		t.fixRing(ring, 0)
		t.ringKept = false
	}
	for _, each := range t.watchers.info() {
		if each.Options.Tour && !open {
			_ = t.watchers.remove(each.ID) // it may be gone by itself
		}
	}
	return nil
}
