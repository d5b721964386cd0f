//go:build race

package bubble

// Race reports whether this is a race build.
const Race = true
