package rules

import (
	"fmt"

	"listwatch/internal/observe/probe"
)

// Rule is one promise.
type Rule struct {
	Number int    `json:"number"`
	Text   string `json:"text"` // the promise, in one sentence
	// Loud: it follows only watchers all of whose moments are in the log: none that was ever quiet.
	Loud bool `json:"loud,omitempty"`
	// new returns the rule's state before the first record. fromStart says that there were none before it.
	new func(fromStart bool) checking
}

// checking is the state of one rule for one resource.
type checking interface {
	// check takes the next record, and returns what is wrong with it, "" if nothing is.
	check(r *probe.Record) string
}

// All are the rules, in order. The checks of 1, 2 and 4 are in dispatch.go, of 3, 5, 6 and 9 in watcher.go, of 7, 8 and
// 10 in client.go.
var All = []Rule{
	{1, "One writer: the ring and the store change together, and the dispatcher hears of it afterwards.", false,
		func(bool) checking { return &oneWriter{} }},
	{2, "Choosing a watcher's starting point and registering it are atomic: no event falls in between.", true,
		func(bool) checking { return &noGap{watchers: map[string]*recipient{}} }},
	{3, "A bookmark carries only a version whose events the watcher has been handed.", false,
		func(bool) checking { return &honestBookmarks{} }},
	{4, "An input is closed only when no dispatch can be sending.", false,
		func(bool) checking { return &closedInputs{gone: map[string]uint64{}} }},
	{5, "The type of an event follows from whether the object matched before and matches now.", true,
		func(bool) checking { return &eventTypes{each[map[string]bool]{loud: true}} }},
	{6, "A deleted object carries the version of its deletion.", true,
		func(bool) checking { return &deletedVersions{each[wire]{loud: true}} }},
	{7, "Versions are opaque to clients: they ask only for versions that they were given.", false,
		func(bool) checking { return opaqueVersions{} }},
	{8, "The store first, the handler second; and the order of each key is kept.", false,
		func(fromStart bool) checking {
			return &storeFirst{fromStart, map[string]*localStore{}, map[string]map[string]uint64{}, map[string]string{}}
		}},
	{9, "What a watcher is sent is in order, and nothing comes twice.", false,
		func(bool) checking { return &inOrder{} }},
	{10, "Every channel makes its sender wait when it is full: none holds more than its capacity.", false,
		func(bool) checking { return backpressure{} }},
}

// Breach is a rule that was broken.
type Breach struct {
	Rule         int    `json:"-"`
	probe.Record        // at which it was noticed
	Text         string `json:"text"` // hostile input: escape before showing
}

// String returns the breach in one line.
func (b Breach) String() string {
	return fmt.Sprintf("rule %d broken at record %d (%s, %s): %s", b.Rule, b.Record.Seq, b.Record.Point,
		b.Record.Subject, b.Text)
}

// Checker applies every rule to every resource.
type Checker struct {
	seq       uint64 // of the newest record
	gap       bool   // records are missing before it
	resources map[string][]checking
}

// New returns a checker that has seen nothing.
func New() *Checker { return &Checker{resources: map[string][]checking{}} }

// Apply takes records, which must follow each other in the order of the log, and returns the breaches found in them.
// Records that were applied before are passed over, so batches may overlap.
func (c *Checker) Apply(records []probe.Record) []Breach {
	var breaches []Breach
	for i := range records {
		breaches = append(breaches, c.apply(&records[i])...)
	}
	return breaches
}

func (c *Checker) apply(r *probe.Record) (breaches []Breach) {
	if r.Seq <= c.seq {
		return nil
	}
	if r.Seq != c.seq+1 {
		c.gap = true
		clear(c.resources) // whatever was missed may explain everything
	}
	c.seq = r.Seq
	for n, rule := range c.of(r.Resource) {
		if text := rule.check(r); text != "" {
			breaches = append(breaches, Breach{Rule: All[n].Number, Record: *r, Text: text})
		}
	}
	return breaches
}

// of returns the state of every rule for a resource, in the order of [All].
func (c *Checker) of(resource string) []checking {
	rules, ok := c.resources[resource]
	if !ok {
		for _, rule := range All {
			rules = append(rules, rule.new(!c.gap))
		}
		c.resources[resource] = rules
	}
	return rules
}

const (
	deleted  = "DELETED"
	bookmark = "BOOKMARK"

	// maxRemembered is how many objects, or versions, a rule remembers of one watcher, store or client. With more it
	// forgets them all, and says nothing of what it has forgotten.
	maxRemembered = 1 << 15
)

// object says what a record is about, for a sentence.
func object(r *probe.Record) string {
	return fmt.Sprintf("%s %s at %d", r.Type, probe.ObjectKey(r.Key), r.RV)
}
