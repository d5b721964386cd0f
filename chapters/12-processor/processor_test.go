package processor

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	deltafifo "listwatch/chapters/10-deltafifo"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/handlercalls"
	"listwatch/internal/check/probetest"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type recorder = handlercalls.Recorder

func pod(name string, rv int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name,
		ResourceVersion: strconv.Itoa(rv)}}
}

// syncedUpstream is an informer that has synced.
func syncedUpstream() <-chan struct{} {
	u := make(chan struct{})
	close(u)
	return u
}

func add(t *testing.T, p *SharedProcessor, h ResourceEventHandler, opts ListenerOptions) Registration {
	t.Helper()
	if opts.UpstreamHasSynced == nil {
		opts.UpstreamHasSynced = syncedUpstream()
	}
	return require.Value(p.AddListener(h, opts))(t)
}

func inBubble(t *testing.T, test func(t *testing.T, p *SharedProcessor)) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		test(t, New(clock.RealClock{}, probetest.Probe(t, "informer")))
	})
}

func want(t *testing.T, r *recorder, calls ...string) {
	t.Helper()
	synctest.Wait()
	assert.NoDiff(t, calls, r.Calls(), "calls")
}

func TestASleepingHandlerDelaysNobodyElse(t *testing.T) {
	inBubble(t, func(t *testing.T, p *SharedProcessor) {
		slow, fast := &recorder{Delay: time.Hour}, &recorder{}
		add(t, p, slow, ListenerOptions{})
		add(t, p, fast, ListenerOptions{})
		p.Start()
		began := time.Now()
		for i := range 100 {
			p.OnAdd(pod(strconv.Itoa(i), i+1), false)
		}
		synctest.Wait()
		told := fast.Calls()
		require.Equal(t, 100, len(told), "the fast handler was told times")
		require.Equal(t, 0, time.Since(began), "told after")
		time.Sleep(100 * time.Hour)
		want(t, slow, told...)
		p.Stop()
	})
}

func TestPendingRingGrowsWithABlockedHandlerAndNeverShrinks(t *testing.T) {
	inBubble(t, func(t *testing.T, p *SharedProcessor) {
		r := &recorder{Block: make(chan struct{})}
		add(t, p, r, ListenerOptions{})
		p.Start()
		pending := func(wantLen, wantCap int) {
			t.Helper()
			synctest.Wait()
			s := p.Snapshot()[0]
			assert.True(t, s.PendingLen == wantLen && s.PendingCap == wantCap,
				"pending %d of %d, want %d of %d", s.PendingLen, s.PendingCap, wantLen, wantCap)
		}
		tell := func(n int) {
			for i := range n {
				p.OnAdd(pod(strconv.Itoa(i), i+1), false)
			}
		}
		tell(2) // one with the handler, one in the hand of pop
		pending(0, 1024)
		tell(1024)
		pending(1024, 1024)
		tell(1)
		pending(1025, 2048)
		close(r.Block)
		pending(0, 2048)
		assert.Equal(t, 1027, len(r.Take()), "told")
		p.Stop()
	})
}

func TestSlowCallsOfAHandlerThatIsBehindAreCountedAndReported(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		log := probe.NewLog(clock.RealClock{}, 0)
		p := New(clock.RealClock{}, probe.New(log).Resource("pods").Subject("informer"))
		r := &recorder{Delay: 101 * time.Millisecond}
		add(t, p, r, ListenerOptions{})
		p.Start()
		p.OnAdd(pod("a", 1), false)
		synctest.Wait() // it is being handled, and nothing was pending when that began
		for i := range 1027 {
			p.OnAdd(pod("a", i+2), false) // 1 in hand, 1026 pending
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		// The second call begins with 1026 or 1025 pending, depending on who comes first, run or pop; the third with
		// 1025 or 1024.
		counted := p.Snapshot()[0].SlowCalls
		assert.False(t, counted != 1 && counted != 2, "%d slow calls, want those with more than 1024 pending", counted)
		p.Stop()
		var reported []string
		for _, r := range probetest.Records(log, probe.HandlerSlow) {
			reported = append(reported, fmt.Sprint(r.Subject, " ", r.Key, " ", r.RV, " ", r.Field(probe.FieldTook)))
		}
		assert.NoDiff(t, []string{"l1 default/a 2 101ms", "l1 default/a 3 101ms"}[:counted], reported, "reports")
	})
}

