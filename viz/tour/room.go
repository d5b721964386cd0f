// Package tour is the room of the tour: one change is followed from kubectl to a controller, station by station, on the
// running program or on a recording. The page tells it (tour.js). What it does to the program is in act.go, where each
// step rests and what it says of the log in plot.go.
package tour

import (
	_ "embed"

	"sigs.k8s.io/yaml"
)

//go:embed steps.yaml
var stepsFile []byte

// Step is what the tour says at one step.
type Step struct {
	Title   string   `json:"title"`
	Look    []string `json:"look"`            // the stations that it is about
	Queue   string   `json:"queue,omitempty"` // of each watcher: the one that it is about
	Act     bool     `json:"act,omitempty"`   // the visitor stops a client from reading
	Asks    string   `json:"asks,omitempty"`  // said before that
	Purpose string   `json:"purpose"`         // what the stations are for
	// Happened is what came of it in the log, with words in braces from there; "{end}" stands for one of End.
	Happened string            `json:"happened"`
	End      map[string]string `json:"end,omitempty"`
}

// Steps are the steps in order.
var Steps = readSteps()

func readSteps() (steps []Step) {
	if err := yaml.UnmarshalStrict(stepsFile, &steps); err != nil {
		panic("tour: steps.yaml: " + err.Error()) // it is part of the program: a test has read it
	}
	return steps
}

// Take is the recording on which the tour can be given without a program.
const Take = "tour"
