package cacher

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// history is what the storage has gone through, kept by the test that writes to it. It knows what each watcher has to
// see.
type history []version

// version is one write of an object.
type version struct {
	rv       uint64
	key      string
	old, now attributes // nil: there is no such object
}

// attributes are the state of an object, and what selectors look at: "app=1", "node=n2".
type attributes []string

// write notes that the object at key has become state at rv, or is gone if state is nil.
func (h *history) write(rv uint64, key string, state attributes) {
	*h = append(*h, version{rv, key, h.at(key), state})
}

// at returns the newest state of the object at key, nil if there is none.
func (h *history) at(key string) attributes {
	for _, v := range slices.Backward(*h) {
		if v.key == key {
			return v.now
		}
	}
	return nil
}

// recent returns the n-th last version, counted round among the last six; 0 if there are none.
func (h *history) recent(n int) uint64 {
	if len(*h) == 0 {
		return 0
	}
	return (*h)[len(*h)-1-n%min(len(*h), 6)].rv
}

// view is what one watcher asked for.
type view struct {
	from  uint64                                  // what is newer
	wants func(key string, state attributes) bool // nil: everything
}

func (v view) matches(key string, state attributes) bool {
	return state != nil && (v.wants == nil || v.wants(key, state))
}

// sight is an event as a watcher sees it.
type sight struct {
	typ, key string
	rv       uint64
	state    string // of the object
}

// expected returns what a watcher sees that lives to the end: an event's type follows from whether the object matched
// before and matches now, and from nothing else.
func (h *history) expected(v view) (events []sight) {
	for _, each := range *h {
		if each.rv <= v.from {
			continue
		}
		typ, state := "", each.now
		switch before, now := v.matches(each.key, each.old), v.matches(each.key, each.now); {
		case before && now:
			typ = "MODIFIED"
		case now:
			typ = "ADDED"
		case before:
			typ, state = "DELETED", each.old
		default:
			continue
		}
		events = append(events, sight{typ, each.key, each.rv, strings.Join(state, " ")})
	}
	return events
}

// stateAt returns what a list at rv holds, and what the initial events of a watch are that stands at rv: the objects
// that match, ordered by key, each with the version of its last write.
func (h *history) stateAt(v view, rv uint64) (state []sight) {
	newest := map[string]version{}
	for _, each := range *h {
		if each.rv <= rv {
			newest[each.key] = each
		}
	}
	for _, key := range slices.Sorted(maps.Keys(newest)) {
		if each := newest[key]; v.matches(key, each.now) {
			state = append(state, sight{"ADDED", key, each.rv, strings.Join(each.now, " ")})
		}
	}
	return state
}

// check returns what is wrong with what a watcher saw, "" if nothing is. A watcher that has ended may have seen less
// than everything, but nothing else, in no other order, and without gaps.
func (h *history) check(v view, saw []sight, ended bool) string {
	want := h.expected(v)
	if len(saw) > len(want) || !slices.Equal(saw, want[:len(saw)]) {
		return fmt.Sprintf("from %d: saw\n %v\nwant a prefix of\n %v", v.from, saw, want)
	}
	if !ended && len(saw) < len(want) {
		return fmt.Sprintf("from %d: still open, and saw %d of %d events; the next is %v", v.from, len(saw), len(want),
			want[len(saw)])
	}
	return ""
}
