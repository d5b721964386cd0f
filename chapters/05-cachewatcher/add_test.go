package cachewatcher

import (
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/chapterdrawing"
	"listwatch/internal/check/require"
)

func TestAddClosesAWatcherThatDoesNotTakeTheEvent(t *testing.T) {
	for _, c := range []struct {
		name    string
		expired func() <-chan time.Time
		waited  string
	}{
		{"in time", func() <-chan time.Time { return time.After(50 * time.Millisecond) }, "50ms"},
		{"when there is no time left", func() <-chan time.Time { return nil }, "0s"},
	} {
		bubble.Run(t, c.name, func(t *testing.T) {
			b := start(t, options{rv: 5, size: 1}).run()
			b.add(added("default/c", 6), added("default/d", 7), added("default/e", 8))
			before := time.Now()
			require.True(t, !b.Add(added("default/f", 9), c.expired()), "accepted")
			b.is("waited", time.Since(before).String(), c.waited)
			b.is("drain", b.owner.first(), "false")
			b.is("seen", b.seen(), "ADDED c 6, closed")
		})
	}
}

func TestAWatcherThatHasItsBookmarkInInputIsDrained(t *testing.T) {
	for _, c := range []struct {
		name         string
		bookmark     bool // the bookmark is in input
		bookmarkSent bool // the bookmark is in result already
		drain        string
		want         string
	}{
		{"waiting", false, false, "false", "ADDED a 3, closed"},
		{"received", true, false, "true", "ADDED a 3, ADDED b 4, END 9, closed"},
		{"sent", true, true, "false", "ADDED x 10, closed"},
	} {
		bubble.Run(t, c.name, func(t *testing.T) {
			b := start(t, options{size: 1, initial: new(true), after: 9}).run()
			synctest.Wait() // a in result, b in hand, input empty
			if c.bookmark {
				b.add(bookmark(9))
			}
			if c.bookmarkSent {
				b.is("the initial events", b.seen(), "ADDED a 3, ADDED b 4, END 9")
				b.add(added("default/x", 10), added("default/y", 11))
			}
			for rv := uint64(12); b.Add(added("default/z", rv), nil); rv++ {
				synctest.Wait()
			}
			b.is("drain", b.owner.first(), c.drain)
			b.is("seen", b.seen(), c.want)
		})
	}
}

// Both may stop the watcher in one dispatch, in either order: the client, which has left, and the dispatcher, which
// would have the watcher deliver its bookmark first.
func TestADrainThatNobodyReadsEndsWhenTheClientLeaves(t *testing.T) {
	force := func(b *bench) { b.Add(added("default/z", 12), nil) }
	leave := func(b *bench) { b.Stop() }
	for _, c := range []struct {
		name        string
		dispatching bool
		order       []func(*bench)
	}{
		{"force, then leave", false, []func(*bench){force, leave}},
		{"force, then leave, in one dispatch", true, []func(*bench){force, leave}},
		{"leave, then force, in one dispatch", true, []func(*bench){leave, force}},
	} {
		bubble.Run(t, c.name, func(t *testing.T) {
			b := start(t, options{size: 1, initial: new(true), after: 9}).run()
			synctest.Wait()
			b.add(bookmark(9))
			b.owner.dispatching = c.dispatching
			for _, stop := range c.order {
				synctest.Wait() // stuck on result, which no goroutine reads
				stop(b)
			}
			b.owner.finishDispatching()
			synctest.Wait()
			b.is("seen", b.seen(), "ADDED a 3, closed")
		})
	}
}

// The interval prepares its own bookmark, unless the dispatcher's first ends it, whose version is never newer.
func TestExactlyOneBookmarkEndsTheInitialEvents(t *testing.T) {
	for _, c := range []struct {
		name  string
		opts  options
		early uint64 // a bookmark of this version is refused
		then  []uint64
		want  string
	}{
		{"the dispatcher's", options{after: 9}, 8, []uint64{9, 10}, "END 9, BOOKMARK 10"},
		{"the dispatcher's, which says no more", options{after: 5}, 4, []uint64{5, 5, 6}, "END 5, BOOKMARK 6"},
		{"its own", options{after: 5, end: true}, 4, []uint64{5, 6}, "END 5, BOOKMARK 6"},
	} {
		bubble.Run(t, c.name, func(t *testing.T) {
			c.opts.size, c.opts.initial = 5, new(true)
			b := start(t, c.opts).run()
			assert.False(t, b.NonblockingAdd(bookmark(c.early)), "accepted")
			for _, rv := range c.then {
				b.add(bookmark(rv))
			}
			b.is("seen", b.seen(), "ADDED a 3, ADDED b 4, "+c.want)
			b.is("state", b.Snapshot().Bookmark, "sent")
			b.Stop()
		})
	}
}

func TestABookmarkIsSharedUnlessItIsMarked(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		b := start(t, options{size: 5, initial: new(true), after: 9}).run()
		b.seen()
		marked, plain := bookmark(9), bookmark(10)
		b.add(marked, plain)
		got := <-b.ResultChan()
		assert.True(t, got.Object != marked.Object, "the shared bookmark was annotated")
		got = <-b.ResultChan()
		assert.Equal(t, plain.Object, got.Object, "a plain bookmark was copied for nothing")
		b.Stop()
	})
}

