// Package expectedevents computes the events that a watch has to deliver. It is for tests that write objects, such as
// the model test of chapters/06-cacher. A log cannot show whether a watcher has received every event, because it does
// not record whether a selector would have matched; a test that wrote the objects can.
//
// [History.Events] is a pure function from a history, a predicate and a start to the events. Its logic is one line: an
// event's type depends only on whether the object matched before and whether it matches now.
//
// Change: it decides what the model test of chapters/06-cacher expects, so it stays simpler than what it judges.
package expectedevents

import (
	"fmt"
	"maps"
	"slices"
)

// History is the list of all writes to a storage, in the order of their versions. The zero value is empty.
type History []Version

// Version is one write of an object.
type Version struct {
	RV       uint64
	Key      string
	Old, New string // the object's state; "" means no object
}

// View is the part of a history that one watcher or list requests.
type View struct {
	From  uint64                       // only versions newer than this one
	Wants func(key, state string) bool // selects objects; nil: all of them
}

// Event is a watcher's event for one version. State is the state of its object: for a deletion, the last one that
// matched.
type Event struct {
	Type, Key string
	RV        uint64
	State     string
}

// Write notes that the object at key has the state at rv, or is deleted if state is "".
func (h *History) Write(rv uint64, key, state string) {
	*h = append(*h, Version{rv, key, h.Newest(key), state})
}

// Newest returns the state of the object at key, or "" if there is none.
func (h History) Newest(key string) string {
	for _, v := range slices.Backward(h) {
		if v.Key == key {
			return v.New
		}
	}
	return ""
}

// Events returns the events for a watcher that never ends.
func (h History) Events(v View) (events []Event) {
	for _, each := range h {
		before, now := v.matches(each.Key, each.Old), v.matches(each.Key, each.New)
		switch {
		case each.RV <= v.From || !before && !now:
		case !before:
			events = append(events, Event{"ADDED", each.Key, each.RV, each.New})
		case now:
			events = append(events, Event{"MODIFIED", each.Key, each.RV, each.New})
		default:
			events = append(events, Event{"DELETED", each.Key, each.RV, each.Old})
		}
	}
	return events
}

func (v View) matches(key, state string) bool {
	return state != "" && (v.Wants == nil || v.Wants(key, state))
}

// State returns the objects of a list at rv, which are also the initial events of a watch that begins at rv: the
// objects that match, ordered by key, each with the version of its last write. It ignores the view's From.
func (h History) State(v View, rv uint64) (state []Event) {
	newest := map[string]Version{}
	for _, each := range h {
		if each.RV <= rv {
			newest[each.Key] = each
		}
	}
	for _, key := range slices.Sorted(maps.Keys(newest)) {
		if each := newest[key]; v.matches(key, each.New) {
			state = append(state, Event{"ADDED", key, each.RV, each.New})
		}
	}
	return state
}

// Check returns a sentence about the first fault in a watcher's events, or "". A watcher that has ended may have
// received only the first of the events.
func (h History) Check(v View, saw []Event, ended bool) string {
	want := h.Events(v)
	if len(saw) > len(want) || !slices.Equal(saw, want[:len(saw)]) {
		return fmt.Sprintf("from %d: saw\n %v\nwant a prefix of\n %v", v.From, saw, want)
	}
	if !ended && len(saw) < len(want) {
		return fmt.Sprintf("from %d: still open, and saw %d of %d events; the next is %v", v.From, len(saw), len(want),
			want[len(saw)])
	}
	return ""
}
