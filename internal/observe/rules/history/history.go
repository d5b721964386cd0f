// Package history says what a watch has to deliver. It is for tests that write: no program imports it. A log cannot
// show whether a watcher has seen everything, because it does not say what a selector would have matched; a test that
// wrote the objects knows.
//
// One pure function is at the heart: a history, a predicate and a start give the events ([History.Events]). That an
// event's type follows from whether the object matched before and matches now, and from nothing else, is its one line
// of logic.
package history

import (
	"fmt"
	"maps"
	"slices"
)

// History is what a storage has gone through, in the order of its versions. The zero value is empty.
type History []Version

// Version is one write of an object.
type Version struct {
	RV       uint64
	Key      string
	Old, New string // the object's state; "": there is no such object
}

// View is what one watcher or list asked for.
type View struct {
	From  uint64                       // only what is newer
	Wants func(key, state string) bool // nil: everything
}

// Event is what a watcher sees of one version. State is that of the object in it: of a deletion, the last that matched.
type Event struct {
	Type, Key string
	RV        uint64
	State     string
}

// Write notes that the object at key has become state at rv, or is gone if state is "".
func (h *History) Write(rv uint64, key, state string) {
	*h = append(*h, Version{rv, key, h.Newest(key), state})
}

// Newest returns the state of the object at key, "" if there is none.
func (h History) Newest(key string) string {
	for _, v := range slices.Backward(h) {
		if v.Key == key {
			return v.New
		}
	}
	return ""
}

// Events returns what a watcher sees that lives to the end.
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

// State returns what a list at rv holds, and what the initial events are of a watch that begins at rv: the objects that
// match, ordered by key, each with the version of its last write. The view's From is not looked at.
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

// Check returns what is wrong with what a watcher saw, "" if nothing is. A watcher that has ended may have seen less
// than everything, but nothing else, in no other order, and without gaps.
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
