package rules

import (
	"fmt"

	"listwatch/internal/probe"
)

// opaqueVersions is rule 7. Who asks only for what it was given does not reckon with versions. The cacher's own reflector
// stands in the server, and keeps the rule as well.
type opaqueVersions struct {
	given map[string]map[uint64]bool // by reflector: what it asked for last, and what it was given since
}

func (o *opaqueVersions) check(r *probe.Record) string {
	switch r.Point {
	case probe.ReflectorListed, probe.ReflectorSynced, probe.ReflectorReceived:
		if given := o.given[r.Subject]; given != nil {
			given[r.RV] = true
		}
	case probe.ReflectorWatching:
		return o.asks(r)
	}
	return ""
}

func (o *opaqueVersions) asks(r *probe.Record) string {
	if o.given == nil {
		o.given = map[string]map[uint64]bool{}
	}
	given := o.given[r.Subject]
	o.given[r.Subject] = map[uint64]bool{r.RV: true}
	if r.RV == 0 || given == nil || given[r.RV] { // given nil: nothing is known of it yet
		return ""
	}
	return fmt.Sprintf("%s asks for %d, which nobody gave it", r.Subject, r.RV)
}

// storeFirst is rule 8. What a handler is told stands in the local store, or stood there; and of one object a handler
// is told in the order of its versions. A deletion that was only inferred has no version, and nothing is said of it.
type storeFirst struct {
	fromStart bool // what was not seen to be stored was not stored

	stored   map[string]uint64            // by key: the newest version that the store has had
	replaced bool                         // the store was replaced as a whole: what came with that is not known
	told     map[string]map[string]uint64 // by listener and key: the newest version its handler was called with
}

func (s *storeFirst) check(r *probe.Record) string {
	switch r.Point {
	case probe.IndexerUpdated:
		if s.stored == nil {
			s.stored = map[string]uint64{}
		}
		if r.Key == "" {
			s.replaced = s.replaced || r.Type != bookmark
			return ""
		}
		s.stored[r.Key] = max(s.stored[r.Key], r.RV)
	case probe.ListenerAdded, probe.ListenerRemoved:
		delete(s.told, r.Subject)
	case probe.HandlerCalled:
		if r.RV > 0 && r.Key != "" {
			return s.call(r)
		}
	}
	return ""
}

func (s *storeFirst) call(r *probe.Record) string {
	if s.told == nil {
		s.told = map[string]map[string]uint64{}
	}
	if s.told[r.Subject] == nil {
		s.told[r.Subject] = map[string]uint64{}
	}
	before := s.told[r.Subject][r.Key]
	s.told[r.Subject][r.Key] = r.RV
	stored, known := s.stored[r.Key]
	switch {
	case r.RV < before:
		return fmt.Sprintf("the handler of %s is told %s after %d", r.Subject, object(r), before)
	case r.RV > stored && !s.replaced && (known || s.fromStart):
		return fmt.Sprintf("the handler of %s is told %s, and the store has had %d", r.Subject, object(r), stored)
	}
	return ""
}

// unbounded are the queues that may hold whatever comes: a FIFO takes one entry for each change, a workqueue one for each
// key, and the pending ring is where a slow handler is paid for.
var unbounded = map[string]bool{"fifo": true, "workqueue": true, "pending": true}

// backpressure is rule 10.
type backpressure struct {
	capacities map[channel]int
}

type channel struct {
	subject, queue string
}

func (b *backpressure) check(r *probe.Record) string {
	info := r.Point.Info()
	if info.Op == probe.Open || info.Op == probe.Close {
		for each := range b.capacities {
			if each.subject == r.Subject {
				delete(b.capacities, each)
			}
		}
	}
	if info.Queue == "" || unbounded[info.Queue] {
		return ""
	}
	if b.capacities == nil {
		b.capacities = map[channel]int{}
	}
	length, capacity := argOf(r, "len"), argOf(r, "cap")
	which := channel{r.Subject, info.Queue}
	before, known := b.capacities[which]
	b.capacities[which] = capacity
	switch {
	case length > capacity:
		return fmt.Sprintf("%s of %q holds %d of %d", info.Queue, r.Subject, length, capacity)
	case known && before != capacity:
		return fmt.Sprintf("%s of %q had room for %d, and has for %d", info.Queue, r.Subject, before, capacity)
	}
	return ""
}
