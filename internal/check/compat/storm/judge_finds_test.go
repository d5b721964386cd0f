package storm

import (
	"fmt"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
)

// in reads "a3@12": object a at counter 3 and version 12.
func in(word string) (o object) {
	fmt.Sscanf(word, "%1s%d@%d", &o.name, &o.n, &o.rv)
	return o
}

// tell tells a view a script: "+a3@12" is ADDED, "~" MODIFIED, "-" DELETED and "!" another event; mark@15 is a
// bookmark, list@14:a3@13,b1@2 a list.
func (v *view) tell(script string) {
	for word := range strings.FieldsSeq(script) {
		if rv, ok := strings.CutPrefix(word, "mark@"); ok {
			v.bookmark(parse(rv))
		} else if list, ok := strings.CutPrefix(word, "list@"); ok {
			rv, words, _ := strings.Cut(list, ":")
			var items []object
			for each := range strings.SplitSeq(words, ",") {
				if each != "" {
					items = append(items, in(each))
				}
			}
			v.reset(parse(rv), items)
		} else {
			v.event(map[byte]string{'+': "ADDED", '~': "MODIFIED", '-': "DELETED", '!': "ERROR"}[word[0]], in(word[1:]))
		}
	}
}

// TestAViewFindsWhatIsWrong tells views what no watcher may be told: a check that cannot fail proves nothing. Before, a
// is at its second version, and b was not selected.
func TestAViewFindsWhatIsWrong(t *testing.T) {
	for _, test := range []struct {
		name    string
		selects selection
		wrong   bool
		told    string
	}{
		{"the next version", nil, false, "~a3@12"},
		{"a gap", nil, true, "~a4@12"},
		{"the same version twice", nil, true, "~a2@11"},
		{"the same counter under two versions", nil, true, "~a2@12"},
		{"two objects in the wrong order", nil, true, "+c1@13 ~a3@12"},
		{"added, but already there", nil, true, "+a3@12"},
		{"added later than at its first version", nil, true, "+c2@12"},
		{"modified before it was added", nil, true, "~c1@12"},
		{"deleted", nil, false, "-a2@12"},
		{"deleted at a version that was never told", nil, true, "-a3@12"},
		{"deleted with the version of its last change", nil, true, "-a2@11"},
		{"back after its deletion", nil, true, "-a2@12 +a3@13"},
		{"listed after its deletion", nil, true, "-a2@12 list@14:a3@13"},
		{"a list jumps forward", nil, false, "list@20:a7@19 ~a8@21"},
		{"a list goes back", nil, true, "list@10:a1@5"},
		{"a list that holds an older version", nil, true, "list@12:a1@5"},
		{"a list that holds what came after it", nil, true, "list@12:a3@13"},
		{"back after a list without it", nil, true, "list@12: +a3@13"},
		{"a bookmark", nil, false, "mark@15"},
		{"a bookmark before what was told", nil, true, "mark@10"},
		{"an event that a bookmark had passed", nil, true, "mark@15 ~a3@14"},
		{"an unknown kind", nil, true, "!a3@12"},
		{"leaves the selection and comes again", inTurns, false, "-a2@12 +a6@16"},
		{"comes again too late", inTurns, true, "-a2@12 +a7@17"},
		{"comes again a turn too late", inTurns, true, "-a2@12 +a12@22"},
		{"comes without being selected", inTurns, true, "+b3@12"},
		{"changes without being selected", inTurns, true, "~a3@12"},
		{"was not selected in the list", inTurns, false, "+b12@12"},
		{"left, missing in a list, and comes again", inTurns, false, "-a2@12 list@30: +a18@31"},
		{"missing in a list, and comes again", inTurns, false, "list@30: +a18@31"},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := newView("view", test.selects)
			v.tell("list@10:a1@5 ~a2@11")
			v.tell(test.told)
			if got := v.faults.n > 0; got != test.wrong {
				t.Errorf("got faults %q, want some: %v", v.told, test.wrong)
			}
		})
	}
}

// TestAMissedWriteIsFound leaves out what no counter betrays: the whole life of an object, and the newest write to one.
func TestAMissedWriteIsFound(t *testing.T) {
	written := []object{{"a", 1, 5}, {"b", 1, 11}, {"a", 2, 12}, {"c", 1, 40}}
	v := newView("view", nil)
	v.tell("list@10:a1@5 +b1@11 mark@12 list@30:a2@12,b1@11")
	if checked := v.missed(written); checked != 2 || v.faults.n != 1 {
		t.Errorf("got %d writes looked for and faults %q, want 2 and that of a at 12", checked, v.faults.told)
	}
	if why := v.differs(map[string]int{"a": 2, "b": 2,
		"c": 1}); why != `view holds 2 objects, the list 3: [b: got 1, want 2 c: missing, want 1]` {
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
		assert.Equal(t, test.now.within(start), test.most, "%s", name)
	}
}

// TestTheLedgerFindsWhatIsWrong tells a ledger what no writer may be answered. Before, an object is at its fifth version.
func TestTheLedgerFindsWhatIsWrong(t *testing.T) {
	fifth := object{"a", 5, 20}
	for name, test := range map[string]struct {
		wrong bool
		told  func(l *ledger, a *account)
	}{
		"a rise":                {false, func(l *ledger, a *account) { l.wrote(a, fifth, object{"a", 6, 22}) }},
		"an unsure one is seen": {false, func(l *ledger, a *account) { l.read(a, fifth, object{"a", 6, 21}) }},
		"a stale read":          {true, func(l *ledger, a *account) { l.read(a, fifth, object{"a", 4, 15}) }},
		"gone":                  {true, func(l *ledger, a *account) { l.read(a, fifth, object{}) }},
		"deleted":               {false, func(l *ledger, a *account) { l.doom(a); l.read(a, fifth, object{}) }},
		"a read that was late":  {false, func(l *ledger, a *account) { l.read(a, object{"a", 4, 15}, object{"a", 4, 15}) }},
		"another version":       {true, func(l *ledger, a *account) { l.read(a, fifth, object{"a", 5, 21}) }},
		"a lost update":         {true, func(l *ledger, a *account) { l.wrote(a, object{"a", 4, 15}, object{"a", 5, 23}) }},
		"a version that falls":  {true, func(l *ledger, a *account) { l.wrote(a, fifth, object{"a", 6, 19}) }},
	} {
		t.Run(name, func(t *testing.T) {
			l, a := &ledger{}, &account{name: "a", newest: fifth, raised: map[int]bool{5: true}}
			test.told(l, a)
			if got := l.n > 0; got != test.wrong {
				t.Errorf("got faults %q, want some: %v", l.told, test.wrong)
			}
		})
	}
}
