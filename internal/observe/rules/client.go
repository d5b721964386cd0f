package rules

import (
	"fmt"

	"listwatch/internal/observe/probe"
)

// opaqueVersions is rule 7. A client that requests only versions that it was given does no arithmetic with them. The
// cacher's own reflector runs in the server, and the rule applies to it, too.
type opaqueVersions map[string]*asker // by reflector

// asker is one reflector: the version that it requested last, and the versions that it has received since.
type asker struct {
	given map[uint64]bool
	floor uint64 // versions up to this one have been forgotten
}

func (o opaqueVersions) check(r *probe.Record) string {
	switch r.Point {
	case probe.ReflectorListed, probe.ReflectorSynced, probe.ReflectorReceived:
		if asker := o[r.Subject]; asker != nil {
			asker.give(r.RV)
		}
	case probe.ReflectorWatching:
		return o.asks(r)
	}
	return ""
}

func (a *asker) give(rv uint64) {
	if len(a.given) == maxRemembered {
		for forgotten := range a.given {
			a.floor = max(a.floor, forgotten)
		}
		clear(a.given)
	}
	a.given[rv] = true
}

func (o opaqueVersions) asks(r *probe.Record) string {
	asks := o[r.Subject]
	o[r.Subject] = &asker{given: map[uint64]bool{r.RV: true}}
	// asks is nil at a reflector's first watch in the log.
	if r.RV == 0 || asks == nil || r.RV <= asks.floor || asks.given[r.RV] {
		return ""
	}
	return fmt.Sprintf("%s asks for %d, which no server gave it", r.Subject, r.RV)
}

// storeFirst is rule 8. A handler is called only with an object that the local store holds or has held, and with the
// versions of each object in order. An inferred deletion has no version, and is not checked. If the log lacks a
// listener's opening, its store is unknown, and only the order is checked.
type storeFirst struct {
	fromStart bool // whether the rule has checked, and not forgotten, every record of storing an object

	stores     map[string]*localStore       // by informer
	told       map[string]map[string]uint64 // by listener and key: the version with which the handler was called last
	informerOf map[string]string            // by listener, if known
}

// localStore is the part of one informer's store that the log shows.
type localStore struct {
	versions map[string]uint64 // by key: the newest version that the store has had
	replaced bool              // whether the store was replaced as a whole, by objects that the log does not name
}

func (s *storeFirst) check(r *probe.Record) string {
	switch r.Point {
	case probe.IndexerUpdated:
		s.store(r)
	case probe.ListenerAdded:
		delete(s.told, r.Subject)
		s.informerOf[r.Subject] = r.Texts.Get(probe.FieldInformer)
	case probe.ListenerRemoved:
		delete(s.told, r.Subject)
		delete(s.informerOf, r.Subject)
	case probe.HandlerCalled:
		if r.RV > 0 && r.Key != "" {
			return s.call(r)
		}
	}
	return ""
}

// of returns the state of an informer's store, or a new one if there is none.
func (s *storeFirst) of(informer string) *localStore {
	store := s.stores[informer]
	if store == nil {
		store = &localStore{versions: map[string]uint64{}}
		s.stores[informer] = store
	}
	return store
}

func (s *storeFirst) store(r *probe.Record) {
	store := s.of(r.Subject)
	if r.Key == "" {
		store.replaced = store.replaced || r.Type != bookmark
		return
	}
	if len(store.versions) == maxRemembered {
		clear(store.versions)
		s.fromStart = false
	}
	store.versions[r.Key] = max(store.versions[r.Key], r.RV)
}

func (s *storeFirst) call(r *probe.Record) string {
	if told := s.told[r.Subject]; told == nil || len(told) == maxRemembered {
		s.told[r.Subject] = map[string]uint64{}
	}
	before := s.told[r.Subject][r.Key]
	s.told[r.Subject][r.Key] = r.RV
	informer, hangs := s.informerOf[r.Subject]
	store := s.of(informer)
	stored, known := store.versions[r.Key]
	switch {
	case r.RV < before:
		return fmt.Sprintf("the handler of %s is told %s after %d", r.Subject, object(r), before)
	case hangs && r.RV > stored && !store.replaced && (known || s.fromStart):
		return fmt.Sprintf("the handler of %s is told %s, and the store has had %d", r.Subject, object(r), stored)
	}
	return ""
}

// unbounded lists the queues without a capacity: a FIFO takes one entry for each change, a workqueue one for each key,
// and the pending ring grows while its handler is slow.
var unbounded = map[string]bool{"fifo": true, "workqueue": true, "pending": true}

// backpressure is rule 10. It remembers each channel's capacity, which must not change, and which no length may exceed.
type backpressure map[channel]int

type channel struct {
	subject, queue string
}

func (b backpressure) check(r *probe.Record) string {
	info := r.Point.Info()
	if info.Op == probe.Open || info.Op == probe.Close {
		for each := range b {
			if each.subject == r.Subject {
				delete(b, each)
			}
		}
	}
	if info.Queue == "" || unbounded[info.Queue] {
		return ""
	}
	length, capacity := r.Args[0], r.Args[1] // every point of a queue declares its args as "len cap"
	which := channel{r.Subject, info.Queue}
	before, known := b[which]
	b[which] = capacity
	switch {
	case length > capacity:
		return fmt.Sprintf("%s of %q holds %d of %d", info.Queue, r.Subject, length, capacity)
	case known && before != capacity:
		return fmt.Sprintf("%s of %q had room for %d, and has for %d", info.Queue, r.Subject, before, capacity)
	}
	return ""
}