func TestHandlerHasSyncedWhenItHasReturnedFromTheInitialList(t *testing.T) {
	inBubble(t, func(t *testing.T, p *SharedProcessor) {
		r := &recorder{Block: make(chan struct{})}
		up := make(chan struct{})
		early := add(t, p, r, ListenerOptions{UpstreamHasSynced: up})
		p.Start()
		defer p.Stop()
		p.OnAdd(pod("a", 1), true)
		r.Block <- struct{}{}
		synctest.Wait()
		assert.False(t, early.HasSynced(), "synced although more may come")
		p.OnAdd(pod("b", 2), true)
		close(up)
		synctest.Wait()
		assert.False(t, early.HasSynced(), "synced before the handler returned from b")
		late := add(t, p, r, ListenerOptions{UpstreamHasSynced: up, Initial: []any{pod("a", 1), pod("b", 2)}})
		none := add(t, p, &recorder{}, ListenerOptions{UpstreamHasSynced: up})
		synctest.Wait()
		assert.True(t, !late.HasSynced() && none.HasSynced(),
			"late synced %v before its own replay; one with nothing to replay synced %v", late.HasSynced(),
			none.HasSynced())
		close(r.Block)
		<-early.HasSyncedChecker()
		<-late.HasSyncedChecker()
		assert.True(t, early.HasSynced() && late.HasSynced(), "done but not synced")
	})
}

// The informer has said long ago that its list is complete. A late handler must not take that for news of its own
// replay: when it has returned from all that it was handed so far, there may be more to come.
func TestALateHandlerHasNotSyncedBeforeTheEndOfItsReplay(t *testing.T) {
	initial := make([]any, 2000)
	for i := range initial {
		initial[i] = pod(strconv.Itoa(i), i+1)
	}
	inBubble(t, func(t *testing.T, p *SharedProcessor) {
		p.Start()
		defer p.Stop()
		for range 20 {
			var returned atomic.Int64
			handler := ResourceEventHandlerFuncs{AddFunc: func(any) { returned.Add(1) }}
			late := add(t, p, handler, ListenerOptions{Initial: initial})
			<-late.HasSyncedChecker()
			got := returned.Load()
			require.True(t, got == int64(len(initial)), "synced when the handler had returned from %d of %d", got,
				len(initial))
			require.NoError(t, p.RemoveListener(late))
		}
	})
}

func TestTrackerPanicsWhenMoreIsFinishedThanStarted(t *testing.T) {
	defer func() {
		assert.True(t, recover() != nil, "no panic")
	}()
	newSingleFileTracker().Finished()
}

func TestTrackerIsDoneOnceBothSidesAre(t *testing.T) {
	for range 1000 {
		tracker := newSingleFileTracker()
		tracker.Start()
		var wg sync.WaitGroup
		wg.Go(tracker.Finished)
		wg.Go(tracker.UpstreamHasSynced)
		wg.Wait()
		require.True(t, deltafifo.IsDone(tracker.synced), "both happened and neither noticed")
	}
}

func TestRemoveBeforeStart(t *testing.T) {
	inBubble(t, func(t *testing.T, p *SharedProcessor) {
		registration := add(t, p, &recorder{}, ListenerOptions{})
		assert.True(t, p.RemoveListener(struct{ Registration }{registration}) != nil, "a foreign one was removed")
		require.NoError(t, p.RemoveListener(registration))
		<-registration.ShutdownChan()
		p.Start()
		p.Stop()
		_, err := p.AddListener(&recorder{}, ListenerOptions{UpstreamHasSynced: syncedUpstream()})
		assert.True(t, err != nil, "a stopped processor takes listeners")
	})
}

