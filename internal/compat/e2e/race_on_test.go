//go:build race

package e2e

const raceEnabled = true // the program under test is built with the race detector too
