package cachewatcher

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	goruntime "runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	storage "listwatch/chapters/01-storage"
	watchcache "listwatch/chapters/04-watchcache"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/probetest"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/routine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const prefix = "/registry/pods/"

// owner stands in for the Cacher: it stops the watcher under a lock, at once or at the end of a dispatch.
type owner struct {
	mu          sync.Mutex
	watcher     *CacheWatcher
	dispatching bool
	forgets     []bool // the drain argument of each call
}

func (o *owner) Forget(drain bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.forgets = append(o.forgets, drain)
	o.watcher.SetDrainLocked(drain)
	if !o.dispatching {
		o.watcher.StopLocked()
	}
}

// finishDispatching does what the Cacher does at the end of a dispatch during which the watcher was stopped.
func (o *owner) finishDispatching() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dispatching = false
	o.watcher.StopLocked()
}

// first returns the drain argument of the first call.
func (o *owner) first() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return fmt.Sprint(o.forgets[0])
}

// bench is a cache, one watcher of it, and both ends in the hands of the test.
type bench struct {
	t     *testing.T
	cache *watchcache.WatchCache
	*CacheWatcher
	owner  *owner
	handle func(*watchcache.Event) // what the cache does with an event
}

type options struct {
	size     int
	key      string
	label    string
	deadline time.Duration // from now
	rv       uint64        // requested
	initial  *bool
	end      bool   // prepare an end bookmark
	after    uint64 // BookmarkAfterResourceVersion
	capacity int
}

// start registers a watcher over a cache that was listed at 5 with default/a and default/b, and runs it.
func start(t *testing.T, o options) *bench {
	t.Helper()
	b := &bench{t: t, owner: &owner{}, handle: func(*watchcache.Event) {}}
	b.cache = watchcache.New(watchcache.Config{
		KeyFunc: func(obj any) (string, error) {
			p := obj.(*corev1.Pod)
			return prefix + p.Namespace + "/" + p.Name, nil
		},
		GetAttrs:     storage.DefaultNamespaceScopedAttr,
		EventHandler: func(e *watchcache.Event) { b.handle(e) },
		Clock:        clock.RealClock{},
		RingCapacity: max(o.capacity, 10),
	})
	require.NoError(t, b.cache.Replace([]any{pod("default/a", 3), pod("default/b", 4)}, "5"))
	if o.key == "" {
		o.key = prefix
	}
	label := require.Value(labels.Parse(o.label))(t)
	config := Config{ChanSize: max(o.size, 1), Filter: Filter{Key: o.key, Predicate: storage.SelectionPredicate{
		Label: label, Field: fields.Everything()}}}
	if o.deadline != 0 {
		config.Deadline = time.Now().Add(o.deadline)
	}
	b.CacheWatcher = New(config)
	b.owner.watcher = b.CacheWatcher

	interval := begin(t, b.cache, o.rv, o.initial)
	if o.end {
		interval.EndBookmark = bookmark(5)
	}
	b.RegisterLocked(Registration{ID: "w1", Probe: probetest.Probe(t, "w1"), Forgetter: b.owner, Interval: interval,
		ResourceVersion: o.rv, BookmarkAfterResourceVersion: o.after})
	return b
}

// run starts the watcher's goroutine.
func (b *bench) run() *bench {
	new(routine.Group).Go(b.t.Context(), "cacheWatcher.processInterval", b.ProcessInterval)
	return b
}

func pod(id string, rv uint64, ls ...string) *corev1.Pod {
	namespace, name, _ := strings.Cut(id, "/")
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name,
		ResourceVersion: strconv.FormatUint(rv, 10)}}
	for _, l := range ls {
		k, v, _ := strings.Cut(l, "=")
		metav1.SetMetaDataLabel(&p.ObjectMeta, k, v)
	}
	return p
}

// event returns a change from previous to current; for a deletion current is what the storage sent along.
func event(typ watch.EventType, rv uint64, previous, current *corev1.Pod) *watchcache.Event {
	e := &watchcache.Event{Type: typ, ResourceVersion: rv, Object: current, ObjLabels: current.Labels, Key: prefix +
		current.Namespace + "/" + current.Name}
	if previous != nil {
		e.PrevObject, e.PrevObjLabels = previous, previous.Labels
	}
	return e
}

