package storm

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"listwatch/internal/compat/program"
)

// allFaults returns what must not have happened.
func (s *storm) allFaults() []string {
	faults := slices.Concat(s.faults, s.ledger.faults, s.registers.faults)
	for _, each := range s.watchers {
		faults = append(faults, each.view.faults...)
	}
	for _, each := range s.informers {
		faults = append(faults, each.view.faults...)
	}
	for _, each := range s.pagers {
		faults = append(faults, each.faults...)
	}
	for i, each := range s.pages {
		for _, fault := range each.faults {
			faults = append(faults, fmt.Sprintf("page %d: %s", i, fault))
		}
	}
	return faults
}

// table is what the storm has come to.
func (s *storm) table(before, after resources) string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	row := func(name string, format string, args ...any) {
		fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	row("storm", "%v, race build: %v", *lasts, program.RaceEnabled)
	row("", "%s", strings.Join(s.phases, ", "))
	row("writes", "%d acknowledged, %d unsure, to %d objects", s.ledger.nWrites, s.ledger.nUnsure, s.nObjects())
	events, watches, lists, expired := 0, 0, 0, 0
	for _, each := range s.watchers {
		events, watches, lists, expired = events+each.view.nEvents, watches+each.nWatches, lists+each.nLists, expired+each.nExpired
	}
	row("raw watchers", "%d: %d events, %d streams, %d lists, %d times 410", len(s.watchers), events, watches, lists, expired)
	row("", "%d times an acknowledged write was looked for", s.count["writes looked for at raw watches"])
	delete(s.count, "writes looked for at raw watches")
	events, lists = 0, 0
	for _, each := range s.informers {
		events, lists = events+each.view.nEvents, lists+int(each.nLists.Load())
	}
	row("informers", "%d: %d calls of handlers, %d lists", len(s.informers), events, lists)
	compared, expired := 0, 0
	for _, each := range s.pagers {
		compared, expired = compared+each.nCompared, expired+each.nExpired
	}
	row("paged lists", "%d equal to the exact list, %d times 410", compared, expired)
	feeds, records, summed, gone := 0, 0, 0, 0
	for _, each := range s.pages {
		feeds, records, summed, gone = feeds+each.nFeeds, records+each.nRecords, summed+each.nSummed, gone+each.nGone
	}
	row("pages", "%d: %d feeds, %d records, %d summed up, %d times gone", len(s.pages), feeds, records, summed, gone)
	watches = 0
	for _, each := range s.sleepers {
		watches += each.nWatches
	}
	row("sleepers", "%d: %d watches of which nothing was read", len(s.sleepers), watches)
	r := s.registers
	row("register", "%d linearizable histories of %d calls, %d unsure, %d too hard to judge; %d stale reads found out",
		r.nRounds-r.nTooHard, r.nCalls, r.nUnsure, r.nTooHard, r.nLies)
	for _, name := range slices.Sorted(maps.Keys(s.count)) {
		row("fault", "%s\t%d", name, s.count[name])
	}
	row("longest time without a write", "%v, after: %s", s.longest.Round(time.Millisecond), s.after)
	row("goroutines", "%d before, %d after", before.goroutines, after.goroutines)
	row("open files", "%d before, %d after", before.fds, after.fds)
	row("memory", "%d MB before, %d MB after", before.memory>>20, after.memory>>20)
	row("faults", "%d", len(s.allFaults()))
	w.Flush()
	for _, line := range slices.Sorted(maps.Keys(s.stderr)) {
		fmt.Fprintf(&out, "stderr: %d times: %s\n", s.stderr[line], line)
	}
	return out.String()
}

func (s *storm) nObjects() (n int) {
	for _, each := range s.writers {
		n += each.nObjects
	}
	return n
}
