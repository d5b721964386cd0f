package routine_test

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/eventually"
	"listwatch/internal/observe/routine"
)

// A chain of waits is told by its last link, whether that waits for ever or computes. Goroutines that have not been
// told to end are not late.
func TestLateAreTheGoroutinesThatKeepTheProgram(t *testing.T) {
	var over atomic.Bool
	end := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	var outer, inner routine.Group
	inner.Go(ctx, "test.waits", func(context.Context) { <-end })
	inner.Go(ctx, "test.computes", func(context.Context) {
		for !over.Load() {
			runtime.Gosched()
		}
	})
	outer.Go(ctx, "test.between", func(context.Context) { inner.Wait() })
	outer.Go(t.Context(), "test.runs", func(context.Context) { <-end })
	assert.EqualSlices(t, nil, routine.Late())
	cancel()
	var got []string
	eventually.Holds(t, "two goroutines keep the others", func() bool { got = routine.Late(); return len(got) == 2 })
	slices.Sort(got)
	for i, want := range []string{"test.computes in routine_test.TestLate", "test.waits in routine_test.TestLate"} {
		assert.True(t, strings.HasPrefix(got[i], want) && strings.Contains(got[i], " at late_test.go:"), "got %q",
			got[i])
	}
	close(end)
	over.Store(true)
	outer.Wait()
	assert.EqualSlices(t, nil, routine.Late())
}
