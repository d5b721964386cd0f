package storm

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"listwatch/internal/check/compat/program"
)

// allFaults returns what must not have happened.
func (s *storm) allFaults() []string {
	faults := slices.Concat(s.faults.told, s.ledger.faults.told, s.counter.faults.told)
	for _, each := range s.watchers {
		faults = append(faults, each.view.faults.told...)
	}
	for _, each := range s.informers {
		faults = append(faults, each.faults.told...)
	}
	for _, each := range s.pagers {
		faults = append(faults, each.faults.told...)
	}
	for _, each := range s.pages {
		faults = append(faults, each.faults.told...)
	}
	return faults
}

// table is what the storm has come to.
func (s *storm) table(before, after resources) string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	row("storm", "%v, race build: %v; %s", *lasts, program.RaceEnabled, strings.Join(s.phases, ", "))
	row("writes", "%d acknowledged, %d unsure", s.ledger.nWrites, s.ledger.nUnsure)
	for i, each := range s.watchers {
		row(fmt.Sprintf("raw watcher %d", i), "%d events, %d streams, %d lists, %d times 410",
			each.view.nEvents, each.nWatches, each.nLists, each.nExpired)
	}
	for _, each := range s.informers {
		row(each.who, "%d calls of the handler", each.nCalls)
	}
	for i, each := range s.pagers {
		row(fmt.Sprintf("pager %d", i), "%d equal to the exact list, %d times 410", each.nCompared, each.nExpired)
	}
	for i, each := range s.pages {
		row(fmt.Sprintf("page %d", i), "%d feeds, %d records, %d summed up, %d times gone",
			each.nFeeds, each.nRecords, each.nSummed, each.nGone)
	}
	for i, each := range s.sleepers {
		row(fmt.Sprintf("sleeper %d", i), "%d watches of which nothing was read", each.nWatches)
	}
	row("counter", "%v", s.counter)
	for _, name := range slices.Sorted(maps.Keys(s.count)) {
		row(name, "%d", s.count[name])
	}
	row("longest time without a write", "%v, after: %s", s.longest.Round(time.Millisecond), s.after)
	row("before", "%+v", before)
	row("after", "%+v", after)
	row("faults", "%d", len(s.allFaults()))
	w.Flush()
	for _, line := range slices.Sorted(maps.Keys(s.stderr)) {
		fmt.Fprintf(&out, "stderr: %d times: %s\n", s.stderr[line], line)
	}
	return out.String()
}
