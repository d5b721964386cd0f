//go:build !unix

package clientgo

import "time"

// cpuTime is not known here.
func cpuTime() time.Duration { return 0 }
