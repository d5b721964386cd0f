//go:build unix

package ratios

import (
	"syscall"
	"time"
)

// CPUTime returns how long this process has been computing, on all processors together. On a machine that is shared it
// says more than the clock on the wall.
func CPUTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
