//go:build unix

package sidebyside

import (
	"syscall"
	"time"
)

// cpuTime returns the processor time of this process, over all processors. On a shared machine it is more reliable than
// wall-clock time.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
