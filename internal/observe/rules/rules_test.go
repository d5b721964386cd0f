package rules

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
)

// These tests run the rules on one correct story. A pod is created, changed and deleted; a bookmark follows, and the
// pod is created again. w1 first gets the state at version 5, and w2 only later events. w1 is served over HTTP, and an
// informer calls a handler. Each fault changes the story at one place, and only the rule that it breaks must notice it.

const pods, a, b = "/registry/pods/", "/registry/pods/default/a", "/registry/pods/default/b"

func at(p probe.Point, subject, typ, key string, rv uint64, args ...int) probe.Record {
	r := probe.Record{Point: p, Resource: "pods", Subject: subject, Type: typ, Key: key, RV: rv}
	copy(r.Args[:], args)
	return r
}

func added(subject string, rv uint64) probe.Record {
	r := at(probe.WatcherAdded, subject, "", pods, rv, 10)
	r.Texts = probe.TextsOf(probe.WatcherAdded, pods)
	return r
}

// changed returns the records of one event on its way from the ring to both watchers and to the handler.
func changed(typ, key string, rv uint64) []probe.Record {
	return []probe.Record{
		at(probe.RingAppend, "cacher", typ, key, rv, 0, int(rv), 100, 6),
		at(probe.StoreUpdate, "cacher", typ, key, rv, 1),
		at(probe.IncomingSent, "cacher", typ, key, rv, 1, 100),
		at(probe.IncomingReceived, "cacher", typ, key, rv, 0, 100),
		at(probe.DispatchStarted, "cacher", typ, key, rv, 2),
		at(probe.InputSent, "w1", typ, key, rv, 1, 10),
		at(probe.InputSent, "w2", typ, key, rv, 1, 10),
		at(probe.DispatchFinished, "cacher", typ, key, rv),
		at(probe.ResultReceived, "w1", typ, key, rv, 0, 10), // the receiver reports before the sender
		at(probe.ResultSent, "w1", typ, key, rv, 1, 10),
		at(probe.ResultSent, "w2", typ, key, rv, 1, 10),
		at(probe.ReflectorReceived, "informer", typ, "default/a", rv),
		at(probe.IndexerUpdated, "informer", typ, "default/a", rv, 1),
		at(probe.HandlerCalled, "l1", typ, "default/a", rv),
	}
}

func story() []probe.Record {
	listens := at(probe.ListenerAdded, "l1", "", "", 0)
	listens.Texts = probe.TextsOf(probe.ListenerAdded, "informer")
	records := []probe.Record{
		listens,
		at(probe.CacheReplaced, "cacher", "", "", 5, 0, 0, 100, 1),
		added("w1", 5),
		added("w2", 5),
		at(probe.ResultSent, "w1", "ADDED", b, 5, 1, 10),
		at(probe.ResultReceived, "w1", "ADDED", b, 3, 0, 10), // the object keeps its older version
		at(probe.WatcherInterval, "w1", "", "", 5, 1),
		at(probe.ReflectorListed, "informer", "", "", 5, 1),
		at(probe.ReflectorWatching, "informer", "", "", 5),
	}
	records = append(records, changed("ADDED", a, 6)...)
	records = append(records, changed("MODIFIED", a, 7)...)
	records = append(records, changed(deleted, a, 8)...)
	return append(records, at(probe.RVAdvanced, "cacher", "", "", 9),
		at(probe.DispatchStarted, "cacher", bookmark, "", 9, 2), at(probe.InputSent, "w1", bookmark, "", 9, 1, 10),
		at(probe.DispatchFinished, "cacher", bookmark, "", 9), at(probe.ResultSent, "w1", bookmark, "", 9, 1, 10),
		at(probe.ReflectorReceived, "informer", bookmark, "", 9), at(probe.ReflectorWatching, "informer", "", "", 9),
		at(probe.WatcherRemoved, "w2", "", "", 8), at(probe.DispatchStarted, "cacher", "ADDED", a, 10, 1),
		at(probe.InputSent, "w1", "ADDED", a, 10, 1, 10), at(probe.DispatchFinished, "cacher", "ADDED", a, 10),
		at(probe.ResultSent, "w1", "ADDED", a, 10, 1, 10))
}