// pop may still have a notification in its hand, and run may be ready for it, when a listener is removed: the select of
// pop then chooses at random between run and the end. The gate holds pop at that place.
func TestNoCallOfARemovedHandlerBegins(t *testing.T) {
	for range 16 {
		bubble.Test(t, func(t *testing.T) {
			log := probe.NewLog(clock.RealClock{}, 0)
			p := New(clock.RealClock{}, probe.New(log))
			r := &recorder{Block: make(chan struct{})}
			registration := add(t, p, r, ListenerOptions{})
			p.Start()
			defer p.Stop()
			for i := range 8 {
				p.OnAdd(pod("a", i+1), false)
			}
			synctest.Wait() // the handler has the first, pop has the second in its hand
			log.Gate().Close(probe.Query{Station: probe.Listener})
			close(r.Block)
			synctest.Wait() // run is ready for the third, and pop is held with it
			want(t, r, "+a@1", "+a@2")
			require.NoError(t, p.RemoveListener(registration))
			log.Gate().Release()
			synctest.Wait()
			want(t, r, "+a@1", "+a@2")
		})
	}
}

func TestAHandlerMayRemoveItself(t *testing.T) {
	inBubble(t, func(t *testing.T, p *SharedProcessor) {
		var registration Registration
		calls := 0
		registration = add(t, p, ResourceEventHandlerFuncs{AddFunc: func(any) {
			calls++
			_ = p.RemoveListener(registration)
		}}, ListenerOptions{})
		p.Start()
		p.OnAdd(pod("a", 1), false)
		<-registration.ShutdownChan()
		p.OnAdd(pod("b", 2), false)
		p.Stop()
		assert.Equal(t, 1, calls, "%d calls, want 1", calls)
	})
}

func TestNames(t *testing.T) {
	inBubble(t, func(t *testing.T, p *SharedProcessor) {
		for _, tc := range []struct{ name, want string }{{"", "l1"}, {"audit", "audit"}, {"", "l2"}} {
			listener := add(t, p, &recorder{}, ListenerOptions{Name: tc.name}).(*processorListener)
			assert.Equal(t, tc.want, listener.id, "%q became", tc.name)
		}
		_, err := p.AddListener(&recorder{}, ListenerOptions{Name: "audit", UpstreamHasSynced: syncedUpstream()})
		assert.True(t, err != nil, "a name was given twice")
	})
}

func TestUpdatesThatChangeNothingAreForListenersThatAreSyncing(t *testing.T) {
	inBubble(t, func(t *testing.T, p *SharedProcessor) {
		second, minute, never := &recorder{}, &recorder{}, &recorder{}
		add(t, p, second, ListenerOptions{RequestedResyncPeriod: time.Second, ResyncCheckPeriod: time.Second})
		add(t, p, minute, ListenerOptions{RequestedResyncPeriod: time.Minute, ResyncCheckPeriod: time.Second})
		add(t, p, never, ListenerOptions{})
		p.Start()
		defer p.Stop()
		same := func() { p.OnUpdate(pod("a", 1), pod("a", 1)) }
		same() // the test has not asked yet: all count as syncing
		for _, r := range []*recorder{second, minute, never} {
			want(t, r, "~a@1>1")
		}
		assert.False(t, p.ShouldResync(), "a resync is due at once")
		same()
		time.Sleep(time.Second)
		assert.True(t, p.ShouldResync(), "no resync after a second")
		same()
		want(t, second, "~a@1>1", "~a@1>1")
		want(t, minute, "~a@1>1")
		want(t, never, "~a@1>1")
		time.Sleep(time.Minute)
		p.ShouldResync()
		same()
		p.OnUpdate(pod("a", 1), pod("a", 2)) // a real one is for all
		want(t, second, "~a@1>1", "~a@1>1", "~a@1>1", "~a@1>2")
		want(t, minute, "~a@1>1", "~a@1>1", "~a@1>2")
		want(t, never, "~a@1>1", "~a@1>2")
	})
}

func TestResyncCheckPeriodChangedFitsAllListeners(t *testing.T) {
	inBubble(t, func(t *testing.T, p *SharedProcessor) {
		add(t, p, &recorder{}, ListenerOptions{RequestedResyncPeriod: 5 * time.Second}) // no resync was checked so far
		p.ResyncCheckPeriodChanged(2 * time.Second)
		time.Sleep(5 * time.Second)
		assert.True(t, p.ShouldResync(), "no resync after five seconds")
		assert.False(t, p.ShouldResync(), "another one at once")
	})
}

