package reflector

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
)

// A server with a history that fails in every way it can, and a store that accepts only what fits: an ADDED for what
// it does not have, a MODIFIED or DELETED for what it has, versions that grow. Whatever happens, the store must
// follow, and once the faults are over it must hold what the server holds.
func TestStoreFollowsTheServerWhateverHappens(t *testing.T) {
	for seed := range uint64(100) {
		bubble.Test(t, func(t *testing.T) { followFaultyServer(t, seed) })
		require.False(t, t.Failed(), "seed %d", seed)
	}
}

func followFaultyServer(t *testing.T, seed uint64) {
	w := newWorld(seed)
	store := &strict{t: t, objects: map[string]uint64{}}
	r := New(Config{
		Name: "pods", ListerWatcher: w, Store: store, ExpectedType: &corev1.Pod{}, Clock: clock.RealClock{},
		Jitter:       w.random.Float64,
		UseWatchList: seed%2 == 0, MaxInternalErrorRetryDuration: time.Duration(seed%3) * 10 * time.Second,
	})
	stop := running(t, r)
	for range 200 {
		time.Sleep(time.Duration(w.random.IntN(2000)) * time.Millisecond)
		w.write()
	}
	w.heal()
	time.Sleep(10 * time.Minute)
	want := w.state()
	got := store.state()
	assert.True(t, maps.Equal(got, want), "the store holds\n%v, the server\n%v", got, want)
	stop()
}

type world struct {
	random *lockedRand

	mu        sync.Mutex
	faulty    bool
	rv        uint64
	compacted uint64 // history up to here is gone
	history   []watch.Event
	objects   map[string]*corev1.Pod
}

func newWorld(seed uint64) *world {
	return &world{random: &lockedRand{r: rand.New(rand.NewPCG(seed, 1))}, faulty: true, rv: 1,
		objects: map[string]*corev1.Pod{}}
}

// write changes one object, and sometimes forgets history.
func (w *world) write() {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := string(rune('a' + w.random.IntN(8)))
	old, exists := w.objects[name]
	w.rv++
	obj := pod(name, strconv.FormatUint(w.rv, 10))
	typ := watch.Added
	switch {
	case exists && w.random.IntN(3) == 0:
		typ = watch.Deleted
		delete(w.objects, old.Name)
	case exists:
		typ = watch.Modified
		w.objects[name] = obj
	default:
		w.objects[name] = obj
	}
	w.history = append(w.history, event(typ, obj))
	if w.random.IntN(10) == 0 {
		w.compacted = w.rv - uint64(w.random.IntN(3))
	}
}

func (w *world) heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faulty = false
}

func (w *world) state() map[string]uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	state := map[string]uint64{}
	for name, obj := range w.objects {
		state[name] = storage.ProbeVersion(obj.ResourceVersion)
	}
	return state
}

// fault returns, sometimes, an error.
func (w *world) fault() error {
	if !w.faulty || w.random.IntN(3) > 0 {
		return nil
	}
	faults := []error{refused, busy, expired, forbidden, noLeader, tooLarge(), notSupported}
	return faults[w.random.IntN(len(faults))]
}

func (w *world) List(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.fault(); err != nil {
		return nil, err
	}
	list := podList(strconv.FormatUint(w.rv, 10))
	for _, name := range slices.Sorted(maps.Keys(w.objects)) {
		list.Items = append(list.Items, *w.objects[name])
	}
	return list, nil
}

func (w *world) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.fault(); err != nil {
		return nil, err
	}
	from := storage.ProbeVersion(options.ResourceVersion)
	var initial []watch.Event
	if options.SendInitialEvents != nil {
		for _, name := range slices.Sorted(maps.Keys(w.objects)) {
			initial = append(initial, event(watch.Added, w.objects[name]))
		}
		from = w.rv
		initial = append(initial, endOfInitialEvents(strconv.FormatUint(from, 10)))
	} else if from < w.compacted {
		return played(time.Hour, errorEvent(expired))(options)
	}
	s := newStream()
	new(routine.Group).Go(ctx, "test.watch", func(ctx context.Context) { w.pump(ctx, s, initial, from) })
	return s, nil
}

