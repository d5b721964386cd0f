package main

import (
	"context"
	"errors"
	"maps"

	pipeline "listwatch/chapters/15-pipeline"
	"listwatch/internal/scenario"
	"listwatch/viz"
)

// switchKnob is the knob that is a switch of the command line.
const switchKnob = "switch"

// Why nothing is switched.
var (
	errOneRecording = errors.New("a recording is being written, and is of one run with one set of switches")
	errEndsAlready  = errors.New("both halves are starting again already; ask again when they have")
)

// sandbox lets the page turn the knobs of the running pipeline and play stories on it.
type sandbox struct {
	session  *session
	pipeline *pipeline.Pipeline
	stories  *scenario.World
}

var _ viz.Sandbox = (*sandbox)(nil)

// Turn turns a knob of the pipeline, or changes one of the program's switches, for which both halves have to start again.
func (s *sandbox) Turn(ctx context.Context, knob viz.Knob) error {
	if knob.Name == switchKnob {
		return s.session.change(knob.Target, knob.Value)
	}
	return s.pipeline.Turn(ctx, pipeline.Knob(knob))
}

// Knobs returns how everything stands, and what can be turned.
func (s *sandbox) Knobs() any {
	names := maps.Clone(pipeline.KnobNames)
	names[switchKnob] = "starts both halves again, on the same etcd, with the switch Target of the command line at Value"
	return struct {
		Names map[string]string `json:"names"`
		pipeline.KnobState
		Switches   map[string]string `json:"switches"`
		CanRestart bool              `json:"canRestart"`
	}{names, s.pipeline.Knobs(), s.session.options.switches(), s.pipeline.RestartEtcd != nil}
}

// Reset returns everything to the beginning, and the switches to the command line.
func (s *sandbox) Reset(ctx context.Context) error {
	return errors.Join(s.pipeline.Reset(ctx), s.session.begin(s.session.first))
}

func (s *sandbox) Play(ctx context.Context, id string) (any, error) { return s.stories.Play(ctx, id) }

// scenarios returns the stories as the page offers them.
func scenarios() []viz.Scenario {
	var offered []viz.Scenario
	for _, each := range scenario.All {
		offered = append(offered, viz.Scenario{
			ID: each.ID, Title: each.Title, Symptom: each.Symptom, Watch: each.Watch, Chapter: each.Chapter, Thread: each.Thread,
		})
	}
	return offered
}
