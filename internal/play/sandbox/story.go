package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// StoryLabel is on every pod of a story; its value is the story's id.
	StoryLabel = "story"

	storyKind = "story" // of commands
	// writeGrace is how long a write of a story that is under way may go on when the story is cancelled: what was
	// written must be known before it is undone.
	writeGrace = time.Second
)

// Run is one run of a story: a long command, which turns knobs and opens watchers. Each of these is a command, too,
// and the Run remembers the state before them.
type Run struct {
	Ctx     context.Context // ends when the story is cancelled
	Writing context.Context // ends a second later: for writes

	// Set by Play, never changed.
	sandbox *Sandbox
	id      string
	play    func(*Run) error
	cancel  context.CancelFunc
	ended   chan struct{} // closed when the run is over and undone; nothing is sent

	// Owned by the command that has the machine to itself.
	before []Knob // what puts back each knob that it has turned, in the order of the first turns
}

// Play runs a story; the demo rests meanwhile, and its pods go before. The story is cancelled when ctx is done, by a
// reset, by a turned switch and by the end of the session. In every case the sandbox undoes what the story has
// changed: knobs are as before, its watchers closed, the pods with its label deleted. Play returns then, or when ctx is
// done. Errors: 409 while another story or a reset is under way, otherwise play's own, or what could not be undone.
func (s *Sandbox) Play(ctx context.Context, id string, play func(*Run) error) error {
	t := &Run{sandbox: s, id: id, play: play, ended: make(chan struct{})}
	t.Ctx, t.cancel = context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, t.cancel)
	defer stop()
	_, err := s.do(ctx, &order{do: t.do, name: "the story " + id, kind: storyKind, long: true})
	return err
}

// do is the command that runs the story.
func (t *Run) do(ctx context.Context, begun func()) error {
	if err := t.Ctx.Err(); err != nil {
		return err // the request was cancelled while it was queued
	}
	if reset := t.sandbox.alone[resetKind]; reset != nil { // its owner waits until others may begin
		return conflict(t.id, fmt.Errorf("%s is under way", reset.name))
	}
	t.sandbox.story = t
	t.sandbox.turned(Knob{Name: storyKind, Target: t.id, Value: "true"})
	defer t.sandbox.turned(Knob{Name: storyKind, Target: t.id, Value: "false"})
	begun()
	defer close(t.ended)
	stop := context.AfterFunc(ctx, t.cancel)
	defer stop()
	writing, endWriting := context.WithCancel(context.WithoutCancel(ctx))
	t.Writing = writing
	stopWriting := context.AfterFunc(t.Ctx, func() { time.AfterFunc(writeGrace, endWriting) })
	if demo := t.sandbox.demo; demo != nil {
		demo.rests.Add(1)
		defer demo.rests.Add(-1)
		_ = t.sandbox.clearDemo(t.Ctx) // in a held world they stay, and the story waits, too
	}
	err := t.play(t)
	stopWriting()
	endWriting()
	t.cancel()
	undo := &order{do: t.undo, name: "the undo of the story " + t.id, undo: true, long: true}
	_, undoErr := t.sandbox.do(context.WithoutCancel(ctx), undo)
	return errors.Join(err, undoErr)
}

// undo is the command that undoes what the story has changed.
func (t *Run) undo(ctx context.Context, begun func()) error {
	t.sandbox.watchers.remove(func(each *watcher) bool { return each.story == t })
	isBack := t.sandbox.putBack(ctx, t.before)
	begun()
	err := isBack()
	traffic := slices.Contains(t.before, Knob{Name: "traffic.rate", Value: "0"})
	return errors.Join(err, t.sandbox.deletePods(ctx, func(pod *corev1.Pod) bool {
		return pod.Labels[StoryLabel] == t.id || traffic && pod.Labels["traffic"] == "listwatch"
	}))
}

// endStory cancels the current story, if there is one. The channel is closed when it is undone.
func (s *Sandbox) endStory() (undone <-chan struct{}) {
	if s.story == nil {
		none := make(chan struct{})
		close(none)
		return none
	}
	s.story.cancel()
	return s.story.ended
}

var errCancelled = errors.New("the story is cancelled")
