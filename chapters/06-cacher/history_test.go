package cacher

import (
	"fmt"
	"maps"
	"slices"
)

// history has all writes to a storage, in the order of their versions. From the writes it computes the events that a
// watch has to deliver: a log cannot show whether a watcher has seen everything, because it does not record what a
// selector would have matched. An event's type depends only on whether the object matched before and whether it matches
// now. A history decides what the model test expects, so it stays simpler than what it judges.
type history []version

// version is one write of an object.
type version struct {
	RV       uint64
	Key      string
	Old, New string // the object's state; "" means no object
}

// view is the part of a history that one watcher or list asks for.
type view struct {
	From  uint64                       // only versions newer than this one
	Wants func(key, state string) bool // selects objects
}

// delivered is a watcher's event of one version. The State of a deletion is the object's last state that matched.
type delivered struct {
	Type, Key string
	RV        uint64
	State     string
}

// write notes that the object at key has become state at rv, or is gone if state is "".
func (h *history) write(rv uint64, key, state string) {
	*h = append(*h, version{rv, key, h.newest(key), state})
}

// newest returns the state of the object at key, or "" if there is none.
func (h history) newest(key string) string {
	for _, v := range slices.Backward(h) {
		if v.Key == key {
			return v.New
		}
	}
	return ""
}

// events returns the events for a watcher that lives to the end.
func (h history) events(v view) (events []delivered) {
	for _, each := range h {
		before, now := v.matches(each.Key, each.Old), v.matches(each.Key, each.New)
		switch {
		case each.RV <= v.From || !before && !now:
		case !before:
			events = append(events, delivered{"ADDED", each.Key, each.RV, each.New})
		case now:
			events = append(events, delivered{"MODIFIED", each.Key, each.RV, each.New})
		default:
			events = append(events, delivered{"DELETED", each.Key, each.RV, each.Old})
		}
	}
	return events
}

func (v view) matches(key, state string) bool { return state != "" && v.Wants(key, state) }

// state returns the objects of a list at rv, which are also the initial events of a watch that begins at rv: the
// objects that match, ordered by key, each with the version of its last write. It ignores the view's From.
func (h history) state(v view, rv uint64) (state []delivered) {
	newest := map[string]version{}
	for _, each := range h {
		if each.RV <= rv {
			newest[each.Key] = each
		}
	}
	for _, key := range slices.Sorted(maps.Keys(newest)) {
		if each := newest[key]; v.matches(key, each.New) {
			state = append(state, delivered{"ADDED", key, each.RV, each.New})
		}
	}
	return state
}

// check returns a sentence about the first fault of a watcher's events, or "". A watcher that has ended may have seen
// only the first of the events.
func (h history) check(v view, seen []delivered, ended bool) string {
	want := h.events(v)
	if len(seen) > len(want) || !slices.Equal(seen, want[:len(seen)]) || !ended && len(seen) < len(want) {
		return fmt.Sprintf("from %d, ended %v: saw\n %v\nwant, or a prefix if ended,\n %v", v.From, ended, seen, want)
	}
	return ""
}