func added(id string, rv uint64) *watchcache.Event { return event(watch.Added, rv, nil, pod(id, rv)) }

func bookmark(rv uint64) *watchcache.Event {
	obj := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.FormatUint(rv, 10)}}
	return &watchcache.Event{Type: watch.Bookmark, ResourceVersion: rv, Object: obj}
}

// seen reads until every goroutine waits.
func (b *bench) seen() string { return strings.Join(bubble.Drain(b.ResultChan(), describe), ", ") }

func describe(event watch.Event) string {
	p := event.Object.(*corev1.Pod)
	if event.Type != watch.Bookmark {
		return fmt.Sprintf("%s %s %s", event.Type, p.Name, p.ResourceVersion)
	}
	if p.Annotations[metav1.InitialEventsAnnotationKey] == "true" {
		return "END " + p.ResourceVersion
	}
	return "BOOKMARK " + p.ResourceVersion
}

func (b *bench) is(what, got, want string) {
	b.t.Helper()
	assert.Equal(b.t, want, got, "%s:\n got %s\nwant %s", what, got, want)
}

func (b *bench) add(events ...*watchcache.Event) {
	b.t.Helper()
	for _, e := range events {
		require.True(b.t, b.NonblockingAdd(e), "no room for %s %d", e.Type, e.ResourceVersion)
		synctest.Wait()
	}
}

func TestTheTypeOfAnEventFollowsFromTheTwoMatchesAlone(t *testing.T) {
	in, out := []string{"app=x"}, []string{"app=y"}
	old := func(ls []string) *corev1.Pod { return pod("default/c", 6, ls...) }
	for _, c := range []struct {
		name  string
		event *watchcache.Event
		want  string
	}{
		{"created, matching", event(watch.Added, 9, nil, pod("default/c", 9, in...)), "ADDED c 9"},
		{"created, not matching", event(watch.Added, 9, nil, pod("default/c", 9, out...)), ""},
		{"in, in", event(watch.Modified, 9, old(in), pod("default/c", 9, in...)), "MODIFIED c 9"},
		{"out, in", event(watch.Modified, 9, old(out), pod("default/c", 9, in...)), "ADDED c 9"},
		{"in, out", event(watch.Modified, 9, old(in), pod("default/c", 9, out...)), "DELETED c 9"},
		{"out, out", event(watch.Modified, 9, old(out), pod("default/c", 9, out...)), ""},
		{"called ADDED, but it was there", event(watch.Added, 9, old(in), pod("default/c", 9, in...)), "MODIFIED c 9"},
		{"called MODIFIED, but it was not there", event(watch.Modified, 9, nil, pod("default/c", 9, in...)),
			"ADDED c 9"},
		{"deleted while in", event(watch.Deleted, 9, pod("default/c", 9, in...), pod("default/c", 9, in...)),
			"DELETED c 9"},
		{"deleted while out", event(watch.Deleted, 9, pod("default/c", 9, out...), pod("default/c", 9, out...)), ""},
		{"deleted, never seen", event(watch.Deleted, 9, nil, pod("default/c", 9, in...)), ""},
		{"deleted, the storage's copy matches, ours did not", event(watch.Deleted, 9, pod("default/c", 9, out...),
			pod("default/c", 9, in...)), ""},
	} {
		bubble.Run(t, c.name, func(t *testing.T) {
			b := start(t, options{rv: 5, label: "app=x"}).run()
			b.add(c.event)
			b.is("seen", cmp.Or(b.seen(), "nothing"), cmp.Or(c.want, "nothing"))
			b.Stop()
		})
	}
}

func TestAnObjectThatStopsMatchingIsSentAsItWasAndNobodyElsesCopyChanges(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		b := start(t, options{rv: 5, label: "app=x"}).run()
		previous := pod("default/c", 6, "app=x")
		b.add(event(watch.Modified, 9, previous, pod("default/c", 9, "app=y")))
		sent := <-b.ResultChan()
		b.is("label", sent.Object.(*corev1.Pod).Labels["app"], "x")
		b.is("sent", sent.Object.(*corev1.Pod).ResourceVersion, "9")
		b.is("shared", previous.ResourceVersion, "6")
		b.Stop()
	})
}

