package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// History is what a storage has gone through, kept by the test that writes to it. It knows what each watcher has to
// see: the one thing that all of the machinery is for.
//
// S is what selectors look at, such as an object's labels.
type History[S any] struct {
	// Text says what a state is, so that it can be compared with what a watcher is sent; nil: that is not compared.
	Text func(state S) string

	changes []change[S]
	now     map[string]*S
}

type change[S any] struct {
	rv       uint64
	key      string
	old, new *S // nil: there is no such object
}

// Write notes that the object at key has become state at rv, or is gone if state is nil.
func (h *History[S]) Write(rv uint64, key string, state *S) {
	if h.now == nil {
		h.now = map[string]*S{}
	}
	h.changes = append(h.changes, change[S]{rv, key, h.now[key], state})
	h.now[key] = state
	if state == nil {
		delete(h.now, key)
	}
}

// At returns the state of the object at key, nil if there is none.
func (h *History[S]) At(key string) *S { return h.now[key] }

// Versions returns the version of every change, in order.
func (h *History[S]) Versions() []uint64 {
	versions := make([]uint64, 0, len(h.changes))
	for _, c := range h.changes {
		versions = append(versions, c.rv)
	}
	return versions
}

// View is what one watcher asked for.
type View[S any] struct {
	From    uint64                         // what is newer
	Matches func(key string, state S) bool // nil: everything
}

func (v View[S]) matches(key string, state *S) bool {
	return state != nil && (v.Matches == nil || v.Matches(key, *state))
}

// Seen is an event as a watcher sees it.
type Seen struct {
	Type, Key string
	RV        uint64
	State     string // the object's, if the history has [History.Text]
}

// String returns "ADDED default/a 7", and the state if it is known.
func (s Seen) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %d %s", s.Type, s.Key, s.RV, s.State))
}

// Expected returns what a watcher sees that lives to the end: an event's type follows from whether the object matched
// before and matches now, and from nothing else.
func (h *History[S]) Expected(v View[S]) []Seen {
	var events []Seen
	for _, c := range h.changes {
		if c.rv <= v.From {
			continue
		}
		before, now := v.matches(c.key, c.old), v.matches(c.key, c.new)
		switch {
		case before && now:
			events = append(events, Seen{"MODIFIED", c.key, c.rv, h.text(c.new)})
		case now:
			events = append(events, Seen{"ADDED", c.key, c.rv, h.text(c.new)})
		case before:
			events = append(events, Seen{deleted, c.key, c.rv, h.text(c.old)})
		}
	}
	return events
}

func (h *History[S]) text(state *S) string {
	if h.Text == nil {
		return ""
	}
	return h.Text(*state)
}

// StateAt returns what a list at rv holds, and what the initial events of a watch are that stands at rv: the objects
// that match, ordered by key, each with the version of its last change.
func (h *History[S]) StateAt(v View[S], rv uint64) []Seen {
	newest := map[string]change[S]{}
	for _, c := range h.changes {
		if c.rv <= rv {
			newest[c.key] = c
		}
	}
	var state []Seen
	for _, key := range slices.Sorted(maps.Keys(newest)) {
		if c := newest[key]; v.matches(key, c.new) {
			state = append(state, Seen{"ADDED", key, c.rv, h.text(c.new)})
		}
	}
	return state
}

// Check returns what is wrong with what a watcher saw, "" if nothing is. A watcher that has ended may have seen less
// than everything, but nothing else, in no other order, and without gaps.
func (h *History[S]) Check(v View[S], seen []Seen, ended bool) string {
	want := h.Expected(v)
	if len(seen) > len(want) || !slices.Equal(seen, want[:len(seen)]) {
		return fmt.Sprintf("from %d: saw\n %s\nwant a prefix of\n %s", v.From, lines(seen), lines(want))
	}
	if !ended && len(seen) < len(want) {
		return fmt.Sprintf("from %d: still open, and saw %d of %d events; the next is %s", v.From, len(seen),
			len(want), want[len(seen)])
	}
	return ""
}

func lines(events []Seen) string {
	var all []string
	for _, each := range events {
		all = append(all, each.String())
	}
	return strings.Join(all, ", ")
}
