package rules

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
)

// Rule is one of the ten promises, with the code that checks it.
type Rule struct {
	Number int    `json:"number"`
	Text   string `json:"text"` // the promise, in one sentence
	// Loud: the rule follows only watchers that were never quiet, because the log has all their moments.
	Loud bool `json:"loud,omitempty"`
	// new returns the rule's state before the first record. fromStart: the log has no earlier record.
	new func(fromStart bool) checking
}

// checking is the state of one rule for one resource.
type checking interface {
	// check takes the next record, and returns a sentence about its fault, or "" if it has none.
	check(r *probe.Record) string
}

// All lists the rules, in order. dispatch.go checks 1, 2 and 4, watcher.go 3, 5, 6 and 9, client.go 7, 8 and 10.
var All = []Rule{
	{1, "One writer: the ring and the store change together, and the dispatcher hears of it afterwards.", false,
		func(bool) checking { return &oneWriter{} }},
	{2, "Choosing a watcher's starting point and registering it are atomic: no event falls in between.", true,
		func(bool) checking { return &noGap{map[string]*recipient{}, nil, map[string]*probe.Record{}} }},
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
	{10, "No channel holds more than its capacity: at a full one, the sender waits or gives up.", false,
		func(bool) checking { return backpressure{} }},
}

// Breach is a record that breaks a rule.
type Breach struct {
	Rule         int    `json:"-"`
	probe.Record        // the record at which the checker noticed the breach
	Text         string `json:"text"` // hostile input: escape before showing
}

// String returns the breach in one line.
func (b Breach) String() string {
	return fmt.Sprintf("rule %d broken at record %d (%s, %s): %s", b.Rule, b.Seq, b.Point, b.Subject, b.Text)
}

// Checker applies every rule to every resource.
type Checker struct {
	seq       uint64 // the newest record
	gap       bool   // whether records before seq are missing
	resources map[string][]checking
}

// New returns a checker that has taken no record.
func New() *Checker { return &Checker{resources: map[string][]checking{}} }

// Apply takes records, which must follow each other in the order of the log, and returns the breaches found in them. It
// skips records that it has seen, so batches may overlap.
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
		clear(c.resources) // the missing records could explain any later one
	}
	c.seq = r.Seq
	for n, rule := range c.of(r.Resource) {
		if text := rule.check(r); text != "" {
			breaches = append(breaches, Breach{Rule: All[n].Number, Record: *r, Text: text})
		}
	}
	return breaches
}

// of returns the state of each rule for a resource, in the order of [All].
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

	// maxRemembered is the maximum number of objects, or versions, that a rule remembers of one watcher, store,
	// listener or reflector. At this number the rule forgets them all, and reports no breach that depends on them.
	maxRemembered = 1 << 15
)

// object returns a record's event type, object and version, for a sentence.
func object(r *probe.Record) string {
	return fmt.Sprintf("%s %s at %d", r.Type, probe.ObjectKey(r.Key), r.RV)
}

const (
	monitorPeriod = 100 * time.Millisecond // the period at which Run calls Look
	maxBreaches   = 100                    // maximum number of breaches that the monitor keeps, of all rules together
)

// Monitor checks the rules on a log while the log grows. Its memory is bounded: the checker forgets objects and
// versions if it has too many, and the monitor counts all breaches, but keeps only the newest.
//
// Its methods may be called from any goroutine.
type Monitor struct {
	log *probe.Log // set by NewMonitor, never changed

	mu       sync.Mutex // guards the fields below; taken before the log's own lock
	checker  *Checker
	checked  uint64 // number of checked records
	missed   uint64 // number of records that had left the log before their check
	counts   map[int]int
	breaches []Breach
}

// NewMonitor returns a monitor that has checked nothing. It starts no goroutine: call [Monitor.Run] or [Monitor.Look].
func NewMonitor(log *probe.Log) *Monitor {
	return &Monitor{log: log, checker: New(), counts: map[int]int{}}
}

// Run calls Look every [monitorPeriod] until ctx is done. Call it once.
func (m *Monitor) Run(ctx context.Context) {
	routine.Every(ctx, clock.RealClock{}, monitorPeriod, m.Look)
}

// Look checks the records since the last look, until ctx is done. It counts breaches, and keeps the newest.
func (m *Monitor) Look(ctx context.Context) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for r := range m.log.Between(m.checker.seq, m.log.Last()) {
		if ctx.Err() != nil {
			return
		}
		m.checked++
		m.missed += r.Seq - 1 - m.checker.seq
		found := m.checker.apply(r)
		for _, breach := range found {
			m.counts[breach.Rule]++
		}
		m.breaches = append(m.breaches, found...)
		m.breaches = m.breaches[max(0, len(m.breaches)-maxBreaches):]
	}
}

// Breaches returns the kept breaches at records after the given one, in the order of the log.
func (m *Monitor) Breaches(after uint64) []Breach {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []Breach
	for _, breach := range m.breaches {
		if breach.Seq > after {
			found = append(found, breach)
		}
	}
	return found
}

// Report is the state of all rules after a monitor's last look.
type Report struct {
	Seq     uint64       `json:"seq"`     // the newest record that was checked
	Checked uint64       `json:"checked"` // records that were checked since the monitor began
	Missed  uint64       `json:"missed"`  // records that had left the log before the monitor could check them
	Rules   []RuleReport `json:"rules"`   // in the order of [All]
}

// RuleReport is one rule, with the breaches that the monitor has found.
type RuleReport struct {
	Rule
	Count    int      `json:"count"`              // number of breaches
	Breaches []Breach `json:"breaches,omitempty"` // the newest breaches
}

// Report returns the state of the rules at the last look.
func (m *Monitor) Report() Report {
	m.mu.Lock()
	defer m.mu.Unlock()
	report := Report{Seq: m.checker.seq, Checked: m.checked, Missed: m.missed}
	for _, rule := range All {
		each := RuleReport{Rule: rule, Count: m.counts[rule.Number]}
		for _, breach := range m.breaches {
			if breach.Rule == rule.Number {
				each.Breaches = append(each.Breaches, breach)
			}
		}
		report.Rules = append(report.Rules, each)
	}
	return report
}
