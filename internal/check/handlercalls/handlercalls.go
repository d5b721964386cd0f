// Package handlercalls has an event handler for tests, which records its calls.
package handlercalls

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	deltafifo "listwatch/chapters/10-deltafifo"
)

// Name returns the name of a pod, or of a tombstone's pod.
func Name(obj any) string {
	key, _ := deltafifo.DeletionHandlingMetaNamespaceKeyFunc(obj)
	return strings.TrimPrefix(key, "default/")
}

// Recorder records its calls: "+a@1*" for an add in the initial list, "+a@1", "~a@1>2", "-a@3", and "-a@1?" for a
// deletion that no watch saw.
type Recorder struct {
	Block chan struct{} // if not nil, every call first receives from it
	Delay time.Duration // the pause before each call is recorded

	mu    sync.Mutex // guards calls
	calls []string
}

func (r *Recorder) record(format string, args ...any) {
	if r.Block != nil {
		<-r.Block
	}
	time.Sleep(r.Delay)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, fmt.Sprintf(format, args...))
}

// OnAdd records an add.
func (r *Recorder) OnAdd(obj any, isInInitialList bool) {
	initial := ""
	if isInInitialList {
		initial = "*"
	}
	r.record("+%s@%d%s", Name(obj), deltafifo.VersionOf(obj), initial)
}

// OnUpdate records an update.
func (r *Recorder) OnUpdate(old, obj any) {
	r.record("~%s@%d>%d", Name(old), deltafifo.VersionOf(old), deltafifo.VersionOf(obj))
}

// OnDelete records a deletion.
func (r *Recorder) OnDelete(obj any) {
	unseen := ""
	if _, ok := obj.(deltafifo.DeletedFinalStateUnknown); ok {
		unseen = "?"
	}
	r.record("-%s@%d%s", Name(obj), deltafifo.VersionOf(obj), unseen)
}

// Calls returns the recorded calls.
func (r *Recorder) Calls() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

// Take returns the recorded calls and forgets them.
func (r *Recorder) Take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls := r.calls
	r.calls = nil
	return calls
}