// pump sends what there is to send, until it is stopped or something happens.
func (w *world) pump(ctx context.Context, s *stream, events []watch.Event, from uint64) {
	defer close(s.result)
	for {
		for _, e := range events {
			select {
			case <-ctx.Done():
				return
			case <-s.stopped:
				return
			case s.result <- e:
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-s.stopped:
			return
		case <-time.After(500 * time.Millisecond):
		}
		var ok bool
		if events, from, ok = w.since(from); !ok {
			return
		}
	}
}

// since returns the events after from; sometimes a bookmark or an ERROR; or false: the connection breaks.
func (w *world) since(from uint64) ([]watch.Event, uint64, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.faulty && w.random.IntN(10) == 0 {
		return nil, 0, false
	}
	if w.faulty && w.random.IntN(10) == 0 {
		failures := []watch.Event{errorEvent(expired), errorEvent(busy), errorEvent(noLeader), errorEvent(tooLarge())}
		return failures[w.random.IntN(len(failures)):][:1], from, true
	}
	var events []watch.Event
	for _, e := range w.history {
		if rv := storage.ProbeVersion(e.Object.(*corev1.Pod).ResourceVersion); rv > from {
			events = append(events, e)
		}
	}
	if w.random.IntN(4) == 0 {
		events = append(events, bookmark(strconv.FormatUint(w.rv, 10)))
	}
	return events, w.rv, true
}

// strict is a Store that fails the test if an event does not fit.
type strict struct {
	t       *testing.T
	mu      sync.Mutex
	rv      uint64
	objects map[string]uint64
}

func (s *strict) Add(obj any) error    { return s.apply("ADDED", obj, false) }
func (s *strict) Update(obj any) error { return s.apply("MODIFIED", obj, true) }
func (s *strict) Delete(obj any) error { return s.apply("DELETED", obj, true) }
func (s *strict) Resync() error        { return nil }

func (s *strict) apply(typ string, obj any, mustExist bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := obj.(*corev1.Pod)
	rv := storage.ProbeVersion(p.ResourceVersion)
	if _, exists := s.objects[p.Name]; exists != mustExist {
		s.t.Errorf("%s %s at %d: exists=%v", typ, p.Name, rv, exists)
	}
	assert.False(s.t, rv <= s.rv, "%s %s at %d, after %d", typ, p.Name, rv, s.rv)
	s.rv = rv
	s.objects[p.Name] = rv
	if typ == "DELETED" {
		delete(s.objects, p.Name)
	}
	return nil
}

func (s *strict) Replace(list []any, resourceVersion string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	rv := storage.ProbeVersion(resourceVersion)
	assert.True(s.t, rv >= s.rv, "a list at %d, after %d", rv, s.rv)
	s.rv = storage.ProbeVersion(resourceVersion)
	s.objects = map[string]uint64{}
	for _, obj := range list {
		s.objects[obj.(*corev1.Pod).Name] = storage.ProbeVersion(obj.(*corev1.Pod).ResourceVersion)
	}
	return nil
}

func (s *strict) UpdateResourceVersion(resourceVersion string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rv := storage.ProbeVersion(resourceVersion)
	assert.True(s.t, rv >= s.rv, "the version goes from %d back to %d", s.rv, rv)
	s.rv = storage.ProbeVersion(resourceVersion)
}

func (s *strict) state() map[string]uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.objects)
}

// lockedRand is asked by the test, the reflector and the streams.
type lockedRand struct {
	mu sync.Mutex
	r  *rand.Rand
}

func (l *lockedRand) IntN(n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.r.IntN(n)
}

func (l *lockedRand) Float64() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.r.Float64()
}

// running starts the reflector, waits until it is at rest, and returns a function that stops it and waits for its end.
func running(t *testing.T, r *Reflector) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var group routine.Group
	group.Go(ctx, "reflector.Run", r.Run)
	synctest.Wait()
	return func() { cancel(); group.Wait() }
}

func wantLog(t *testing.T, what, got, want string) {
	t.Helper()
	assert.NoDiff(t, got, want, what)
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func sentences(t *testing.T, log *probe.Log) string {
	t.Helper()
	records, ok := log.Since(nil, 0, 1000)
	require.True(t, ok, "the log has moved on")
	var lines []string
	for i := range records {
		lines = append(lines, records[i].Sentence())
	}
	return strings.Join(lines, "\n")
}

func TestProbesTellTheStoryOfTwoRounds(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		log := probe.NewLog(clock.RealClock{}, 0)
		s := newServer()
		s.onList(listing(podList("5", pod("a", "3"))))
		s.onWatch(
			refusing(notSupported),
			played(time.Hour, event(watch.Modified, pod("a", "6")), bookmark("8"), errorEvent(expired)),
			played(time.Hour, event(watch.Added, pod("a", "6")), endOfInitialEvents("9"), event(watch.Deleted,
				pod("a", "10"))),
		)
		r := newTestReflector(s, &record{}, func(c *Config) {
			c.UseWatchList = true
			c.Probe = probe.New(log).Resource("pods").Subject("cacher")
			c.KeyOf = func(obj any) (string, error) { return "/registry/pods/default/" + obj.(*corev1.Pod).Name, nil }
		})
		stop := running(t, r)
		time.Sleep(time.Second)
		stop()
		wantLog(t, "told", sentences(t, log), strings.TrimSpace(`
cacher has listed 1 object at 5.
cacher watches changes after 5.
cacher receives MODIFIED default/a at 6.
cacher receives BOOKMARK at 8.
cacher receives ERROR.
The watch of cacher ended: too old resource version: 5 (9).
cacher waits 800 ms before trying again: too old resource version: 5 (9).
cacher watches a state not older than 8 and its changes.
cacher receives ADDED default/a at 6.
cacher receives BOOKMARK at 9.
cacher has received the whole state at 9: 1 object.
cacher receives DELETED default/a at 10.
The watch of cacher ended: stop requested.`))
		records, _ := log.Since(nil, 0, 1000)
		assert.Equal(t, records[2].Key, "/registry/pods/default/a", "key")
	})
}

func TestSnapshotSaysWhetherAndWhyNot(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newServer()
		s.onList(listing(podList("5")))
		s.onWatch(played(time.Second, event(watch.Added, pod("a", "6"))), refusing(refused))
		r := newTestReflector(s, &record{}, nil)
		stop := running(t, r)
		want := Snapshot{Name: "pods", LastSyncResourceVersion: "6", Watching: true, Events: 1}
		assert.Equal(t, r.Snapshot(), want, "open")
		time.Sleep(1500 * time.Millisecond)
		want.Watching = false
		want.LastWatchEnd = refused.Error()
		assert.Equal(t, r.Snapshot(), want, "waiting")
		time.Sleep(time.Second)
		want.Watching = true
		assert.Equal(t, r.Snapshot(), want, "open again")
		stop()
		got := r.Snapshot()
		assert.False(t, got.Watching, "after Run: got %+v, want not watching", got)
	})
}