func TestAnEventThatIsInTheIntervalAndInInputIsSentOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		b := start(t, options{rv: 5, size: 5})
		// still on its way when the watcher is registered
		b.handle = func(e *watchcache.Event) { b.NonblockingAdd(e) }
		for rv := uint64(6); rv < 9; rv++ {
			require.NoError(t, b.cache.Add(pod("default/"+string(rune('a'+rv)), rv)))
		}
		b.interval, b.floor = begin(t, b.cache, 6, nil), 6
		b.run()
		b.is("seen", b.seen(), "ADDED h 7, ADDED i 8")
		b.add(added("default/z", 9))
		b.is("then", b.seen(), "ADDED z 9")
		b.Stop()
	})
}

func TestTheEndOfTheContextEndsTheWatch(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		b := start(t, options{rv: 5, size: 1})
		ctx, cancel := context.WithCancel(t.Context())
		new(routine.Group).Go(ctx, "cacheWatcher.processInterval", b.ProcessInterval)
		b.add(added("default/c", 6), added("default/d", 7)) // the second does not fit into result
		cancel()
		b.is("seen", b.seen(), "ADDED c 6, closed")
	})
}

// TestWhatIsDeliveredIsAPrefix stops a watcher with ninety events ahead of it while its client reads.
func TestWhatIsDeliveredIsAPrefix(t *testing.T) {
	for range 500 {
		bubble.Test(t, func(t *testing.T) {
			b := start(t, options{rv: 5, initial: new(false), size: 4, capacity: 150})
			for rv := uint64(6); rv < 96; rv++ {
				require.NoError(t, b.cache.Update(pod("default/a", rv)))
			}
			b.interval = begin(t, b.cache, 5, new(false))
			b.run()
			for rv := uint64(96); b.NonblockingAdd(added("default/c", rv)); rv++ {
				synctest.Wait() // until result, the watcher's hand and input are full
			}
			stopAt := uint64(6 + rand.IntN(90))
			next := uint64(6)
			for event := range b.ResultChan() {
				if next == stopAt {
					bubble.Go(t, "test.stop", func(context.Context) { b.Stop() })
				}
				for range rand.IntN(4) {
					goruntime.Gosched() // so that result is full now and then
				}
				require.Equal(t, strconv.FormatUint(next, 10), event.Object.(*corev1.Pod).ResourceVersion)
				next++
			}
		})
	}
}

func begin(t *testing.T, c *watchcache.WatchCache, rv uint64, initial *bool) (begun *watchcache.Interval) {
	t.Helper()
	opts := storage.ListOptions{Recursive: true, SendInitialEvents: initial}
	require.NoError(t, c.BeginWatch(rv, prefix, opts, func(interval *watchcache.Interval,
		_ uint64) {
		begun = interval
	}))
	return begun
}

func TestAWatcherWhoseIntervalIsOvertakenEndsWithoutAWord(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		b := start(t, options{rv: 5, initial: new(false), size: 1, capacity: 150})
		for rv := uint64(6); rv < 156; rv++ {
			require.NoError(t, b.cache.Update(pod("default/a", rv)))
		}
		b.interval = begin(t, b.cache, 5, nil)
		b.run()
		synctest.Wait() // blocked on result with the second event; a batch of 100 is copied
		for rv := uint64(156); rv < 400; rv++ {
			require.NoError(t, b.cache.Update(pod("default/a", rv)))
		}
		seen := strings.Split(b.seen(), ", ")
		b.is("events", strconv.Itoa(len(seen)), "101")
		b.is("the last", seen[100], "closed")
		b.is("before", seen[99], "MODIFIED a 105")
	})
}

func TestBucketsAreEmptiedWhenTheirTimeHasCome(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		buckets := NewBookmarkTimeBuckets(clock.RealClock{})
		for range 50 {
			w := New(Config{})
			w.setBookmarkAfter(0)
			buckets.AddLocked(w)
		}
		time.Sleep(59 * time.Second)
		assert.Equal(t, 0, len(buckets.PopExpiredLocked()), "watchers are due early")
		time.Sleep(time.Second)
		assert.Equal(t, 50, len(buckets.PopExpiredLocked()), "watchers that are due")
		assert.Equal(t, 0, len(buckets.buckets), "buckets that are left")
	})
}
