package storm

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"listwatch/internal/check/compat/program"
)

const (
	// What a program may hold more than before the storm, when all clients have left. The log alone keeps 65,536
	// records.
	moreMemory = 400 << 20
	// How many goroutines come and go in a program at rest. What leaks, leaks with every client or every fault:
	// hundreds.
	restless = 10
	// What four watches of etcd may keep of goroutines that have decoded a burst: ten instead of one.
	decoders = 4 * 9
	// Files that etcd may have open besides those of the start: two segments of its log, of which it keeps up to five
	// until the next purge, a snapshot, and one that is being written. What leaks, leaks with every client.
	etcdFiles = 8
)

// resources is what the program holds.
type resources struct{ goroutines, fds, memory int }

// atRest waits until what the program holds moves no more than a program at rest does, and is no more than limit; the
// zero value is no limit.
func (s *storm) atRest(limit resources) resources {
	deadline := time.Now().Add(patience)
	var most, least resources // of the newest answers, as long as they were alike
	for alike := 0; ; alike++ {
		now := s.resources()
		most.goroutines, least.goroutines = max(most.goroutines, now.goroutines), min(least.goroutines, now.goroutines)
		if alike == 0 || most.goroutines-least.goroutines > restless || now.fds != most.fds {
			alike, most, least = 0, now, now
		}
		most.memory = now.memory
		if alike >= 20 && (limit == resources{} || most.within(limit)) {
			return most
		}
		if time.Now().After(deadline) {
			s.fault("not at rest after %v: %+v, want no more than %+v", patience, now, limit)
			return now
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (r resources) within(limit resources) bool {
	return r.goroutines <= limit.goroutines+restless+decoders && r.fds <= limit.fds+etcdFiles &&
		r.memory <= limit.memory+moreMemory
}

// resources reads /metrics.
func (s *storm) resources() (r resources) {
	reply := s.command("GET", "/metrics", nil)
	targets := map[string]*int{"go_goroutines": &r.goroutines, "process_open_fds": &r.fds,
		"process_resident_memory_bytes": &r.memory}
	lines := bufio.NewScanner(bytes.NewReader(reply.body))
	for lines.Scan() {
		name, text, _ := strings.Cut(lines.Text(), " ")
		if target := targets[name]; target != nil {
			value, _ := strconv.ParseFloat(text, 64) // 0 is told
			*target = int(value)
		}
	}
	return r
}

// allFaults returns what must not have happened.
func (s *storm) allFaults() []string {
	faults := slices.Concat(s.wrong(), s.ledger.wrong())
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
	row("writes", "%v", &s.ledger)
	for _, each := range s.clients {
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
