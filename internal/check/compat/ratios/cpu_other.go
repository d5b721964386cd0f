//go:build !unix

package ratios

import "time"

// CPUTime is not known here.
func CPUTime() time.Duration { return 0 }
