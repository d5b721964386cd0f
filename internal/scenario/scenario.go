package scenario

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	pipeline "listwatch/chapters/15-pipeline"
	"listwatch/internal/probe"
	"listwatch/internal/sandbox"
)

// Story is one story.
type Story struct {
	ID      string `json:"id"`
	Title   string `json:"title"`
	Symptom string `json:"symptom"` // what people see at work before they know why
	Watch   string `json:"watch"`   // what to look at while it is played
	Chapter string `json:"chapter"` // folder of the chapter that explains it: "06-cacher"
	Thread  string `json:"thread"`  // upstream's discussion: "kubernetes/kubernetes#125123"; "" if there is none
	Beats   []Beat `json:"beats"`   // how it is told, four to seven
	// Alone says why the story needs a world of its own; "": it is played on the running pipeline. Others are told from their
	// recordings, which are made in such a world.
	Alone string `json:"alone,omitempty"`
	play  func(s *stagehand) (saw string, err error)
}

// All are the stories, in the order in which they are best told.
var All = []Story{
	losesNothing, watchList, threeVersions, ringWrap, slowWatcher, triggerIndex, selectorTransition, leftSelector, bookmarks, compaction,
	missedDeletion, resync, slowHandler, twoQueues, staleWrite, finalizers, notReady, serverRestart, restoredEtcd, leaderGone, failOver,
}

// Gone says that there is no story of that id, and, if it is told by another one today, by which.
func Gone(id string) string {
	return "there is no story of that name"
}

// World is what stories are played on. All fields but Machine are required.
type World struct {
	Pipeline *pipeline.Pipeline
	Sandbox  *sandbox.Sandbox
	Log      *probe.Log
	Probe    *probe.Probe
	Clock    clock.WithTicker
	Machine  Machine // nil, as in the running program: stories that need one are not played
}

// Machine is what stories do that need a world of their own. Nothing of that is undone: the world ends with the story.
type Machine interface {
	// StopServer ends the server half. Its clients are refused.
	StopServer()
	// StartServer starts another one on the same etcd, and does not wait until it is ready.
	StartServer() error
	// SlowEtcd makes each list of etcd take so long.
	SlowEtcd(each time.Duration)
	// OtherServer starts another server half on the same etcd, of which nothing is recorded, and waits until it is ready. What
	// connects while move runs is connected to it. From hang on nothing comes from it any more; end lets its connections break.
	OtherServer(move func() error) (hang, end func(), err error)
	// StopLeader lets the node of etcd that leads die. Until Elect, reads wait that must not be stale, and writes are lost.
	StopLeader()
	// Elect lets another node lead.
	Elect()
	// RestoreEtcd lets etcd be as it was at a version, for the server that is started next.
	RestoreEtcd(rv uint64)
}

// Step is one thing that was done, or one that was waited for.
type Step struct {
	Text string `json:"text"`
	Seq  uint64 `json:"seq"` // of the newest record when it was over
}

// Seen is what a story came to.
type Seen struct {
	ID     string  `json:"id"`
	From   uint64  `json:"from"` // the records of the story are (From, To]
	To     uint64  `json:"to"`
	Key    uint64  `json:"key"` // of them the one to look at
	Saw    string  `json:"saw"`
	Steps  []Step  `json:"steps"`
	Beats  []Range `json:"beats"`            // where each beat of the story stands; zero for one that is not in the records
	Untold string  `json:"untold,omitempty"` // which beats these are
}

// Play plays one story to its end, or until ctx is done; what it has changed is undone in either case, see
// [sandbox.Sandbox.Tell]. A story that needs a world of its own is not played where there is none: Untold says so. Errors: 404 for
// an unknown one, 409 while another is played, and otherwise what did not happen that should have.
func (w *World) Play(ctx context.Context, id string) (seen Seen, err error) {
	i := slices.IndexFunc(All, func(s Story) bool { return s.ID == id })
	if i < 0 {
		return Seen{}, apierrors.NewNotFound(schema.GroupResource{Resource: "scenarios"}, id)
	}
	tell := w.Sandbox.Tell
	switch alone := All[i].Alone; {
	case alone != "" && w.Machine == nil:
		now := w.Log.Last()
		return Seen{ID: id, From: now, To: now, Beats: make([]Range, len(All[i].Beats)), Untold: "The story is not played here: " + alone}, nil
	case alone != "":
		tell = tellAlone
	}
	played := make(chan Seen, 1) // sent once, by the story; room for it
	err = tell(ctx, id, func(t *sandbox.Telling) error {
		s := newStagehand(t, w, id)
		ctx, cancel := context.WithCancel(t.Ctx)
		s.ctx = ctx
		var saw string
		var err error
		if failed := tried(func() { saw, err = All[i].play(s) }); failed != nil {
			err = failed
		}
		s.putBack()
		cancel()
		s.group.Wait()
		if err == nil {
			err = s.read()
		}
		if err != nil {
			return err
		}
		told := Seen{ID: id, From: s.from, Key: s.key, Saw: saw, Steps: s.steps}
		if told.Beats, err = All[i].Locate(s.seen); err != nil {
			told.Untold = err.Error() // the run was played all the same; the recording has these beats
		}
		played <- told
		return nil
	})
	if err != nil {
		return Seen{}, fmt.Errorf("%s: %w", id, err)
	}
	seen = <-played
	seen.To = w.Log.Last()
	return seen, nil
}

// tellAlone tells a story that changes nothing that must be undone.
func tellAlone(ctx context.Context, _ string, tell func(*sandbox.Telling) error) error {
	return tell(&sandbox.Telling{Ctx: ctx, Writing: ctx})
}

// patience is how long a story waits for what must follow. A reflector that was often cut off waits 30 s, times up to 2.
const patience = 75 * time.Second
