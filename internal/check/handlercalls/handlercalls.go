// Package handlercalls provides an event handler that records its calls, for tests.
package handlercalls

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	deltafifo "listwatch/chapters/10-deltafifo"
)

// Name returns the name of a pod or of a tombstone's pod. Outside the namespace default, it returns "namespace/name".
func Name(obj any) string {
	key, _ := deltafifo.DeletionHandlingMetaNamespaceKeyFunc(obj)
	return strings.TrimPrefix(key, "default/")
}

// Recorder records its calls: "+a@1" for an add, "+a@1*" for an add in the initial list, "~a@1>2" for an update, "-a@3"
// for a deletion, and "-a@1?" for a deletion that no watch saw.
type Recorder struct {
	Block chan struct{} // if not nil, every call first receives from it
	Delay time.Duration // the pause before the recording of each call

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

// OnAdd records "+a@1", or "+a@1*" for an object of the initial list.
func (r *Recorder) OnAdd(obj any, isInInitialList bool) {
	initial := ""
	if isInInitialList {
		initial = "*"
	}
	r.record("+%s@%d%s", Name(obj), deltafifo.VersionOf(obj), initial)
}

// OnUpdate records "~a@1>2", with the old and the new version.
func (r *Recorder) OnUpdate(old, obj any) {
	r.record("~%s@%d>%d", Name(old), deltafifo.VersionOf(old), deltafifo.VersionOf(obj))
}

// OnDelete records "-a@3", or "-a@1?" for a tombstone, with the last known version.
func (r *Recorder) OnDelete(obj any) {
	unseen := ""
	if _, ok := obj.(deltafifo.DeletedFinalStateUnknown); ok {
		unseen = "?"
	}
	r.record("-%s@%d%s", Name(obj), deltafifo.VersionOf(obj), unseen)
}

// Calls returns a copy of the calls recorded since the last Take.
func (r *Recorder) Calls() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

// Take returns the calls recorded since the last Take, and empties the recorder.
func (r *Recorder) Take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls := r.calls
	r.calls = nil
	return calls
}
