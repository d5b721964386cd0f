//go:build race

package program

const raceEnabled = true // the program under test is built with the race detector too
