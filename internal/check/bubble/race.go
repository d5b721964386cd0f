//go:build race

package bubble

// Race says whether this is a race build.
const Race = true
