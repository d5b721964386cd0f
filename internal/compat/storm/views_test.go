package storm

import (
	"testing"
)

// TestAViewFindsWhatIsWrong tells views what no watcher may be told: a check that cannot fail proves nothing.
func TestAViewFindsWhatIsWrong(t *testing.T) {
	started := func(v *view) { // a is at its second version, b was not selected
		v.reset(10, []object{{"a", 1, 5}})
		v.event("MODIFIED", object{"a", 2, 11})
	}
	tests := []struct {
		name    string
		selects selection
		wrong   bool
		told    func(v *view)
	}{
		{"the next version", nil, false, func(v *view) { v.event("MODIFIED", object{"a", 3, 12}) }},
		{"a gap", nil, true, func(v *view) { v.event("MODIFIED", object{"a", 4, 12}) }},
		{"the same version twice", nil, true, func(v *view) { v.event("MODIFIED", object{"a", 2, 11}) }},
		{"the same counter under two versions", nil, true, func(v *view) { v.event("MODIFIED", object{"a", 2, 12}) }},
		{"two objects in the wrong order", nil, true, func(v *view) {
			v.event("ADDED", object{"c", 1, 13})
			v.event("MODIFIED", object{"a", 3, 12})
		}},
		{"added, but already there", nil, true, func(v *view) { v.event("ADDED", object{"a", 3, 12}) }},
		{"added later than at its first version", nil, true, func(v *view) { v.event("ADDED", object{"c", 2, 12}) }},
		{"modified before it was added", nil, true, func(v *view) { v.event("MODIFIED", object{"c", 1, 12}) }},
		{"deleted", nil, false, func(v *view) { v.event("DELETED", object{"a", 2, 12}) }},
		{"deleted at a version that was never told", nil, true, func(v *view) { v.event("DELETED", object{"a", 3, 12}) }},
		{"deleted with the version of its last change", nil, true, func(v *view) { v.event("DELETED", object{"a", 2, 11}) }},
		{"back after its deletion", nil, true, func(v *view) {
			v.event("DELETED", object{"a", 2, 12})
			v.event("ADDED", object{"a", 3, 13})
		}},
		{"listed after its deletion", nil, true, func(v *view) {
			v.event("DELETED", object{"a", 2, 12})
			v.reset(14, []object{{"a", 3, 13}})
		}},
		{"a list jumps forward", nil, false, func(v *view) {
			v.reset(20, []object{{"a", 7, 19}})
			v.event("MODIFIED", object{"a", 8, 21})
		}},
		{"a list goes back", nil, true, func(v *view) { v.reset(10, []object{{"a", 1, 5}}) }},
		{"a list that holds an older version", nil, true, func(v *view) { v.reset(12, []object{{"a", 1, 5}}) }},
		{"a list that holds what came after it", nil, true, func(v *view) { v.reset(12, []object{{"a", 3, 13}}) }},
		{"back after a list without it", nil, true, func(v *view) {
			v.reset(12, nil)
			v.event("ADDED", object{"a", 3, 13})
		}},
		{"a bookmark", nil, false, func(v *view) { v.bookmark(15) }},
		{"a bookmark before what was told", nil, true, func(v *view) { v.bookmark(10) }},
		{"an event that a bookmark had passed", nil, true, func(v *view) {
			v.bookmark(15)
			v.event("MODIFIED", object{"a", 3, 14})
		}},
		{"an unknown kind", nil, true, func(v *view) { v.event("ERROR", object{"a", 3, 12}) }},
		{"leaves the selection and comes again", inTurns, false, func(v *view) {
			v.event("DELETED", object{"a", 2, 12})
			v.event("ADDED", object{"a", 6, 16})
		}},
		{"comes again too late", inTurns, true, func(v *view) {
			v.event("DELETED", object{"a", 2, 12})
			v.event("ADDED", object{"a", 7, 17})
		}},
		{"comes again a turn too late", inTurns, true, func(v *view) {
			v.event("DELETED", object{"a", 2, 12})
			v.event("ADDED", object{"a", 12, 22})
		}},
		{"comes without being selected", inTurns, true, func(v *view) { v.event("ADDED", object{"b", 3, 12}) }},
		{"changes without being selected", inTurns, true, func(v *view) { v.event("MODIFIED", object{"a", 3, 12}) }},
		{"was not selected in the list", inTurns, false, func(v *view) { v.event("ADDED", object{"b", 12, 12}) }},
		{"left, missing in a list, and comes again", inTurns, false, func(v *view) {
			v.event("DELETED", object{"a", 2, 12})
			v.reset(30, nil)
			v.event("ADDED", object{"a", 18, 31})
		}},
		{"missing in a list, and comes again", inTurns, false, func(v *view) {
			v.reset(30, nil)
			v.event("ADDED", object{"a", 18, 31})
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			v := newView("view", test.selects, true)
			started(v)
			test.told(v)
			if got := v.nFaults > 0; got != test.wrong {
				t.Errorf("got faults %q, want some: %v", v.faults, test.wrong)
			}
		})
	}
}

