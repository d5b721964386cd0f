// Package probetest lets tests read the records of a log and print them as a story.
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

// beginning and end are the numbers of first and last records in a long test's story: a reader would not read more.
const (
	beginning = 40
	end       = 20
)

// Story prints the records of log at the end of the test, one on each line, if `go test` runs with -v.
func Story(t testing.TB, log *probe.Log) {
	if testing.Verbose() {
		t.Cleanup(func() { t.Log("what happened:\n" + tell(log)) })
	}
}

// Records returns all records that log still holds, or only those of the given points.
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

// Probe returns a probe for subject, for tests that check no records. With -v, the test prints the probe's story.
// Without -v, the probe is nil.
func Probe(t testing.TB, subject string) *probe.Probe {
	if !testing.Verbose() {
		return nil
	}
	log := probe.NewLog(clock.RealClock{}, 0)
	Story(t, log)
	return probe.New(log).Resource("pods").Subject(subject)
}
