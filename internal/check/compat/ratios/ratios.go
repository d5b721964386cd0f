// Package ratios prints what a run of benchmarks says about us and the real thing: for every benchmark with a sub-benchmark
// "ours" and one "upstream", each measured quantity of both and their ratio. Below 1 is better than the real thing. If there
// is a third, "floor", it is what no implementation can do without: the bare channels and goroutines on the way of an event, the copying
// of a list's items.
//
// It reads what the testing package prints, and so knows every quantity that a person sees: -benchmem and ReportMetric
// included. With -count, the best of all runs counts: on a shared machine, whatever is slower is another process's work.
package ratios

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Watch passes everything on that is printed to os.Stdout from now on, and reads the results of benchmarks in it. The
// returned function ends that and prints the table, if there is anything to compare.
func Watch() (printTable func(), err error) {
	stdout := os.Stdout
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe for standard output: %w", err)
	}
	os.Stdout = w
	var t table
	read := make(chan struct{}) // closed when everything printed has been read; nothing is sent
	go func() {
		defer close(read)
		t.read(io.TeeReader(r, stdout))
	}()
	return func() {
		os.Stdout = stdout
		w.Close()
		<-read
		t.print(stdout)
	}, nil
}

// table holds the results, best of all runs: benchmark, side, unit.
type table struct {
	benchmarks []string // in order of appearance
	units      []string
	results    map[string]map[string]map[string]float64
}

// read reads lines of the form
//
//	BenchmarkEvents/10-handlers/ours-2     1000   1234 ns/op   56 B/op   7 allocs/op
func (t *table) read(r io.Reader) {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		fields := strings.Fields(line)
		if len(fields) >= 4 && strings.HasPrefix(fields[0], "Benchmark") {
			t.add(fields)
		}
		if err != nil {
			return
		}
	}
}

func (t *table) add(fields []string) {
	at := strings.LastIndex(fields[0], "/")
	if at < 0 {
		return
	}
	name := strings.TrimPrefix(fields[0][:at], "Benchmark")
	side, _, _ := strings.Cut(fields[0][at+1:], "-")
	if side != "ours" && side != "upstream" && side != "floor" {
		return
	}
	for i := 2; i+1 < len(fields); i += 2 {
		if value, err := strconv.ParseFloat(fields[i], 64); err == nil {
			t.set(name, side, fields[i+1], value)
		}
	}
}

func (t *table) set(name, side, unit string, value float64) {
	if t.results == nil {
		t.results = map[string]map[string]map[string]float64{}
	}
	if t.results[name] == nil {
		t.results[name] = map[string]map[string]float64{"ours": {}, "upstream": {}, "floor": {}}
		t.benchmarks = append(t.benchmarks, name)
	}
	known := false
	for _, u := range t.units {
		known = known || u == unit
	}
	if !known {
		t.units = append(t.units, unit)
	}
	if best, exists := t.results[name][side][unit]; exists {
		value = min(best, value)
	}
	t.results[name][side][unit] = value
}

func (t *table) print(w io.Writer) {
	if len(t.benchmarks) == 0 {
		return
	}
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "benchmark\tunit\tours\tupstream\tratio\tfloor\t")
	for _, name := range t.benchmarks {
		ours, upstream := t.results[name]["ours"], t.results[name]["upstream"]
		for _, unit := range t.units {
			mine, measured := ours[unit]
			theirs, measuredToo := upstream[unit]
			if !measured || !measuredToo || mine+theirs == 0 {
				continue
			}
			least := ""
			if value, exists := t.results[name]["floor"][unit]; exists {
				least = short(value)
			}
			fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%.2f\t%s\t\n", name, unit, short(mine), short(theirs), mine/theirs, least)
		}
	}
	out.Flush()
}

func short(value float64) string {
	if value >= 100 {
		return strconv.FormatFloat(value, 'f', 0, 64)
	}
	return strconv.FormatFloat(value, 'g', 3, 64)
}