// TestTheViewOfAHandlerFindsWhatIsWrong does the same for informers, whose lists pass by on another way than their events.
func TestTheViewOfAHandlerFindsWhatIsWrong(t *testing.T) {
	tests := []struct {
		name  string
		wrong bool
		told  func(v *view)
	}{
		{"the next version", false, func(v *view) { v.event("MODIFIED", object{"a", 3, 12}) }},
		{"a gap without a list", true, func(v *view) { v.event("MODIFIED", object{"a", 5, 14}) }},
		{"a jump to what a list held", false, func(v *view) { v.listed(14); v.event("MODIFIED", object{"a", 5, 14}) }},
		{"a gap after a list", true, func(v *view) { v.listed(14); v.event("MODIFIED", object{"a", 6, 15}) }},
		{"the same twice", true, func(v *view) { v.event("MODIFIED", object{"a", 2, 11}) }},
		{"back in time through a list", true, func(v *view) { v.listed(14); v.event("MODIFIED", object{"a", 1, 5}) }},
		{"added late", true, func(v *view) { v.event("ADDED", object{"c", 2, 12}) }},
		{"added by a list", false, func(v *view) { v.listed(14); v.event("ADDED", object{"c", 2, 12}) }},
		{"gone without a list", true, func(v *view) { v.gone("a") }},
		{"gone through a list", false, func(v *view) { v.listed(14); v.gone("a") }},
		{"gone twice", true, func(v *view) { v.listed(14); v.gone("a"); v.gone("a") }},
		{"back after its deletion", true, func(v *view) {
			v.event("DELETED", object{"a", 2, 12})
			v.listed(14)
			v.event("ADDED", object{"a", 3, 13})
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			v := newView("handler", nil, false)
			v.listed(10)
			v.event("ADDED", object{"a", 1, 5})
			v.event("MODIFIED", object{"a", 2, 11})
			test.told(v)
			if got := v.nFaults > 0; got != test.wrong {
				t.Errorf("got faults %q, want some: %v", v.faults, test.wrong)
			}
		})
	}
}

// TestAMissedWriteIsFound leaves out what no counter betrays: the whole life of an object, and the newest write to one.
func TestAMissedWriteIsFound(t *testing.T) {
	written := []object{{"a", 1, 5}, {"b", 1, 11}, {"a", 2, 12}, {"c", 1, 40}}
	v := newView("view", nil, true)
	v.reset(10, []object{{"a", 1, 5}})
	v.event("ADDED", object{"b", 1, 11})
	v.bookmark(12)
	v.reset(30, []object{{"a", 2, 12}, {"b", 1, 11}})
	if checked := v.missed(written); checked != 2 || v.nFaults != 1 {
		t.Errorf("got %d writes looked for and faults %q, want 2 and that of a at 12", checked, v.faults)
	}
	if why := v.differs(map[string]int{"a": 2, "b": 2, "c": 1}); why != `view holds 2 objects, the list 3: [b: got 1, want 2 c: missing, want 1]` {
		t.Errorf("got %q", why)
	}
}
