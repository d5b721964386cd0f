package ratios

import (
	"strings"
	"testing"
)

func TestTheBestRunOfBothSidesIsCompared(t *testing.T) {
	var table table
	table.read(strings.NewReader(`goos: linux
BenchmarkAdd/ours-2         	    1000	      1500 ns/op	      64 B/op	       1 allocs/op
BenchmarkAdd/ours-2         	    1000	      1000 ns/op	      64 B/op	       1 allocs/op
BenchmarkAdd/upstream-2     	    1000	      4000 ns/op	      32 B/op	       2 allocs/op
BenchmarkAdd/floor-2        	    1000	       400 ns/op
BenchmarkAdd/alone-2        	    1000	      4000 ns/op
BenchmarkElse-2             	    1000	      4000 ns/op
PASS`))
	var b strings.Builder
	table.print(&b)
	want := []string{"Add ns/op 1000 4000 0.25 400", "Add B/op 64 32 2.00", "Add allocs/op 1 2 0.50"}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")[1:]
	if len(lines) != len(want) {
		t.Fatalf("got %q", lines)
	}
	for i, line := range lines {
		if got := strings.Join(strings.Fields(line), " "); got != want[i] {
			t.Errorf("got %q, want %q", got, want[i])
		}
	}
}
