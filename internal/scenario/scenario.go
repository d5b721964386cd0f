package scenario

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	pipeline "listwatch/chapters/15-pipeline"
	"listwatch/internal/probe"
)

// Scenario is one story.
type Scenario struct {
	ID      string
	Title   string
	Symptom string // what people see at work before they know why
	Watch   string // what to look at while it is played
	Chapter string // folder of the chapter that explains it
	Thread  string // upstream's discussion; "" if there is none
	play    func(s *stagehand) (saw string, err error)
}

// All are the stories, in the order in which they are best told.
var All = []Scenario{
	losesNothing, threeVersions, ringWrap, slowWatcher, triggerIndex, selectorTransition, bookmarks, compaction,
	missedDeletion, resync, slowHandler, twoQueues,
}

// World is what stories are played on. All fields are required.
type World struct {
	Pipeline *pipeline.Pipeline
	Log      *probe.Log
	Probe    *probe.Probe
	Clock    clock.WithTicker

	playing sync.Mutex // held while a story is played
}

// Step is one thing that was done, or one that was waited for.
type Step struct {
	Text string `json:"text"`
	Seq  uint64 `json:"seq"` // of the newest record when it was over
}

// Seen is what a story came to.
type Seen struct {
	ID    string `json:"id"`
	From  uint64 `json:"from"` // the records of the story are (From, To]
	To    uint64 `json:"to"`
	Key   uint64 `json:"key"` // of them the one to look at
	Saw   string `json:"saw"`
	Steps []Step `json:"steps"`
}

// Play plays one story to its end. Errors: 404 for an unknown one, 409 while another is played, and otherwise what did not
// happen that should have.
func (w *World) Play(ctx context.Context, id string) (Seen, error) {
	i := slices.IndexFunc(All, func(s Scenario) bool { return s.ID == id })
	if i < 0 {
		return Seen{}, apierrors.NewNotFound(schema.GroupResource{Resource: "scenarios"}, id)
	}
	if !w.playing.TryLock() {
		return Seen{}, apierrors.NewConflict(schema.GroupResource{Resource: "scenarios"}, id, fmt.Errorf("another story is played"))
	}
	defer w.playing.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	s := newStagehand(ctx, w, id)
	saw, err := All[i].play(s)
	s.strike() // with a context that is still good
	cancel()
	s.group.Wait()
	if err != nil {
		return Seen{}, fmt.Errorf("%s: %w", id, err)
	}
	return Seen{ID: id, From: s.from, To: w.Log.Last(), Key: s.key, Saw: saw, Steps: s.steps}, nil
}

// patience is how long a story waits for what must follow: longer than the longest wait of a reflector that was often cut off.
const patience = 45 * time.Second
