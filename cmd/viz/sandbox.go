package main

import (
	"context"

	pipeline "listwatch/chapters/15-pipeline"
	"listwatch/internal/scenario"
	"listwatch/viz"
)

// sandbox lets the page turn the knobs of the running pipeline and play stories on it.
type sandbox struct {
	pipeline *pipeline.Pipeline
	stories  *scenario.World
}

var _ viz.Sandbox = (*sandbox)(nil)

func (s *sandbox) Turn(ctx context.Context, knob viz.Knob) error {
	return s.pipeline.Turn(ctx, pipeline.Knob(knob))
}

// Knobs returns how everything stands, and what can be turned.
func (s *sandbox) Knobs() any {
	return struct {
		Names map[string]string `json:"names"`
		pipeline.KnobState
		CanRestart bool `json:"canRestart"`
	}{pipeline.KnobNames, s.pipeline.Knobs(), s.pipeline.RestartEtcd != nil}
}

func (s *sandbox) Reset(ctx context.Context) error { return s.pipeline.Reset(ctx) }

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
