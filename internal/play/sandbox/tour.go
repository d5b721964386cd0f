package sandbox

import (
	"context"
	"strconv"
)

// Tour notes that a page gives its tour, until the page calls end. Pages are counted: while there is one, the demo
// begins nothing new, and the pods' ring keeps its size. With the last one go the watchers that were opened for a tour.
func (s *Sandbox) Tour(ctx context.Context) (end func()) {
	ctx = context.WithoutCancel(ctx) // a page that has gone still has to be counted out
	if _, err := s.do(ctx, &order{do: s.count(1), name: "a tour"}); err != nil {
		return func() {} // both halves end, and the demo with them
	}
	return func() { _, _ = s.do(ctx, &order{do: s.count(-1), name: "the end of a tour", undo: true}) }
}

// count returns the command that counts pages in or out.
func (s *Sandbox) count(n int) command {
	return func(context.Context, func()) error { s.countTours(n); return nil }
}

func (s *Sandbox) countTours(n int) {
	before := s.tours > 0
	s.tours += n
	open := s.tours > 0
	if open == before {
		return
	}
	if s.demo != nil {
		s.demo.rests.Store(open)
		s.turned(Knob{Name: "demo.rest", Value: strconv.FormatBool(open)}.String())
	}
	if ring := s.ring(""); ring != nil && open && s.fixedRing(ring.Resource()) == 0 {
		s.fixRing(ring, ring.RingCapacity())
		s.ringKept = true
	} else if ring != nil && !open && s.ringKept {
		s.fixRing(ring, 0)
		s.ringKept = false
	}
	for _, each := range s.watchers.info() {
		if each.Options.Tour && !open {
			_ = s.watchers.remove(each.ID) // it may be gone by itself
		}
	}
}