func TestTheNextBookmark(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			name     string
			after    uint64
			deadline time.Duration
			want     string
		}{
			{"waiting for the end of the initial events", 9, 0, "0s"},
			{"every minute", 0, 0, "1m0s"},
			{"two seconds before the deadline", 0, 30 * time.Second, "28s"},
			{"every minute, the deadline being far", 0, time.Hour, "1m0s"},
			{"never again", 0, time.Second, "never"},
		} {
			b := start(t, options{after: c.after, deadline: c.deadline})
			next, ok := b.NextBookmarkTime(time.Now(), time.Minute)
			got := "never"
			if ok {
				got = time.Until(next).String()
			}
			b.is(c.name, got, c.want)
		}
	})
}

// jsonEncoder encodes, and counts.
type jsonEncoder struct{ n int }

func (e *jsonEncoder) encode(obj runtime.Object, w io.Writer) error {
	e.n++
	return json.NewEncoder(w).Encode(obj)
}

func TestACachingObjectIsTheObjectInEveryOtherRespect(t *testing.T) {
	p := pod("default/a", 7, "app=1")
	o := &cachingObject{metaRuntimeInterface: p}
	accessor, err := meta.Accessor(o)
	assert.True(t, err == nil && accessor.GetName() == "a" && accessor.GetResourceVersion() == "7" &&
		accessor.GetLabels()["app"] == "1", "metadata: %v, %v", accessor, err)
	for name, copied := range map[string]runtime.Object{"copy": o.DeepCopyObject(), "object": o.GetObject()} {
		copiedPod, ok := copied.(*corev1.Pod)
		require.True(t, ok && copiedPod != p, "%s: %T, the original: %v", name, copied, copiedPod == p)
		copiedPod.Labels["app"] = "2"
	}
	assert.Equal(t, "1", p.Labels["app"], "who writes to a copy writes to the object")
}

func TestAnEncodingThatFailsFailsForAll(t *testing.T) {
	o := &cachingObject{metaRuntimeInterface: pod("default/a", 7)}
	calls := 0
	fail := func(runtime.Object, io.Writer) error { calls++; return errors.New("no") }
	for range 2 {
		err := o.CacheEncode("x", fail, io.Discard)
		assert.True(t, err != nil && err.Error() == "no", "got %v", err)
	}
	assert.Equal(t, 1, calls, "tried %d times", calls)
}

func TestSplicingWritersTakeTheBytesAsTheyAre(t *testing.T) {
	o := &cachingObject{metaRuntimeInterface: pod("default/a", 7)}
	e := &jsonEncoder{}
	buffer := runtime.NewSpliceBuffer()
	var first *byte
	for range 2 {
		buffer.Reset()
		require.NoError(t, o.CacheEncode("json", e.encode, buffer))
		if first == nil {
			first = &buffer.Bytes()[0]
		}
	}
	assert.True(t, e.n == 1 && &buffer.Bytes()[0] == first, "encoded %d times; or the bytes were copied", e.n)
}

// BenchmarkEncode is what it costs to write one event to n watchers in the same form.
func BenchmarkEncode(b *testing.B) {
	p := pod("default/a", 7, "app=1", "node=n1")
	for _, n := range []int{1, 2, 10, 100, 1000} {
		b.Run("shared/"+strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				o := &cachingObject{metaRuntimeInterface: p}
				e := &jsonEncoder{}
				for range n {
					_ = o.CacheEncode("json", e.encode, io.Discard)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/watcher")
		})
		b.Run("each/"+strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				e := &jsonEncoder{}
				for range n {
					_ = e.encode(p, io.Discard)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/watcher")
		})
	}
}

// The drawing of the two questions: each row is one event that a watcher of app=x is handed.
func TestTheDrawingOfTheTwoQuestionsIsOfThisWatcher(t *testing.T) {
	d := chapterdrawing.New("two-questions.svg", 262)
	d.Text(16, 24, "soft", "the object before")
	d.Text(190, 24, "soft", "the object now")
	d.Text(400, 24, "soft", "a watcher of app=x sends")
	for i, row := range []struct{ before, now string }{{"app=y", "app=x"}, {"app=x", "app=x"}, {"app=x", "app=y"},
		{"app=y", "app=y"}} {
		bubble.Test(t, func(t *testing.T) {
			b := start(t, options{rv: 5, label: "app=x"}).run()
			b.add(event(watch.Modified, 9, pod("default/c", 6, row.before), pod("default/c", 9, row.now)))
			sent := strings.NewReplacer(" c ", ", at ").Replace(b.seen())
			b.Stop()
			y := 60 + i*46
			for k, label := range []string{row.before, row.now} {
				x, class := 16+174*k, "wall later"
				if label == "app=x" {
					class = "wall"
				}
				d.In("kept", func() { d.Box(x, y-22, 110, 34, class) })
				d.Text(x+55, y, "mid", "%s", label)
			}
			d.Arrow("way", "M132 %dH184", y-5)
			if sent == "" {
				d.Text(400, y, "soft", "nothing")
				return
			}
			d.Arrow("way", "M306 %dH392", y-5)
			d.In("queue", func() { d.Box(396, y-22, 170, 34, "wall") })
			d.Text(410, y, "bold", "%s", sent)
		})
	}
	d.Text(16, 250, "", "In etcd all four are one thing: an update.")
	d.Check(t)
}
