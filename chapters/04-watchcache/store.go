package watchcache

import (
	"maps"
	"slices"
	"strings"

	storage "listwatch/chapters/01-storage"
)

// store holds the current elements, ordered by key, and the trigger's index over them.
//
// The order makes a list of one namespace a walk over neighbours, and paging a walk that begins
// in the middle. An event changes the tree in place, and then clones it. Readers and snapshots
// have the clones only, which never change.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/store/store_btree.go: threadedStoreIndexer
// Differs: no lock of its own, but WatchCache.mu. At most one index, which files an element
// under one value.
type store struct {
	trigger *storage.Trigger // set by newStore, never changed; nil: no index

	elements btreeStore // owned by the cache's one writer

	// Guarded by WatchCache.mu.
	state btreeStore                     // the newest clone of elements
	index map[string]map[string]*Element // value, key
}

func newStore(trigger *storage.Trigger) *store {
	s := &store{trigger: trigger}
	s.replaceLocked(nil)
	return s
}

// replaceLocked forgets everything and holds elements instead. Snapshots keep the old nodes.
func (s *store) replaceLocked(elements []*Element) {
	s.elements = newBtreeStore(elements...)
	s.state = s.elements.clone()
	s.index = map[string]map[string]*Element{}
	for e := range s.state.orderedListPrefix("", "") {
		s.indexLocked(nil, e)
	}
}

// setLocked adds e, or puts it in the place of the element with the same key.
func (s *store) setLocked(e *Element) {
	old, _ := s.elements.tree.ReplaceOrInsert(e)
	s.state = s.elements.clone()
	s.indexLocked(old, e)
}

// deleteLocked removes the element at key, if there is one.
func (s *store) deleteLocked(key string) {
	old, _ := s.elements.tree.Delete(&Element{Key: key})
	s.state = s.elements.clone()
	s.indexLocked(old, nil)
}

// indexLocked files e, and takes out old, whose place it takes. Either may be nil.
func (s *store) indexLocked(old, e *Element) {
	if s.trigger == nil {
		return
	}
	var value string
	if e != nil {
		value = s.trigger.ValueOf(e.Object)
		if s.index[value] == nil {
			s.index[value] = map[string]*Element{}
		}
		s.index[value][e.Key] = e // most updates leave the value alone: then e replaces old
	}
	if old == nil {
		return
	}
	if before := s.trigger.ValueOf(old.Object); e == nil || before != value {
		delete(s.index[before], old.Key)
		if len(s.index[before]) == 0 {
			delete(s.index, before) // or values that never come back would pile up
		}
	}
}

// byTriggerLocked returns the elements filed under value, in no order.
func (s *store) byTriggerLocked(value string) []*Element {
	set := s.index[value]
	return slices.AppendSeq(make([]*Element, 0, len(set)), maps.Values(set))
}

// sortedBelow returns those of elements whose keys begin with prefix, ordered by key. It writes into elements.
func sortedBelow(elements []*Element, prefix string) []*Element {
	kept := slices.DeleteFunc(elements, func(e *Element) bool { return !strings.HasPrefix(e.Key, prefix) })
	slices.SortFunc(kept, func(a, b *Element) int { return strings.Compare(a.Key, b.Key) })
	return kept
}
