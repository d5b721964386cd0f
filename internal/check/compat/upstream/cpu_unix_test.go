//go:build unix

package upstream

import (
	"syscall"
	"time"
)

// cpuTime returns how long this process has been computing, on all processors together. On a machine that is shared it
// says more than the clock on the wall.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
