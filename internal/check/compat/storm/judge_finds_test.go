package storm

import "testing"

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
			v := newView("view", test.selects)
			started(v)
			test.told(v)
			if got := v.faults.n > 0; got != test.wrong {
				t.Errorf("got faults %q, want some: %v", v.faults.told, test.wrong)
			}
		})
	}
}

// TestAHandlerFindsWhatIsWrong does the same for the handlers of informers, which may miss what a list has jumped over.
func TestAHandlerFindsWhatIsWrong(t *testing.T) {
	for name, test := range map[string]struct {
		wrong bool
		told  func(i *informer)
	}{
		"the next version":      {false, func(i *informer) { i.note(object{"a", 3, 12}, here) }},
		"a jump":                {false, func(i *informer) { i.note(object{"a", 5, 14}, here) }},
		"as it was":             {false, func(i *informer) { i.note(object{"a", 2, 11}, here) }},
		"another version of it": {true, func(i *informer) { i.note(object{"a", 2, 12}, here) }},
		"back in time":          {true, func(i *informer) { i.note(object{"a", 1, 5}, here) }},
		"an older deletion":     {true, func(i *informer) { i.note(object{"a", 1, 12}, left) }},
		"a deletion unseen":     {false, func(i *informer) { i.note(object{"a", 2, 11}, lost) }},
		"a tombstone of other":  {true, func(i *informer) { i.note(object{"a", 1, 5}, lost) }},
		"gone twice":            {true, func(i *informer) { i.note(object{"a", 2, 12}, left); i.note(object{"a", 2, 12}, lost) }},
		"back after its end":    {true, func(i *informer) { i.note(object{"a", 2, 12}, left); i.note(object{"a", 3, 13}, here) }},
	} {
		t.Run(name, func(t *testing.T) {
			i := &informer{who: "handler", known: map[string]told{"a": {2, 11, here}}}
			test.told(i)
			if got := i.faults.n > 0; got != test.wrong {
				t.Errorf("got faults %q, want some: %v", i.faults.told, test.wrong)
			}
		})
	}
}

// TestAMissedWriteIsFound leaves out what no counter betrays: the whole life of an object, and the newest write to one.
func TestAMissedWriteIsFound(t *testing.T) {
	written := []object{{"a", 1, 5}, {"b", 1, 11}, {"a", 2, 12}, {"c", 1, 40}}
	v := newView("view", nil)
	v.reset(10, []object{{"a", 1, 5}})
	v.event("ADDED", object{"b", 1, 11})
	v.bookmark(12)
	v.reset(30, []object{{"a", 2, 12}, {"b", 1, 11}})
	if checked := v.missed(written); checked != 2 || v.faults.n != 1 {
		t.Errorf("got %d writes looked for and faults %q, want 2 and that of a at 12", checked, v.faults.told)
	}
	if why := v.differs(map[string]int{"a": 2, "b": 2, "c": 1}); why != `view holds 2 objects, the list 3: [b: got 1, want 2 c: missing, want 1]` {
		t.Errorf("got %q", why)
	}
}

// TestWhatLeaksIsFound lets etcd open another segment of its log and a snapshot, and nothing else.
func TestWhatLeaksIsFound(t *testing.T) {
	start := resources{goroutines: 200, fds: 25, memory: 100 << 20}
	for name, test := range map[string]struct {
		now  resources
		most bool
	}{
		"as at the start":                     {start, true},
		"a segment of etcd's log, a snapshot": {resources{205, 27, 300 << 20}, true},
		"connections":                         {resources{200, 60, 100 << 20}, false},
		"goroutines":                          {resources{260, 25, 100 << 20}, false},
		"memory":                              {resources{200, 25, 900 << 20}, false},
	} {
		if got := test.now.within(start); got != test.most {
			t.Errorf("%s: got %v, want %v", name, got, test.most)
		}
	}
}

func TestACounterFindsWhatIsWrong(t *testing.T) {
	for name, test := range map[string]struct {
		wrong bool
		told  func(c *counter)
	}{
		"a rise":                {false, func(c *counter) { c.read(c.now(), object{"", 5, 20}); c.wrote(object{"", 5, 20}, object{"", 6, 22}) }},
		"an unsure one is seen": {false, func(c *counter) { c.read(c.now(), object{"", 6, 21}) }},
		"a stale read":          {true, func(c *counter) { c.read(c.now(), object{"", 4, 15}) }},
		"gone":                  {true, func(c *counter) { c.read(c.now(), object{}) }},
		"a read that was late":  {false, func(c *counter) { c.read(object{"", 4, 15}, object{"", 4, 15}) }},
		"another version":       {true, func(c *counter) { c.read(c.now(), object{"", 5, 21}) }},
		"a lost update":         {true, func(c *counter) { c.wrote(object{"", 4, 15}, object{"", 5, 23}) }},
		"a version that falls":  {true, func(c *counter) { c.wrote(object{"", 5, 20}, object{"", 6, 19}) }},
	} {
		t.Run(name, func(t *testing.T) {
			c := &counter{newest: object{"", 5, 20}, raised: map[int]bool{5: true}}
			test.told(c)
			if got := c.faults.n > 0; got != test.wrong {
				t.Errorf("got faults %q, want some: %v", c.faults.told, test.wrong)
			}
		})
	}
}
