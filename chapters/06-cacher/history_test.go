package cacher

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
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

func TestAViewIsAPrefixOfItsHistory(t *testing.T) {
	web, db := attributes{"web"}, attributes{"db"}
	var h history
	h.write(2, "default/a", web)
	h.write(3, "default/a", db)
	h.write(4, "kube-system/b", web)
	h.write(5, "default/a", nil)
	all := view{from: 1}
	onlyWeb := view{from: 1, wants: func(_ string, state attributes) bool { return state[0] == "web" }}
	a2, a3 := sight{"ADDED", "default/a", 2, "web"}, sight{"MODIFIED", "default/a", 3, "db"}
	b4, a5 := sight{"ADDED", "kube-system/b", 4, "web"}, sight{"DELETED", "default/a", 5, "db"}
	gone3, wrong4 := sight{"DELETED", "default/a", 3, "web"}, sight{"ADDED", "kube-system/b", 4, "db"}
	for name, c := range map[string]struct {
		view  view
		saw   []sight
		ended bool
		right bool
	}{
		"complete":        {all, []sight{a2, a3, b4, a5}, false, true},
		"ended early":     {all, []sight{a2, a3}, true, true},
		"open, and short": {all, []sight{a2, a3}, false, false},
		"a gap":           {all, []sight{a2, b4, a5}, true, false},
		"twice":           {all, []sight{a2, a2, a3}, true, false},
		"another order":   {all, []sight{a3, a2}, true, false},
		"too much":        {view{from: 4}, []sight{b4, a5}, true, false},
		"selected":        {onlyWeb, []sight{a2, gone3, b4}, false, true},
		"wrong object":    {all, []sight{a2, a3, wrong4}, true, false},
		"new, not old":    {onlyWeb, []sight{a2, {"DELETED", "default/a", 3, "db"}}, true, false},
		"wrong type":      {onlyWeb, []sight{a2, a3, b4}, true, false},
		"of the storage":  {onlyWeb, []sight{a2, gone3, b4, a5}, false, false},
	} {
		fault := h.check(c.view, c.saw, c.ended)
		assert.Equal(t, fault == "", c.right, "%s: got %q", name, fault)
	}
	a3.typ = "ADDED"
	for rv, want := range [][]sight{1: nil, 2: {a2}, 3: {a3}, 4: {a3, b4}, 5: {b4}} {
		assert.EqualSlices(t, h.stateAt(all, uint64(rv)), want, "everything at %d", rv)
	}
	assert.EqualSlices(t, h.stateAt(onlyWeb, 4), []sight{b4}, "selected")
}
