package sidebyside

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	clocktesting "k8s.io/utils/clock/testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/eventually"
)

// script is a storage written change by change. A watch begins with the state; only the newest watch gets changes.
type script struct {
	mu   sync.Mutex // guards the fields below
	pods map[string]*corev1.Pod
	rv   uint64
	live *scriptWatch
}

// scriptWatch is a watch of a script. Each cache has a script of its own.
type scriptWatch struct{ events chan watch.Event }

func (w *scriptWatch) ResultChan() <-chan watch.Event { return w.events }
func (w *scriptWatch) Stop()                          {}

func (s *script) open() watch.Interface {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live = &scriptWatch{make(chan watch.Event, 10000)}
	for _, key := range slices.Sorted(maps.Keys(s.pods)) {
		s.live.events <- watch.Event{Type: watch.Added, Object: s.pods[key].DeepCopy()}
	}
	end := &corev1.Pod{}
	end.ResourceVersion = strconv.FormatUint(s.rv, 10)
	end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	s.live.events <- watch.Event{Type: watch.Bookmark, Object: end}
	return s.live
}

// write adds, changes or deletes pod i. If told is false, no watch receives the change.
func (s *script) write(i int, told bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rv++
	p := pod(fmt.Sprintf("default/p%d", i), fmt.Sprintf("app=a%d node=n%d", s.rv%3, i%2))
	p.ResourceVersion = strconv.FormatUint(s.rv, 10)
	key, event := must(keyOf(p)), watch.Event{Type: watch.Added, Object: p}
	_, exists := s.pods[key]
	switch {
	case exists && s.rv%7 == 0:
		event.Type = watch.Deleted
		delete(s.pods, key)
	case exists:
		event.Type = watch.Modified
		fallthrough
	default:
		s.pods[key] = p
	}
	if told {
		event.Object = p.DeepCopy()
		s.live.events <- event
	}
}

func (s *script) version() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rv
}

// expire ends the newest watch with a 410, as a compaction does.
func (s *script) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live.events <- watch.Event{Type: watch.Error, Object: &apierrors.NewResourceExpired("compacted").ErrStatus}
	close(s.live.events)
}

// stage is a pair of caches, ours and upstream's, over equal scripts. They use one clock, which the test moves.
type stage struct {
	t      *testing.T
	clock  *clocktesting.FakeClock
	script [2]*script
	caches [2]side // ours, theirs
	listRV uint64
}

func newStage(t *testing.T) *stage {
	s := &stage{t: t, clock: clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), listRV: 100}
	for i := range s.script {
		s.script[i] = &script{rv: s.listRV, pods: map[string]*corev1.Pod{}}
	}
	one := startOurCache(t, ourSource{source: s.script[0]}, nil, s.clock)
	other := startTheirCache(t, theirSource{source: s.script[1]}, s.clock)
	s.caches = [2]side{ours{one}, theirs{other}}
	s.until("both are ready", func() bool { return one.cacher.Ready() && other.ReadinessCheck() == nil })
	return s
}

// until waits until is() returns true, and moves the clock meanwhile.
func (s *stage) until(what string, is func() bool) {
	s.t.Helper()
	eventually.Holds(s.t, what, func() bool {
		s.clock.Step(10 * time.Millisecond)
		return is()
	})
}

// play writes n changes. Before each, it moves the clock by the interval every. It waits until both caches have a
// change before it writes the next one, so that events have the same age in both.
func (s *stage) play(n int, every time.Duration) {
	s.t.Helper()
	var tails [2]*stream
	for i, cache := range s.caches {
		tails[i] = startStream(s.t.Context(), cache, query{rv: fmt.Sprint(s.script[i].version())})
	}
	for sent := range n {
		s.clock.Step(every)
		for i := range s.script {
			s.script[i].write(sent%20, true)
		}
		for _, tail := range tails {
			eventually.Holds(s.t, "the event has come", func() bool { return len(tail.sofar()) > sent })
		}
	}
	for _, tail := range tails {
		tail.stop()
	}
}