// What the page makes of the log: every notification is received once at each hop, in order.
func TestEveryNotificationIsReportedOncePerHop(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		log := probe.NewLog(clock.RealClock{}, 0)
		p := New(clock.RealClock{}, probe.New(log).Resource("pods").Subject("informer"))
		slow, fast := &recorder{Delay: time.Second}, &recorder{}
		add(t, p, slow, ListenerOptions{})
		add(t, p, fast, ListenerOptions{Name: "fast"})
		p.Start()
		p.OnAdd(pod("a", 1), true)
		synctest.Wait() // the slow handler has it
		p.OnUpdate(pod("a", 1), pod("a", 2))
		synctest.Wait() // pop has it in its hand
		p.OnDelete(deltafifo.DeletedFinalStateUnknown{Key: "default/a", Obj: pod("a", 2)})
		time.Sleep(time.Minute)
		p.Stop()

		events := []string{"ADDED default/a 1", "MODIFIED default/a 2", "DELETED default/a 2"}
		hops := map[string]map[probe.Point][]string{}
		records := probetest.Records(log)
		for _, r := range records {
			if hops[r.Subject] == nil {
				hops[r.Subject] = map[probe.Point][]string{}
			}
			event := fmt.Sprintf("%s %s %d", r.Type, r.Key, r.RV)
			hops[r.Subject][r.Point] = append(hops[r.Subject][r.Point], event)
		}
		for _, id := range []string{"l1", "fast"} {
			for _, point := range []probe.Point{probe.HandlerCalled, probe.HandlerReturned} {
				assert.NoDiff(t, events, hops[id][point], "%s of %s", point, id)
			}
			assert.True(t, len(hops[id][probe.ListenerAdded]) == 1 && len(hops[id][probe.ListenerRemoved]) == 1,
				"%s: %v", id, hops[id])
		}
		// While the slow handler has a second with a, the update is in the hand of pop and only the deletion waits.
		assert.NoDiff(t, events, hops["fast"][probe.AddReceived], "AddReceived of fast")
		assert.NoDiff(t, events[:2], hops["l1"][probe.AddReceived], "AddReceived of l1")
		for _, point := range []probe.Point{probe.PendingPushed, probe.PendingPopped} {
			assert.NoDiff(t, events[2:], hops["l1"][point], point)
		}
		assert.NoDiff(t, events, hops["informer"][probe.Distributed], "Distributed")
		assert.Equal(t, probe.ListenerRemoved, records[len(records)-1].Point, "the last that is told of a listener")
	})
}

type typedRecorder struct {
	handlercalls.Recorder
	deleted []DeletedObject[*corev1.Pod]
}

func (r *typedRecorder) OnAdd(obj *corev1.Pod, initial bool)   { r.Recorder.OnAdd(obj, initial) }
func (r *typedRecorder) OnUpdate(old, obj *corev1.Pod)         { r.Recorder.OnUpdate(old, obj) }
func (r *typedRecorder) OnDelete(d DeletedObject[*corev1.Pod]) { r.deleted = append(r.deleted, d) }

func TestTypedHandlerIsSparedTombstones(t *testing.T) {
	r := &typedRecorder{}
	h := Untyped[*corev1.Pod](r)
	h.OnAdd(pod("a", 1), true)
	h.OnUpdate(pod("a", 1), pod("a", 2))
	last := pod("a", 3)
	for _, obj := range []any{
		last,
		deltafifo.DeletedFinalStateUnknown{Key: "default/a", Obj: last},
		deltafifo.DeletedFinalStateUnknown{Key: "default/a"},
	} {
		h.OnDelete(obj)
	}
	assert.EqualSlices(t, []string{"+a@1*", "~a@1>2"}, r.Take())
	for i, d := range r.deleted {
		assert.Equal(t, "default/a", d.GetKey(), i)
		assert.True(t, (d.OptionalObj == last) == (i < 2) && (d.FinalStateUnknown == nil) == (i == 0), "%d: %v", i, d)
	}
	node := DeletedObject[*corev1.Node]{OptionalObj: &corev1.Node{}}
	node.OptionalObj.Name = "n"
	assert.Equal(t, "n", node.GetKey(), "without namespace")
}
