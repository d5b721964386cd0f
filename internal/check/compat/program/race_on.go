//go:build race

package program

// RaceEnabled says whether the tests, and the program with them, are built with the race detector.
const RaceEnabled = true