// compareStarts starts a watch at every version from one before the list to one after the newest, and compares the
// events. It returns the first version at which a watch may start.
func (s *stage) compareStarts(what string) (oldest uint64) {
	s.t.Helper()
	newest := s.script[0].version()
	var dialogues []*dialogue
	for rv := s.listRV - 1; rv <= newest+1; rv++ {
		// Events of one pod of twenty show where the watch begins.
		q := query{rv: fmt.Sprint(rv), namespace: "default", name: "p3"}
		dialogues = append(dialogues, &dialogue{
			name: fmt.Sprintf("%s, a watch from %d", what, rv), ours: startStream(s.t.Context(), s.caches[0], q),
			theirs: startStream(s.t.Context(), s.caches[1], q),
		})
	}
	settle(dialogues)
	for i, d := range dialogues {
		same(s.t, d.name, fmt.Sprint(d.ours.sofar()), fmt.Sprint(d.theirs.sofar()), "")
		if said := d.theirs.sofar(); oldest == 0 && (len(said) == 0 || said[len(said)-1] != "closed") {
			oldest = s.listRV - 1 + uint64(i)
		}
		d.ours.stop()
		d.theirs.stop()
	}
	return oldest
}

// TestTheRingRemembersAndForgetsAsTheRealOneDoes compares where watches may start, and the errors for older versions.
func TestTheRingRemembersAndForgetsAsTheRealOneDoes(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for _, phase := range []struct {
		name   string
		n      int
		every  time.Duration
		oldest uint64 // the first version at which a watch may start
	}{
		{"a full ring", 100, time.Second, 100},
		{"a ring that has gone round", 50, time.Second, 150},
		{"a ring that has grown", 110, 100 * time.Millisecond, 177},
		{"a ring that has shrunk", 70, 3 * time.Second, 330},
	} {
		s.play(phase.n, phase.every)
		assert.Equal(t, phase.oldest, s.compareStarts(phase.name), phase.name+": where a watch may begin")
	}
}

// TestARelistForgetsAsTheRealOneDoes ends the storage's watch with a 410. A cache then ends its own watches without an
// event and lists again. After that, the cache must have no history before the new list.
func TestARelistForgetsAsTheRealOneDoes(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.play(30, time.Second)
	var open []*dialogue
	for _, q := range []query{{rv: "100"}, {rv: "120", label: "app=a1"}, {rv: "130", field: "spec.nodeName=n1",
		bookmarks: true}} {
		open = append(open, &dialogue{
			name: fmt.Sprintf("open while it happens: %+v", q), ours: startStream(t.Context(), s.caches[0], q),
			theirs: startStream(t.Context(), s.caches[1], q),
		})
	}
	settle(open)
	for i := range s.script {
		for sent := range 10 {
			s.script[i].write(sent, false)
		}
		s.script[i].expire()
	}
	for _, d := range open {
		s.until(d.name, func() bool { return isClosed(d.ours.done) && isClosed(d.theirs.done) })
		same(t, d.name, fmt.Sprint(d.ours.sofar()), fmt.Sprint(d.theirs.sofar()), "closed")
	}
	for _, cache := range s.caches {
		s.until("another generation", func() bool {
			list := &corev1.PodList{}
			return cache.list(t.Context(), query{rv: "0"}, list) == nil && list.ResourceVersion == "140"
		})
	}
	oldest := s.compareStarts("after a relist")
	assert.Equal(t, 140, oldest, "watches may begin at %d, want 140", oldest)
	s.play(20, time.Second)
	oldest = s.compareStarts("some time after a relist")
	assert.Equal(t, 140, oldest, "watches may begin at %d, want 140", oldest)
	s.play(100, time.Second)
	oldest = s.compareStarts("a ring that has gone round after a relist")
	assert.Equal(t, 160, oldest, "watches may begin at %d, want 160", oldest)
	for name, q := range map[string]query{"all": {rv: "0"}, "selected": {rv: "0", label: "app=a1"},
		"at an old version": {rv: "135", match: metav1.ResourceVersionMatchNotOlderThan}} {
		same(t, "list, "+name, listAll(t.Context(), s.caches[0], q), listAll(t.Context(), s.caches[1], q),
			"page at 260")
	}
}

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
