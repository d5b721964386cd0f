package assert

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// faults is a TB that collects the messages reported to it.
type faults []string

func (f *faults) Helper() {}

func (f *faults) Errorf(format string, args ...any) { *f = append(*f, fmt.Sprintf(format, args...)) }

func TestEachAssertionReportsItsFaultAndNothingElse(t *testing.T) {
	isEOF := func(err error) bool { return errors.Is(err, io.EOF) }
	for _, c := range []struct {
		holds, fails func(f *faults) bool
		want         string
	}{
		{
			func(f *faults) bool { return Equal(f, 1, int64(1)) },
			func(f *faults) bool { return Equal(f, 2, 1) }, "got 1, want 2",
		}, {
			func(f *faults) bool { return Equal(f, 1, 1, "got %d, want %d", 1, 1) },
			func(f *faults) bool { return Equal(f, 2, 1, "a:\n got %d\nwant %d", 1, 2) }, "a:\n got 1\nwant 2",
		}, {
			func(f *faults) bool { return EqualSlices(f, nil, []int{}) },
			func(f *faults) bool { return EqualSlices(f, nil, []int{1}, "row %d", 7) }, "row 7: got [1], want []",
		}, {
			func(f *faults) bool { return NoDiff(f, 1, 1) },
			func(f *faults) bool { return NoDiff(f, 2, 1, "it") }, "it: (-want +got):\n" + cmp.Diff(2, 1),
		}, {
			func(f *faults) bool { return NoError(f, nil) },
			func(f *faults) bool { return NoError(f, io.EOF, "read") }, "read: got EOF, want <nil>",
		}, {
			func(f *faults) bool { return Fails(f, io.EOF, isEOF) },
			func(f *faults) bool { return Fails(f, nil, isEOF, "read") },
			"read: got <nil>, which is another kind of answer",
		}, {
			func(f *faults) bool { return True(f, true, "%d", 1) },
			func(f *faults) bool { return True(f, false, "1%") }, "1%",
		}, {
			func(f *faults) bool { return False(f, false) },
			func(f *faults) bool { return False(f, true) }, "does not hold",
		},
	} {
		var none, one faults
		if !c.holds(&none) || len(none) != 0 {
			t.Errorf("a check that passes reports %q", none)
		}
		if c.fails(&one) || len(one) != 1 || one[0] != c.want {
			t.Errorf("got %q, want %q", one, c.want)
		}
	}
}
