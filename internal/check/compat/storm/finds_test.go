package storm

import (
	"fmt"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
)

// in parses a word such as "a3@12", which is object a at counter 3 and version 12.
func in(word string) (o object) {
	_, _ = fmt.Sscanf(word, "%1s%d@%d", &o.name, &o.n, &o.rv) // a malformed word leaves later fields zero
	return o
}

// tell feeds a view a script: "+a3@12" is ADDED, "~" MODIFIED, "-" DELETED and "!" another event; mark@15 is a
// bookmark, list@14:a3@13,b1@2 a list.
func (v *view) tell(script string) {
	for word := range strings.FieldsSeq(script) {
		if rv, ok := strings.CutPrefix(word, "mark@"); ok {
			v.bookmark(parse(rv))
		} else if list, ok := strings.CutPrefix(word, "list@"); ok {
			rv, words, _ := strings.Cut(list, ":")
			var items []object
			for each := range strings.FieldsFuncSeq(words, func(r rune) bool { return r == ',' }) {
				items = append(items, in(each))
			}
			v.reset(parse(rv), items)
		} else {
			v.event(map[byte]string{'+': "ADDED", '~': "MODIFIED", '-': "DELETED", '!': "ERROR"}[word[0]], in(word[1:]))
		}
	}
}

// TestAViewFindsWhatIsWrong feeds views right and wrong events, and counts the reported faults, because a check that
// cannot fail proves nothing. Object a starts at its second version.
func TestAViewFindsWhatIsWrong(t *testing.T) {
	for name, test := range map[string]struct {
		faults int
		told   string
	}{
		"the next version":                            {0, "~a3@12"},
		"a gap":                                       {1, "~a4@12"},
		"the same version twice":                      {1, "~a2@11"},
		"the same counter under two versions":         {1, "~a2@12"},
		"two objects in the wrong order":              {1, "+c1@13 ~a3@12"},
		"added, but already there":                    {1, "+a3@12"},
		"added later than at its first version":       {1, "+c2@12"},
		"modified before it was added":                {1, "~c1@12"},
		"deleted":                                     {0, "-a2@12"},
		"deleted at a version that was never told":    {1, "-a3@12"},
		"deleted with the version of its last change": {1, "-a2@11"},
		"back after its deletion":                     {1, "-a2@12 ~a3@13"},
		"listed after its deletion":                   {1, "-a2@12 list@14:a3@13"},
		"a list jumps forward":                        {0, "list@20:a7@19 ~a8@21"},
		"a list goes back":                            {2, "list@10:a1@5"}, // one for the list, one for a
		"a list that holds an older version":          {1, "list@12:a1@5"},
		"a list that holds what came after it":        {1, "list@12:a3@13"},
		"back after a list without it":                {1, "list@12: ~a3@13"},
		"a bookmark":                                  {0, "mark@15"},
		"a bookmark before what was told":             {1, "mark@10"},
		"an event that a bookmark had passed":         {1, "mark@15 ~a3@14"},
		"an unknown kind":                             {1, "!a3@12"},
	} {
		t.Run(name, func(t *testing.T) {
			v := newView("view", &faults{})
			v.tell("list@10:a1@5 ~a2@11 " + test.told)
			assert.Equal(t, test.faults, v.faults.n, "%q", v.faults.told)
		})
	}
}

// TestAMissedWriteIsFound withholds one write's event. missed must report it, although the next list hides the gap.
func TestAMissedWriteIsFound(t *testing.T) {
	written := []object{{"a", 1, 5}, {"b", 1, 11}, {"a", 2, 12}, {"c", 1, 40}}
	v := newView("view", &faults{})
	v.tell("list@10:a1@5 +b1@11 mark@12 list@30:a2@12,b1@11")
	assert.Equal(t, 2, v.missed(written), "writes that were looked for")
	assert.EqualSlices(t, []string{"view: was never told of {name:a n:2 rv:12}"}, v.faults.told)
	assert.NoDiff(t, map[string]int{"a": 2, "b": 1}, v.holds())
}

// TestTheLedgerFindsWhatIsWrong gives a ledger right and wrong reads and writes, and counts the reported faults. The
// object starts at its fifth version.
func TestTheLedgerFindsWhatIsWrong(t *testing.T) {
	fifth := object{"a", 5, 20}
	for name, test := range map[string]struct {
		faults int
		told   func(l *ledger, a *account)
	}{
		"a rise":                {0, func(l *ledger, a *account) { l.wrote(a, fifth, object{"a", 6, 22}) }},
		"an unsure one is seen": {0, func(l *ledger, a *account) { l.read(a, fifth, object{"a", 6, 21}) }},
		"a stale read":          {1, func(l *ledger, a *account) { l.read(a, fifth, object{"a", 4, 15}) }},
		"gone":                  {1, func(l *ledger, a *account) { l.read(a, fifth, object{}) }},
		"deleted":               {0, func(l *ledger, a *account) { l.doom(a); l.read(a, fifth, object{}) }},
		"another version":       {1, func(l *ledger, a *account) { l.read(a, fifth, object{"a", 5, 21}) }},
		"a lost update": {1, func(l *ledger, a *account) {
			l.wrote(a, object{"a", 4, 15}, object{"a", 5, 23})
		}},
		"a version that falls": {1, func(l *ledger, a *account) { l.wrote(a, fifth, object{"a", 6, 19}) }},
	} {
		l, a := &ledger{faults: &faults{}}, &account{newest: fifth, raised: map[int]bool{5: true}}
		test.told(l, a)
		assert.Equal(t, test.faults, l.faults.n, "%s: %q", name, l.faults.told)
	}
}
