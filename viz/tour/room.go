// Package tour is the room of the tour: one change is followed from kubectl to a controller, station by station, on the
// running program or on a recording.
package tour

import (
	_ "embed"

	"sigs.k8s.io/yaml"
)

//go:embed steps.yaml
var stepsFile []byte

// Steps is what the tour says at its steps, in order, as JSON: a list of {title, look, queue, act, asks, purpose,
// happened, end}.
func Steps() string {
	steps, err := yaml.YAMLToJSON(stepsFile)
	if err != nil {
		panic("tour: steps.yaml: " + err.Error())
	}
	return string(steps)
}

// Take is the recording on which the tour can be given without a program.
const Take = "tour"
