// Package handlertest has handlers for the tests of what calls them: one that writes down its calls, and one that
// believes what it is told.
package handlertest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	storage "listwatch/chapters/01-storage"
	deltafifo "listwatch/chapters/10-deltafifo"
)

// Name returns the name of a pod, or of the pod of a tombstone.
func Name(obj any) string {
	key, _ := deltafifo.DeletionHandlingMetaNamespaceKeyFunc(obj)
	return strings.TrimPrefix(key, "default/")
}

// Recorder writes down its calls: "+a@1*" for an add in the initial list, "+a@1", "~a@1>2", "-a@3", and "-a@1?" for a
// deletion that no watch saw.
type Recorder struct {
	Block chan struct{} // if not nil, every call waits for a value or the end
	Delay time.Duration // of every call

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

// OnAdd writes down an add.
func (r *Recorder) OnAdd(obj any, isInInitialList bool) {
	initial := ""
	if isInInitialList {
		initial = "*"
	}
	r.record("+%s@%d%s", Name(obj), deltafifo.VersionOf(obj), initial)
}

// OnUpdate writes down an update.
func (r *Recorder) OnUpdate(old, obj any) {
	r.record("~%s@%d>%d", Name(old), deltafifo.VersionOf(old), deltafifo.VersionOf(obj))
}

// OnDelete writes down a deletion.
func (r *Recorder) OnDelete(obj any) {
	unseen := ""
	if _, ok := obj.(deltafifo.DeletedFinalStateUnknown); ok {
		unseen = "?"
	}
	r.record("-%s@%d%s", Name(obj), deltafifo.VersionOf(obj), unseen)
}

// Calls returns the calls.
func (r *Recorder) Calls() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

// Take returns the calls, and forgets them.
func (r *Recorder) Take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls := r.calls
	r.calls = nil
	return calls
}

// Follower believes what it is told, and notes what cannot be: news that do not begin where it was, a step back, a pod
// that it should not see, a deletion of what is not there.
type Follower struct {
	Delay time.Duration          // of every call
	Wants func(*corev1.Pod) bool // nil: every pod

	mu      sync.Mutex        // guards the fields below
	told    map[string]string // key to resource version
	changes int               // calls that brought something new
	wrong   []string
}

// Read returns what the handler knows, how often it was told something new, and what cannot be.
func (f *Follower) Read() (told map[string]string, changes int, wrong []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.told), f.changes, slices.Clone(f.wrong)
}

func (f *Follower) mustLocked(holds bool, what, key string) {
	if !holds && len(f.wrong) < 5 {
		f.wrong = append(f.wrong, what+" "+key)
	}
}

// OnAdd believes an add.
func (f *Follower) OnAdd(obj any, _ bool) { f.see("", obj) }

// OnUpdate believes an update.
func (f *Follower) OnUpdate(old, obj any) { f.see(old.(*corev1.Pod).ResourceVersion, obj) }

func (f *Follower) see(before string, obj any) {
	time.Sleep(f.Delay)
	f.mu.Lock()
	defer f.mu.Unlock()
	pod := obj.(*corev1.Pod)
	key := "default/" + pod.Name
	f.mustLocked(f.told[key] == before, "news that begin elsewhere, at "+before+", of", key)
	f.mustLocked(storage.ProbeVersion(before) <= storage.VersionOf(pod), "a step back of", key)
	f.mustLocked(f.Wants == nil || f.Wants(pod), "news that are none of its business, of", key)
	if f.told == nil {
		f.told = map[string]string{}
	}
	f.told[key] = pod.ResourceVersion
	if before != pod.ResourceVersion {
		f.changes++
	}
}

// OnDelete believes a deletion.
func (f *Follower) OnDelete(obj any) {
	time.Sleep(f.Delay)
	f.mu.Lock()
	defer f.mu.Unlock()
	key := "default/" + Name(obj)
	f.mustLocked(f.told[key] != "", "a deletion of what is not there:", key)
	delete(f.told, key)
}
