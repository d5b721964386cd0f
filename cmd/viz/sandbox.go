package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"listwatch/internal/etcdnode"
	"listwatch/internal/sandbox"
	"listwatch/internal/scenario"
	"listwatch/internal/takes"
	"listwatch/viz"
	"listwatch/viz/stories"
)

// Why nothing is switched.
var (
	errOneRecording = errors.New("a recording is being written, and is of one run with one set of switches")
	errEndsAlready  = errors.New("both halves are starting again already; ask again when they have")
)

// box lets the page act on the machine.
type box struct {
	*sandbox.Sandbox
	session *session
	stories *scenario.World
}

var (
	_ viz.Sandbox = (*box)(nil)
	_ viz.World   = (*box)(nil)
)

// Turn turns a knob.
func (b *box) Turn(ctx context.Context, knob viz.Knob) error {
	return b.Sandbox.Turn(ctx, sandbox.Knob(knob))
}

// Knobs returns how everything stands, and what can be turned.
func (b *box) Knobs() any {
	return struct {
		Names map[string]string `json:"names"`
		sandbox.KnobState
		Switches   map[string]string `json:"switches"`
		CanRestart bool              `json:"canRestart"`
		Etcd       etcdnode.State    `json:"etcd"`
	}{sandbox.KnobNames, b.Sandbox.Knobs(), b.session.options.switches(), b.CanRestartEtcd(), b.session.etcd.keeper.State()}
}

// Play plays a story.
func (b *box) Play(ctx context.Context, id string) (any, error) { return b.stories.Play(ctx, id) }

// AddWatcher opens a watcher.
func (b *box) AddWatcher(ctx context.Context, options viz.WatcherOptions) (string, error) {
	return b.Sandbox.AddWatcher(ctx, sandbox.WatcherOptions(options))
}

// Watchers returns those that are open.
func (b *box) Watchers() []viz.WatcherInfo {
	var infos []viz.WatcherInfo
	for _, each := range b.Sandbox.Watchers() {
		infos = append(infos, viz.WatcherInfo{ID: each.ID, UserAgent: each.UserAgent, Options: viz.WatcherOptions(each.Options), Error: each.Error})
	}
	return infos
}

// wireOf returns the open watches of the client half for the page.
func wireOf(connections *sandbox.Connections) []viz.WireStream {
	var streams []viz.WireStream
	for _, each := range connections.Wire() {
		streams = append(streams, viz.WireStream{OpenedBy: each.OpenedBy(), Bytes: each})
	}
	return streams
}

// scenarios returns the stories as the page offers them.
func scenarios() []viz.Scenario {
	var offered []viz.Scenario
	for _, each := range scenario.All {
		story := viz.Scenario{
			ID: each.ID, Title: each.Title, Symptom: each.Symptom, Watch: each.Watch, Chapter: each.Chapter, Thread: each.Thread,
			Take: takes.StoryPrefix + each.ID, Recorded: sync.OnceValues(func() ([]stories.Range, error) { return recorded(&each) }),
			Alone: each.Alone,
		}
		for _, beat := range each.Beats {
			story.Beats = append(story.Beats, stories.Beat{Say: beat.Say, Look: beat.Look, Question: (*stories.Question)(beat.Question)})
		}
		offered = append(offered, story)
	}
	return offered
}

// recorded finds the beats of a story in the recording that the program brings along.
func recorded(s *scenario.Scenario) (ranges []stories.Range, err error) {
	take, ok := takes.Find(takes.StoryPrefix + s.ID)
	if !ok {
		return nil, fmt.Errorf("the story %s has no recording", s.ID)
	}
	_, records, err := take.Load()
	if err != nil {
		return nil, err
	}
	located, err := s.Locate(records)
	for _, each := range located {
		ranges = append(ranges, stories.Range(each))
	}
	return ranges, err
}
