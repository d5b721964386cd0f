// Package probetest lets a test tell what happened in it.
package probetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"listwatch/internal/observe/probe"
)

// A story has at most the first and the last records of a test: more than a reader follows.
const (
	beginning = 40
	end       = 20
)

// Story prints what log holds when the test ends, a line a record, if `go test` runs with -v.
func Story(t testing.TB, log *probe.Log) {
	if testing.Verbose() {
		t.Cleanup(func() { t.Log("what happened:\n" + tell(log)) })
	}
}

// Records returns what log holds: all of it, or what it holds of some points.
func Records(log *probe.Log, points ...probe.Point) []probe.Record {
	records, _ := log.Since(nil, log.Oldest()-1, log.Size())
	return slices.DeleteFunc(records, func(r probe.Record) bool {
		return len(points) > 0 && !slices.Contains(points, r.Point)
	})
}

func tell(log *probe.Log) string {
	records := Records(log)
	var story strings.Builder
	for i := range records {
		if left := len(records) - i; i >= beginning && left > end {
			if i == beginning {
				fmt.Fprintf(&story, "… %d more …\n", left-end)
			}
			continue
		}
		r := &records[i]
		fmt.Fprintf(&story, "%10s  %-10s %-13s %s\n", r.Time.Round(time.Microsecond), r.Point.Info().Station,
			r.Subject, r.Sentence())
	}
	return story.String()
}

// Probe returns a probe that speaks for subject, for a test that looks at no records itself: with -v it tells the story
// of the test, and without it is off.
func Probe(t testing.TB, subject string) *probe.Probe {
	if !testing.Verbose() {
		return nil
	}
	log := probe.NewLog(clock.RealClock{}, 0)
	Story(t, log)
	return probe.New(log).Resource("pods").Subject(subject)
}
