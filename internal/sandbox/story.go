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
	// writeGrace is how long a write of a story that is under way may go on when the story is cancelled: what was written
	// must be known before it is undone.
	writeGrace = time.Second
)

// Story is a long command that is told step by step. Each knob that it turns is turned by the sandbox's goroutine, which
// remembers how it stood.
type Story struct {
	// Set by Tell, never changed.
	sandbox *Sandbox
	id      string
	cancel  context.CancelFunc
	told    chan struct{} // closed when it is told and undone; nothing is sent

	// Owned by the sandbox's goroutine.
	before   []Knob   // what puts back each knob that it has turned, in the order of the first turns
	watchers []string // that it has opened
	undone   bool     // knobs and watchers are put back; none is turned any more
}

// Telling is what a story is told with.
type Telling struct {
	*Story
	Ctx     context.Context // ends when the story is cancelled
	Writing context.Context // ends a second later: for writes
}

// Tell runs a story. It is cancelled when ctx is done, by a reset, by a switch of modes and by the end of the session. In
// every case what it has changed is undone when it is over: knobs stand as before, its watchers are closed, the pods
// with its label are deleted. Tell returns then, or when ctx is done. Errors: 409 while another story or a reset is
// under way, otherwise tell's own, or what could not be undone.
func (s *Sandbox) Tell(ctx context.Context, id string, tell func(Telling) error) error {
	story := &Story{sandbox: s, id: id, told: make(chan struct{})}
	telling := Telling{Story: story}
	telling.Ctx, story.cancel = context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, story.cancel)
	defer stop()
	return s.do(ctx, &command{what: "the story " + id, kind: storyKind, long: true, begin: func(context.Context) (func(context.Context) error, error) {
		if telling.Ctx.Err() != nil {
			return nil, telling.Ctx.Err() // the request went before its turn came
		}
		if reset := s.alone[resetKind]; reset != nil {
			return nil, conflict(id, fmt.Errorf("%s is under way", reset.what))
		}
		s.story = story
		return func(ctx context.Context) error { return s.tell(ctx, telling, tell) }, nil
	}})
}

// tell tells a story and undoes what it has changed.
func (s *Sandbox) tell(ctx context.Context, telling Telling, tell func(Telling) error) error {
	defer close(telling.told)
	stop := context.AfterFunc(ctx, telling.cancel)
	defer stop()
	writing, endWriting := context.WithCancel(context.WithoutCancel(ctx))
	telling.Writing = writing
	stopWriting := context.AfterFunc(telling.Ctx, func() { time.AfterFunc(writeGrace, endWriting) })
	err := tell(telling)
	stopWriting()
	endWriting()
	telling.cancel()
	undo := &command{what: "the undo of the story " + telling.id, undo: true, long: true, begin: func(context.Context) (func(context.Context) error, error) {
		return s.undo(telling.Story), nil
	}}
	return errors.Join(err, s.do(context.WithoutCancel(ctx), undo))
}

// undo puts back what a story has changed, and returns what of that takes time. It is called by the sandbox's
// goroutine.
func (s *Sandbox) undo(story *Story) func(context.Context) error {
	rests := s.putBack(story)
	return func(ctx context.Context) error {
		var errs []error
		for _, rest := range rests {
			errs = append(errs, rest(ctx))
		}
		return errors.Join(append(errs, s.deletePods(ctx, func(pod *corev1.Pod) bool { return pod.Labels[StoryLabel] == story.id }))...)
	}
}

// putBack turns the knobs of a story back and closes its watchers, once. What takes time is returned.
func (s *Sandbox) putBack(story *Story) (rests []func(context.Context) error) {
	if story.undone {
		return nil
	}
	story.undone = true
	for _, id := range story.watchers {
		_ = s.watchers.remove(id) // another command may have removed it meanwhile
	}
	for _, knob := range slices.Backward(story.before) {
		if knob.Name == "traffic.rate" && knob.Value == "0" {
			rests = append(rests, func(ctx context.Context) error { return s.deletePods(ctx, isTraffic) })
		}
		if now, ok := s.standing(knob); ok && now == knob {
			continue
		}
		turning, err := s.plan(knob)
		if err != nil {
			continue // what it was turned on is gone: a handler that was removed meanwhile
		}
		s.turned(knob.String())
		if rest := turning.begin(); rest != nil {
			rests = append(rests, rest)
		}
	}
	return rests
}

// endStory cancels the story that is told, if there is one, and puts back at once what can be. The returned function
// waits until the rest is undone. It is called by the sandbox's goroutine.
func (s *Sandbox) endStory() (rests []func(context.Context) error) {
	story := s.story
	if story == nil {
		return nil
	}
	story.cancel()
	return append(s.putBack(story), func(context.Context) error { <-story.told; return nil })
}

// Turn turns one knob for the length of the story.
func (t Telling) Turn(knob Knob) error {
	s := t.sandbox
	return s.do(t.Ctx, s.turningOf(knob, func() error {
		if t.undone || t.Ctx.Err() != nil {
			return errCancelled
		}
		t.remember(knob)
		return nil
	}))
}

var errCancelled = errors.New("the story is cancelled")

// remember notes how a knob stands before it is turned for the first time.
func (t Telling) remember(knob Knob) {
	before, ok := t.sandbox.standing(knob)
	same := func(other Knob) bool { return other.is(before) }
	if ok && !slices.ContainsFunc(t.before, same) {
		t.Story.before = append(t.Story.before, before)
	}
}

// AddWatcher opens a watcher of the page for the length of the story, and returns what it calls itself.
func (t Telling) AddWatcher(options WatcherOptions) (userAgent string, err error) {
	var added *watcher
	c := t.sandbox.opening(options, &added)
	begin := c.begin
	c.begin = func(ctx context.Context) (func(context.Context) error, error) {
		if t.undone || t.Ctx.Err() != nil {
			return nil, errCancelled
		}
		rest, err := begin(ctx)
		if err == nil {
			t.Story.watchers = append(t.Story.watchers, added.id)
		}
		return rest, err
	}
	if err := t.sandbox.do(t.Ctx, c); err != nil {
		return "", err
	}
	return added.userAgent, nil
}

// Seen returns what a handler was told last, oldest first: "DELETED default/a", with "?" behind if it was inferred.
func (t Telling) Seen(handler string) []string { return t.sandbox.handlers.seen(handler) }

// Rings returns how the history rings stand.
func (t Telling) Rings() []RingInfo { return t.sandbox.Knobs().Rings }