// where returns the index of the first record with this point, subject and version.
func where(t *testing.T, records []probe.Record, p probe.Point, subject string, rv uint64) int {
	t.Helper()
	i := slices.IndexFunc(records, func(r probe.Record) bool {
		return r.Point == p && r.Subject == subject && r.RV == rv
	})
	require.True(t, i >= 0, "the story has no %s of %s at %d", p, subject, rv)
	return i
}

func numbered(records []probe.Record, from uint64) []probe.Record {
	for i := range records {
		records[i].Seq = from + uint64(i)
	}
	return records
}

func broken(records []probe.Record) string {
	var rules []int
	for _, breach := range New().Apply(records) {
		rules = append(rules, breach.Rule)
	}
	return fmt.Sprint(rules)
}

func TestAStoryInWhichEverythingIsRightBreaksNoRule(t *testing.T) {
	for _, breach := range New().Apply(numbered(story(), 1)) {
		t.Error(breach)
	}
}

// faults are changes to the story, each with the rule that must notice it.
var faults = map[string]struct {
	point   probe.Point
	subject string
	rv      uint64
	change  func(records []probe.Record, i int) []probe.Record
	want    int // the number of the rule
}{
	"the store is not changed with the ring":      {probe.StoreUpdate, "cacher", 7, remove, 1},
	"the dispatcher hears of it before the store": {probe.StoreUpdate, "cacher", 7, later, 1},
	"a bookmark between ring and store":           {probe.RVAdvanced, "cacher", 9, moveTo(probe.StoreUpdate, 7), 1},
	"the ring goes back": {probe.RingAppend, "cacher", 8, func(records []probe.Record, i int) []probe.Record {
		records[i].RV, records[i+1].RV = 4, 4
		return records
	}, 1},
	"an event between starting point and dispatch":   {probe.InputSent, "w2", 7, remove, 2},
	"a bookmark before its event":                    {probe.ResultSent, "w1", 9, moveTo(probe.ResultSent, 8), 3},
	"a bookmark that goes back":                      {probe.ResultSent, "w1", 9, setRV(6), 3},
	"an input that was closed while dispatching":     {probe.InputSent, "w1", 10, setSubject("w2"), 4},
	"a change of an object that was deleted":         {probe.ResultSent, "w1", 10, setType("MODIFIED"), 5},
	"an object that is added twice":                  {probe.ResultSent, "w2", 7, setType("ADDED"), 5},
	"an object that keeps its version when deleted":  {probe.ResultReceived, "w1", 8, setRV(7), 6},
	"a client that reckons with versions":            {probe.ReflectorWatching, "informer", 9, setRV(10), 7},
	"a handler before the store":                     {probe.IndexerUpdated, "informer", 7, later, 8},
	"a handler before the store, of an unknown key":  {probe.IndexerUpdated, "informer", 6, later, 8},
	"a handler that is told of the past":             {probe.HandlerCalled, "l1", 8, setRV(6), 8},
	"an event that comes twice":                      {probe.ResultSent, "w2", 7, double, 9},
	"events that come out of order":                  {probe.ResultSent, "w2", 8, setRV(6), 9},
	"a channel that holds more than it has room for": {probe.IncomingSent, "cacher", 7, setArgs(101, 100), 10},
	"a channel that grows":                           {probe.InputSent, "w1", 7, setArgs(1, 20), 10},
}

func remove(records []probe.Record, i int) []probe.Record { return slices.Delete(records, i, i+1) }
func double(records []probe.Record, i int) []probe.Record {
	return slices.Insert(records, i, records[i])
}
func later(records []probe.Record, i int) []probe.Record {
	records[i], records[i+1] = records[i+1], records[i]
	return records
}

// moveTo returns a function that moves a record to the place before the record of p at rv.
func moveTo(p probe.Point, rv uint64) func([]probe.Record, int) []probe.Record {
	return func(records []probe.Record, i int) []probe.Record {
		moved := records[i]
		records = slices.Delete(records, i, i+1)
		to := slices.IndexFunc(records, func(r probe.Record) bool { return r.Point == p && r.RV == rv })
		return slices.Insert(records, to, moved)
	}
}

