package sandbox

import (
	"context"
	"strconv"
)

// Tour notes that a page gives its tour, until the page calls end. Pages are counted: while there is one, the demo begins
// nothing new; with the last one go the watchers that were opened for a tour.
func (s *Sandbox) Tour(ctx context.Context) (end func()) {
	ctx = context.WithoutCancel(ctx) // a page that has gone still has to be counted out
	if s.do(ctx, &command{what: "a tour", begin: s.counting(1)}) != nil {
		return func() {} // both halves end, and the demo with them
	}
	return func() { _ = s.do(ctx, &command{what: "the end of a tour", undo: true, begin: s.counting(-1)}) }
}

func (s *Sandbox) counting(n int) func(context.Context) (func(context.Context) error, error) {
	return func(context.Context) (func(context.Context) error, error) {
		before := s.tours > 0
		s.tours += n
		if open := s.tours > 0; open != before {
			s.rest(open)
		}
		return nil, nil
	}
}

// rest lets the demo rest, or go on.
func (s *Sandbox) rest(on bool) {
	if s.demo != nil {
		s.demo.rests.Store(on)
		s.turned(Knob{Name: "demo.rest", Value: strconv.FormatBool(on)}.String())
	}
	for _, each := range s.watchers.List() {
		if each.Options.Tour && !on {
			_ = s.watchers.remove(each.ID) // it may be gone by itself
		}
	}
}
