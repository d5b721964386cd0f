//go:build race

package bubble

// Race is true in a build with the race detector.
const Race = true
