package rules

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
)

const (
	monitorPeriod = 100 * time.Millisecond // how often the log is looked at
	maxBreaches   = 100                    // of all rules together, the newest
)

// Monitor keeps the rules at work on a log while it grows. However long that is, it holds a bounded amount of memory:
// the checkers forget when they know too much, and only the newest breaches are kept, while all are counted.
//
// Its methods may be called from any goroutine.
type Monitor struct {
	log *probe.Log // set by NewMonitor, never changed

	mu       sync.Mutex // guards the fields below; taken before the log's own lock
	checker  *Checker
	checked  uint64 // records seen
	missed   uint64 // records that had left the log before they were seen
	counts   map[int]int
	breaches []Breach
}

// NewMonitor returns a monitor that has seen nothing. It starts nothing; [Monitor.Run] and [Monitor.Look] do the work.
func NewMonitor(log *probe.Log) *Monitor {
	return &Monitor{log: log, checker: New(), counts: map[int]int{}}
}

// Run looks at the log until ctx is done. It is called once.
func (m *Monitor) Run(ctx context.Context) {
	routine.Every(ctx, clock.RealClock{}, monitorPeriod, m.Look)
}

// Look checks what has been written since the last look, or until ctx is done.
func (m *Monitor) Look(ctx context.Context) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for r := range m.log.Between(m.checker.seq, m.log.Last()) {
		if ctx.Err() != nil {
			return
		}
		m.checked++
		m.missed += r.Seq - 1 - m.checker.seq
		for _, breach := range m.checker.apply(r) {
			m.keepLocked(breach)
		}
	}
}

func (m *Monitor) keepLocked(breach Breach) {
	m.counts[breach.Rule]++
	if len(m.breaches) == maxBreaches {
		m.breaches = slices.Delete(m.breaches, 0, 1)
	}
	m.breaches = append(m.breaches, breach)
}

// Breaches returns the breaches found at records after seq, in the order of the log, as many as are kept.
func (m *Monitor) Breaches(after uint64) []Breach {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []Breach
	for _, breach := range m.breaches {
		if breach.Record.Seq > after {
			found = append(found, breach)
		}
	}
	return found
}

// Report is how the rules stand.
type Report struct {
	Seq     uint64       `json:"seq"`     // checked up to here
	Checked uint64       `json:"checked"` // records, since the monitor began
	Missed  uint64       `json:"missed"`  // records that had left the log before they could be checked
	Rules   []RuleReport `json:"rules"`   // in the order of [All]
}

// RuleReport is how one rule stands.
type RuleReport struct {
	Rule
	Count    int      `json:"count"`              // of breaches
	Breaches []Breach `json:"breaches,omitempty"` // the newest
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
