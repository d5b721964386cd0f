package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	storage "listwatch/chapters/01-storage"
	watchcache "listwatch/chapters/04-watchcache"
)

const (
	resetKind = "reset"         // the kind of commands that reset
	deleters  = 16              // concurrent deletions of pods
	etcdTime  = 5 * time.Second // limit for one read or write, if etcd does not answer
)

// Reset returns the sandbox to its first state: every knob as it was, the switches of the command line, and no story,
// watcher, pod or added handler. A removed handler stays removed. The log keeps its records and etcd's revisions keep
// increasing: watchers see a reset like any other change. An error is an apierrors.APIStatus.
func (s *Sandbox) Reset(ctx context.Context) (Receipt, error) {
	return s.do(ctx, &order{do: s.reset, name: "the reset", kind: resetKind})
}

// reset is the command for Reset. It begins to restore the knobs at once, and deletes the pods only after begun.
func (s *Sandbox) reset(ctx context.Context, begun func()) error {
	s.turned(Knob{Name: "everything", Value: "where it was"})
	undone := s.endStory()
	s.removeWatchers()
	isBack := s.putBack(ctx, s.before)
	s.before = nil
	begun()
	<-undone
	err := errors.Join(isBack(), s.deletePods(ctx, func(*corev1.Pod) bool { return true }))
	s.shrinkRings()
	return errors.Join(err, s.restoreSwitches())
}

// shrinkRings returns every dynamic ring to its first size. Otherwise a grown ring might not shrink for hours.
func (s *Sandbox) shrinkRings() {
	for _, each := range s.config.Pipeline.Server.Cachers() {
		if _, fixed := each.RingCapacity(); fixed == s.config.RingCapacity {
			each.SetRingCapacity(cmp.Or(s.config.RingCapacity, watchcache.InitialCapacity))
			each.SetRingCapacity(s.config.RingCapacity)
		}
	}
}

func (s *Sandbox) restoreSwitches() error {
	if s.config.Switcher == nil {
		return nil
	}
	again, err := s.config.Switcher.Restore()
	if err != nil || again == nil {
		return err
	}
	return again()
}

// listPods returns every pod by a consistent read, so the cache has caught up with all earlier writes. If a cache is
// filling again, as after a restart of etcd, listPods waits for it. It takes at most etcdTime.
func (s *Sandbox) listPods(ctx context.Context) (list corev1.PodList, err error) {
	ctx, cancel := context.WithTimeout(ctx, etcdTime)
	defer cancel()
	if err := s.config.Pipeline.Server.WaitReady(ctx); err != nil {
		return list, err
	}
	everything := storage.ListOptions{Recursive: true, Predicate: storage.Everything}
	err = s.pods().GetList(ctx, "/registry/pods/", everything, &list)
	return list, err
}

func (s *Sandbox) pods() storage.Interface { return s.config.Pipeline.Server.Storage("pods") }

// deletePods waits for the traffic's batch, and then deletes the wanted pods at the storage, without a grace period. It
// returns after the cache has seen the deletions, or after the first error.
func (s *Sandbox) deletePods(ctx context.Context, wanted func(*corev1.Pod) bool) error {
	if err := s.traffic.settle(ctx); err != nil {
		return err
	}
	list, err := s.listPods(ctx)
	if err != nil {
		return err
	}
	group, deleting := errgroup.WithContext(ctx)
	group.SetLimit(deleters)
	for i := range list.Items {
		if pod := &list.Items[i]; wanted(pod) {
			group.Go(func() error { return s.deletePod(deleting, storageKey(pod)) })
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	_, err = s.listPods(ctx)
	return err
}

// deletePod deletes one pod. A missing pod is not an error.
func (s *Sandbox) deletePod(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, etcdTime)
	defer cancel()
	err := s.pods().Delete(ctx, key, &corev1.Pod{}, nil, nil)
	if storage.IsNotFound(err) {
		return nil
	}
	return err
}

// storageKey returns a pod's key in etcd.
func storageKey(pod metav1.Object) string {
	return "/registry/pods/" + pod.GetNamespace() + "/" + pod.GetName()
}

const (
	// StoryLabel is a label on every pod of a story. Its value is the story's id. scenario/beats.go and storyview.js
	// repeat the text "story".
	StoryLabel = "story"

	storyKind = "story" // the kind of a story's command, and the name in its KnobTurned records
	// writeGrace is the time in which a cancelled story's last write must end. The sandbox can undo a write only after
	// the write is over.
	writeGrace = time.Second
)

// Run is one run of a story: a long command, which turns knobs and opens watchers by further commands. It keeps the
// earlier states of these knobs, for the undo.
type Run struct {
	Ctx     context.Context // ends when the story is cancelled, and when it is over
	Writing context.Context // for writes; ends writeGrace after a cancelled Ctx, or when the story is over

	// Set by Play, never changed.
	sandbox *Sandbox
	id      string
	play    func(*Run) error
	cancel  context.CancelFunc
	ended   chan struct{} // closed when the run is over and undone; nothing is sent

	// Owned by the command that has the machine to itself. It does not change once undo begins.
	before []Knob // the knobs that restore the states before the story, in the order of the first turns
}

// Play runs a story, after it has deleted the demo's pods; the demo rests meanwhile. The story is cancelled by the end
// of ctx or of the session, a reset, or a turned switch. In every case the sandbox undoes the story's changes: it turns
// the knobs back, closes the story's watchers, and deletes the pods with its label and, if it began traffic, the
// traffic's pods. Play returns after that, or when ctx is done. Errors: 409 while another story or a reset is under
// way; otherwise play's or the undo's, as a 503 if they have no status.
func (s *Sandbox) Play(ctx context.Context, id string, play func(*Run) error) error {
	t := &Run{sandbox: s, id: id, play: play, ended: make(chan struct{})}
	t.Ctx, t.cancel = context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, t.cancel)
	defer stop()
	_, err := s.do(ctx, &order{do: t.do, name: "the story " + id, kind: storyKind, long: true})
	return err
}

// do is the command that runs the story and undoes its changes. It writes the beginning and the end to the log.
func (t *Run) do(ctx context.Context, begun func()) error {
	if err := t.Ctx.Err(); err != nil {
		return err // the request was cancelled in the queue
	}
	if reset := t.sandbox.alone[resetKind]; reset != nil { // no race: Run starts no command until this one calls begun
		return conflict(t.id, fmt.Errorf("%s is under way", reset.name))
	}
	t.sandbox.story = t
	t.sandbox.turned(Knob{Name: storyKind, Target: t.id, Value: "true"})
	defer t.sandbox.turned(Knob{Name: storyKind, Target: t.id, Value: "false"}) // recording/flight.go reads it
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
		_ = t.sandbox.clearDemo(t.Ctx) // in a held world it fails and the pods remain; the story's writes wait, too
	}
	err := t.play(t)
	stopWriting()
	endWriting()
	t.cancel()
	undo := &order{do: t.undo, name: "the undo of the story " + t.id, undo: true, long: true}
	_, undoErr := t.sandbox.do(context.WithoutCancel(ctx), undo)
	return errors.Join(err, undoErr)
}

// undo is the command that undoes the story's changes.
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

// endStory cancels the current story. The channel is closed when the story is undone, or at once if there is none.
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
