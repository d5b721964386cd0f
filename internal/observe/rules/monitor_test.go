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
	"listwatch/internal/observe/probe"
)

func write(log *probe.Log, records []probe.Record) {
	for _, r := range records {
		r.Seq = 0
		log.Replay(r)
	}
}

// doubled is the story in which w2 is sent one event twice, and the position of the second time.
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
				rule.Breaches[0].Seq == seq),
				"got %+v, want rule 9 broken at %d and no other", rule, seq)
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

// lives is n pods, each created, told to w1 and to the handler, and deleted.
func lives(from, n int) []probe.Record {
	var records []probe.Record
	for i := range n {
		rv, name := uint64(100+2*(from+i)), fmt.Sprintf("default/p%d", from+i)
		key := "/registry/pods/" + name
		for _, typ := range []string{"ADDED", deleted} {
			records = append(records,
				at(probe.RingAppend, "cacher", typ, key, rv, 0, 0, 100, 6), at(probe.StoreUpdate, "cacher", typ, key,
					rv, 1),
				at(probe.DispatchStarted, "cacher", typ, key, rv, 1), at(probe.InputSent, "w1", typ, key, rv, 1, 10),
				at(probe.DispatchFinished, "cacher", typ, key, rv), at(probe.ResultSent, "w1", typ, key, rv, 1, 10),
				at(probe.ResultReceived, "w1", typ, key, rv, 0, 10), at(probe.ReflectorReceived, "informer", typ, name,
					rv),
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
	// What is remembered still counts.
	twice := slices.Clone(records[len(records)-5:])
	got := checker.Apply(numbered(twice, checker.seq+1))
	assert.True(t, len(got) != 0, "a deletion that is sent twice is not noticed any more")
}
