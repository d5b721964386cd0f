package sandbox

import "strconv"

// Tour notes that a page gives its tour, until the page calls end. Pages are counted: while there is one, the demo
// begins nothing new, and the pods' ring keeps its size. With the last one go the watchers that were opened for a tour.
// It may be called from any goroutine, and waits for nothing.
func (s *Sandbox) Tour() (end func()) {
	s.count(1)
	return func() { s.count(-1) }
}

// Touring reports whether a page gives its tour. It may be called from any goroutine.
func (s *Sandbox) Touring() bool {
	s.toursMu.Lock()
	defer s.toursMu.Unlock()
	return s.tours > 0
}

// count counts pages in or out.
func (s *Sandbox) count(n int) {
	s.toursMu.Lock()
	defer s.toursMu.Unlock()
	before := s.tours > 0
	s.tours += n
	open := s.tours > 0
	if s.demo != nil {
		s.demo.rests.Add(int32(n))
	}
	if open == before {
		return
	}
	if s.demo != nil {
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
