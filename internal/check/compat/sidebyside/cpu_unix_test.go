//go:build unix

package sidebyside

import (
	"syscall"
	"time"
)

// cpuTime returns this process's processor time, which a busy machine changes less than wall-clock time.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