func setRV(rv uint64) func([]probe.Record, int) []probe.Record {
	return func(records []probe.Record, i int) []probe.Record { records[i].RV = rv; return records }
}

func setType(typ string) func([]probe.Record, int) []probe.Record {
	return func(records []probe.Record, i int) []probe.Record { records[i].Type = typ; return records }
}

func setSubject(subject string) func([]probe.Record, int) []probe.Record {
	return func(records []probe.Record, i int) []probe.Record { records[i].Subject = subject; return records }
}

func setArgs(args ...int) func([]probe.Record, int) []probe.Record {
	return func(records []probe.Record, i int) []probe.Record { copy(records[i].Args[:], args); return records }
}

func TestEveryRuleNoticesWhenItIsBroken(t *testing.T) {
	noticed := map[int]bool{}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			records := story()
			records = numbered(fault.change(records, where(t, records, fault.point, fault.subject, fault.rv)), 1)
			breaches := New().Apply(records)
			others := slices.ContainsFunc(breaches, func(b Breach) bool { return b.Rule != fault.want })
			assert.True(t, len(breaches) != 0 && !others, "got %v, want rule %d to be broken", breaches, fault.want)
		})
		noticed[fault.want] = true
	}
	for _, rule := range All {
		assert.True(t, noticed[rule.Number], "no fault was seeded for rule %d: %s", rule.Number, rule.Text)
	}
}

func TestAWatcherThatIsRegisteredDuringADispatchIsNotPartOfIt(t *testing.T) {
	records := story()
	began := where(t, records, probe.DispatchStarted, "cacher", 6)
	records = slices.Insert(records, began+1, added("w3", 6))
	next := where(t, records, probe.InputSent, "w2", 7)
	records = slices.Insert(records, next, at(probe.InputSent, "w3", "MODIFIED", a, 7, 1, 10))
	assert.Equal(t, "[]", broken(numbered(records, 1)), "broken")
}

func TestNoRuleJudgesWhatWasNotSeen(t *testing.T) {
	for from := range story() {
		assert.Equal(t, "[]", broken(numbered(story()[from:], uint64(from+10))), "beginning at record %d", from)
	}
	whole := numbered(story(), 1)
	for hole := 1; hole < len(whole)-3; hole++ {
		checker := New()
		breaches := append(checker.Apply(whole[:hole]), checker.Apply(whole[hole+3:])...)
		assert.True(t, len(breaches) == 0, "without records %d to %d: %v", hole, hole+2, breaches)
	}
}

// TestAQuietWatcherIsNotAccused leaves out routine moments of w1 after a look at it: no rule may report a breach.
func TestAQuietWatcherIsNotAccused(t *testing.T) {
	whole := story()
	routine := func(r probe.Record) bool { return r.Subject == "w1" && r.Point.Info().Routine }
	for quietFrom := 5; quietFrom < len(whole); quietFrom++ {
		for loudFrom := quietFrom; loudFrom < len(whole); loudFrom += 5 {
			var records []probe.Record
			for i, r := range whole {
				if i == quietFrom {
					records = append(records, at(probe.WatcherLookedAt, "w1", "", "", 0))
				}
				if i < quietFrom || i >= loudFrom || !routine(r) {
					records = append(records, r)
				}
			}
			assert.Equal(t, "[]", broken(numbered(records, 1)), "quiet from %d to %d: broken", quietFrom, loudFrom)
		}
	}
}

func TestBatchesMayOverlap(t *testing.T) {
	whole := numbered(story(), 1)
	checker := New()
	for i := range whole {
		breaches := checker.Apply(whole[max(0, i-5) : i+1])
		assert.True(t, len(breaches) == 0, breaches)
	}
}

func TestResourcesAreCheckedApart(t *testing.T) {
	records := story()
	nodes := story()
	for i := range nodes {
		nodes[i].Resource = "nodes"
	}
	assert.Equal(t, "[]", broken(numbered(append(records, nodes...), 1)), "broken")
}

func write(log *probe.Log, records []probe.Record) {
	for _, r := range records {
		r.Seq = 0
		log.Replay(r)
	}
}

