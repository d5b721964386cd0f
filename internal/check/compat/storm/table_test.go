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
	faults := slices.Concat(s.wrong(), s.ledger.wrong(), s.counter.wrong())
	for _, each := range s.clients {
		faults = append(faults, each.wrong()...)
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
	for _, each := range append(s.clients, s.counter) {
		row(each.name(), "%v", each)
	}
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
