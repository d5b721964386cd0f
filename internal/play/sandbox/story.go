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

// Telling is a story that is told: a long command, which turns knobs and opens watchers. Each of these is a command,
// too, and the telling remembers how things were before.
type Telling struct {
	Ctx     context.Context // ends when the story is cancelled
	Writing context.Context // ends a second later: for writes

	// Set by Tell, never changed.
	sandbox *Sandbox
	id      string
	tell    func(*Telling) error
	cancel  context.CancelFunc
	told    chan struct{} // closed when it is told and undone; nothing is sent

	// Owned by the command that has the machine to itself.
	before   []Knob         // what puts back each knob that it has turned, in the order of the first turns
	watchers []string       // that it has opened
	undone   bool           // knobs and watchers are put back, or about to be; it turns none any more
	backs    []<-chan error // what to put the knobs back has come to
}

// Tell runs a story. It is cancelled when ctx is done, by a reset, by a switch of modes and by the end of the session.
// In every case the sandbox undoes what the story has changed: knobs are as before, its watchers closed, the pods with
// its label deleted. Tell returns then, or when ctx is done. Errors: 409 while another story or a reset is under way,
// otherwise tell's own, or what could not be undone.
func (s *Sandbox) Tell(ctx context.Context, id string, tell func(*Telling) error) error {
	t := &Telling{sandbox: s, id: id, tell: tell, told: make(chan struct{})}
	t.Ctx, t.cancel = context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, t.cancel)
	defer stop()
	_, err := s.do(ctx, &order{command: t, name: "the story " + id, kind: storyKind, long: true})
	return err
}

// Do implements command.
func (t *Telling) Do(ctx context.Context, begun func()) error {
	if err := t.Ctx.Err(); err != nil {
		return err // the request went before its turn came
	}
	if reset := t.sandbox.alone[resetKind]; reset != nil {
		return conflict(t.id, fmt.Errorf("%s is under way", reset.name))
	}
	t.sandbox.story = t
	begun()
	defer close(t.told)
	stop := context.AfterFunc(ctx, t.cancel)
	defer stop()
	writing, endWriting := context.WithCancel(context.WithoutCancel(ctx))
	t.Writing = writing
	stopWriting := context.AfterFunc(t.Ctx, func() { time.AfterFunc(writeGrace, endWriting) })
	err := t.tell(t)
	stopWriting()
	endWriting()
	t.cancel()
	undo := &order{command: undoing{t}, name: "the undo of the story " + t.id, undo: true, long: true}
	_, undoErr := t.sandbox.do(context.WithoutCancel(ctx), undo)
	return errors.Join(err, undoErr)
}

// undoing is the command that undoes what a story has changed.
type undoing struct{ *Telling }

// Do implements command.
func (u undoing) Do(ctx context.Context, begun func()) error {
	u.putBack(ctx)
	begun()
	var errs []error
	for _, back := range u.backs {
		errs = append(errs, <-back)
	}
	traffic := slices.Contains(u.before, Knob{Name: "traffic.rate", Value: "0"})
	errs = append(errs, u.sandbox.deletePods(ctx, func(pod *corev1.Pod) bool {
		return pod.Labels[StoryLabel] == u.id || traffic && isTraffic(pod)
	}))
	return errors.Join(errs...)
}

// putBack closes the watchers of a story and turns its knobs back, once. It waits for nothing.
func (t *Telling) putBack(ctx context.Context) {
	if t.undone {
		return
	}
	t.undone = true
	for _, id := range t.watchers {
		_ = t.sandbox.watchers.remove(id) // another command may have removed it meanwhile
	}
	for _, knob := range slices.Backward(t.before) {
		found, err := t.sandbox.check(knob)
		if err != nil || found.undo != nil && found.undo(t.sandbox, knob) == knob {
			continue // what it was turned on is gone, or it is as before
		}
		back := make(chan error, 1) // sent once, when the knob is turned; room for it
		t.sandbox.start(ctx, turning{t.sandbox, knob, nil}, func(err error) { back <- err })
		t.backs = append(t.backs, back)
	}
}

// endStory cancels the story that is told, if there is one, and puts back at once what can be. The channel is closed
// when the rest is undone, too.
func (s *Sandbox) endStory(ctx context.Context) (undone <-chan struct{}) {
	if s.story == nil {
		none := make(chan struct{})
		close(none)
		return none
	}
	s.story.cancel()
	s.story.putBack(context.WithoutCancel(ctx))
	return s.story.told
}

// Turn turns one knob for the length of the story.
func (t *Telling) Turn(knob Knob) error {
	_, err := t.sandbox.do(t.Ctx, orderOf(turning{t.sandbox, knob, t}))
	return err
}

var errCancelled = errors.New("the story is cancelled")

func (t *Telling) cancelled() bool { return t.undone || t.Ctx.Err() != nil }

// remember notes how a knob is before it is turned for the first time.
func (t *Telling) remember(found *row, knob Knob) error {
	if t.cancelled() {
		return errCancelled
	}
	if found.undo == nil {
		return nil
	}
	back := found.undo(t.sandbox, knob)
	same := func(k Knob) bool { return k.Name == back.Name && k.Target == back.Target }
	if !slices.ContainsFunc(t.before, same) {
		t.before = append(t.before, back)
	}
	return nil
}

// AddWatcher opens a watcher of the page for the length of the story, and returns what it calls itself.
func (t *Telling) AddWatcher(options WatcherOptions) (agent string, err error) {
	open := &opening{Sandbox: t.sandbox, options: options, story: t}
	if _, err := t.sandbox.do(t.Ctx, &order{command: open, name: "a watcher"}); err != nil {
		return "", err
	}
	return userAgent + "-" + open.id, nil
}