// doubled returns the story in which w2 is sent one event twice, and the index of the second copy.
func doubled(t *testing.T) ([]probe.Record, int) {
	records := story()
	i := where(t, records, probe.ResultSent, "w2", 7)
	return double(records, i), i + 1
}

func TestTheMonitorNamesTheRecordThatBrokeARule(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		log := probe.NewLog(clock.RealClock{}, 1<<10)
		monitor := NewMonitor(log)
		go monitor.Run(t.Context())
		records, at := doubled(t)
		write(log, records)
		time.Sleep(time.Second)
		synctest.Wait()

		seq := uint64(at + 1)
		report := monitor.Report()
		assert.True(t, report.Seq == uint64(len(records)) && report.Checked == report.Seq && report.Missed == 0,
			"got %+v, want all of %d records checked", report, len(records))
		for _, rule := range report.Rules {
			broken := rule.Number == 9
			assert.True(t, (rule.Count == 1) == broken && (!broken || len(rule.Breaches) == 1 &&
				rule.Breaches[0].Seq == seq), "got %+v, want rule 9 broken at %d and no other", rule, seq)
		}
		got := monitor.Breaches(seq - 1)
		assert.True(t, len(got) == 1 && got[0].Rule == 9, "breaches after %d: %v", seq-1, got)
		got = monitor.Breaches(seq)
		assert.Equal(t, 0, len(got), "breaches after %d: %v", seq, got)
	})
}

func TestTheMonitorSaysWhatItHasMissed(t *testing.T) {
	log := probe.NewLog(clock.RealClock{}, 16)
	monitor := NewMonitor(log)
	write(log, story())
	monitor.Look(t.Context())
	want := uint64(len(story())) - 16
	if report := monitor.Report(); report.Missed != want || report.Checked != 16 || len(monitor.Breaches(0)) > 0 {
		t.Errorf("got %+v, want %d missed and no breach", report, want)
	}
}

// lives returns the records of n pods that are created and deleted; w1 and the handler get both events of each.
func lives(from, n int) []probe.Record {
	var records []probe.Record
	for i := range n {
		rv, name := uint64(100+2*(from+i)), fmt.Sprintf("default/p%d", from+i)
		key := "/registry/pods/" + name
		for _, typ := range []string{"ADDED", deleted} {
			records = append(records, at(probe.RingAppend, "cacher", typ, key, rv, 0, 0, 100, 6),
				at(probe.StoreUpdate, "cacher", typ, key, rv, 1),
				at(probe.DispatchStarted, "cacher", typ, key, rv, 1), at(probe.InputSent, "w1", typ, key, rv, 1, 10),
				at(probe.DispatchFinished, "cacher", typ, key, rv), at(probe.ResultSent, "w1", typ, key, rv, 1, 10),
				at(probe.ResultReceived, "w1", typ, key, rv, 0, 10),
				at(probe.ReflectorReceived, "informer", typ, name, rv),
				at(probe.IndexerUpdated, "informer", typ, name, rv, 1), at(probe.HandlerCalled, "l1", typ, name, rv))
			rv++
		}
	}
	return records
}

func TestACheckerForgetsWhenItKnowsTooMuch(t *testing.T) {
	checker := New()
	checker.Apply(numbered(story()[:9], 1))
	var records []probe.Record
	for from := 0; from <= maxRemembered; from += 1000 {
		records = numbered(lives(from, 1000), checker.seq+1)
		for _, breach := range checker.Apply(records) {
			t.Fatal(breach)
		}
	}
	pods := checker.resources["pods"]
	first, types, asked := pods[7].(*storeFirst), pods[4].(*eventTypes), pods[6].(opaqueVersions)["informer"]
	for what, n := range map[string]int{
		"stored": len(first.of("informer").versions), "told": len(first.told["l1"]),
		"present": len(*types.of["w1"]), "given": len(asked.given),
	} {
		assert.True(t, n <= maxRemembered, "%s: %d are remembered, want at most %d", what, n, maxRemembered)
	}
	// The rules still use the moments that they remember.
	twice := slices.Clone(records[len(records)-5:])
	got := checker.Apply(numbered(twice, checker.seq+1))
	assert.True(t, len(got) != 0, "a deletion that is sent twice is not noticed any more")
}
