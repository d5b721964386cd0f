package probe

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/routine"
)

// line is three goroutines with two channels between them. They report each value as a real station does.
//
//	source ─► ch "input", 10 ─► middle ─► ch "result", 10 ─► sink
type line struct {
	log           *Log
	probe         *Probe
	input, result chan int
}

func newLine() *line {
	log := NewLog(clock.RealClock{}, 0)
	return &line{log: log, probe: New(log).Resource("pods").Subject("w1"), input: make(chan int, 10),
		result: make(chan int, 10)}
}

// run starts the goroutines, which pass n values from end to end. The test's cleanup opens the gate and waits for them.
func (l *line) run(t *testing.T, n int) *routine.Group {
	ctx, group := t.Context(), &routine.Group{}
	t.Cleanup(func() { l.log.Gate().Release(); group.Wait() })
	group.Go(ctx, "source", func(context.Context) {
		defer close(l.input)
		for i := 1; i <= n; i++ {
			l.input <- i
			l.probe.At(InputSent, "default/"+strconv.Itoa(i), uint64(i), len(l.input), cap(l.input))
		}
	})
	group.Go(ctx, "middle", func(context.Context) {
		defer close(l.result)
		for i := range l.input {
			l.probe.At(InputReceived, "default/"+strconv.Itoa(i), uint64(i), len(l.input), cap(l.input))
			l.result <- i
			l.probe.At(ResultSent, "default/"+strconv.Itoa(i), uint64(i), len(l.result), cap(l.result))
		}
	})
	group.Go(ctx, "sink", func(context.Context) {
		for i := range l.result {
			l.probe.At(ResultReceived, "default/"+strconv.Itoa(i), uint64(i), len(l.result), cap(l.result))
			l.probe.At(FrameWritten, "default/"+strconv.Itoa(i), uint64(i), 0, 0)
		}
	})
	return group
}

// counts returns the number of reports of each point.
func (l *line) counts() map[Point]int {
	counts := map[Point]int{}
	records, _ := l.log.Since(nil, 0, l.log.Size())
	for i := range records {
		counts[records[i].Point]++
	}
	return counts
}

// where returns the points at which goroutines are held, in path order.
func where(g *Gate) []Point {
	g.mu.Lock()
	defer g.mu.Unlock()
	var at []Point
	for _, w := range g.waiting {
		at = append(at, w.record.Point)
	}
	slices.Sort(at)
	return at
}

func TestAHeldWorldStandsAndAHopIsOnePoint(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		l := newLine()
		gate := l.log.Gate()
		gate.Hold()
		group := l.run(t, 5)
		synctest.Wait()
		// The source has sent its first value, and middle has taken it from input; result is still empty.
		assert.EqualSlices(t, []Point{InputSent, InputReceived}, where(gate), "held at")
		n := gate.Step(Query{})
		assert.True(t, n == 2, "%d passed, want 2", n)
		synctest.Wait()
		assert.EqualSlices(t, []Point{InputSent, ResultSent, ResultReceived}, where(gate), "after one hop held at")
		got := l.counts()
		assert.True(t, got[InputSent] == 2 && got[InputReceived] == 1 && got[ResultSent] == 1 &&
			got[ResultReceived] == 1 && got[FrameWritten] == 0, "after one hop reported: %v", got)
		gate.Release()
		group.Wait()
		assert.Equal(t, 5, l.counts()[FrameWritten], "values that arrived")
	})
}

func TestOnlyTheFollowedObjectPasses(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		l := newLine()
		gate := l.log.Gate()
		gate.Hold()
		group := l.run(t, 5)
		synctest.Wait()
		gate.Step(Query{}) // 2 is held at InputSent, 1 at ResultSent and ResultReceived
		synctest.Wait()
		assert.Equal(t, 2, gate.Step(Query{Key: "/registry/pods/default/1"}), "passed with default/1")
		synctest.Wait()
		assert.EqualSlices(t, []Point{InputSent, InputReceived, FrameWritten}, where(gate), "held at")
		assert.Equal(t, 0, gate.Step(Query{RV: 4711}), "passed with a version that does not exist")
		assert.Equal(t, 1, gate.Step(Query{Station: Wire}), "passed at the wire")
		gate.End()
		group.Wait()
	})
}

func TestAGateForOneSubjectStopsNoOther(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		slow, fast := newLine(), newLine()
		fast.log, fast.probe = slow.log, New(slow.log).Resource("pods").Subject("w2")
		gate := slow.log.Gate()
		gate.Close(Query{Station: Wire, Subject: "w1"})
		slowly, quickly := slow.run(t, 30), fast.run(t, 30)
		quickly.Wait()
		synctest.Wait()
		got := slow.counts()[FrameWritten]
		assert.True(t, got == 30, "%d frames in the log, want the 30 of w2", got)
		gate.Open(Query{Station: Wire, Subject: "w1"})
		slowly.Wait()
	})
}

func TestInAHeldWorldAStationCanRun(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		l := newLine()
		gate := l.log.Gate()
		gate.Hold()
		group := l.run(t, 8)
		synctest.Wait()
		gate.Open(Query{Station: Watcher})
		synctest.Wait()
		assert.EqualSlices(t, []Point{ResultReceived}, where(gate), "held at")
		assert.True(t, len(l.result) == 7, "result holds %d, want the 7 that the sink has not", len(l.result))
		gate.Hold() // the gate holds everything again
		gate.Step(Query{})
		synctest.Wait()
		assert.EqualSlices(t, []Point{FrameWritten}, where(gate), "held at")
		gate.Release()
		group.Wait()
	})
}

func TestNoGoroutineIsHeldUnderALockOrForReading(t *testing.T) {
	log := NewLog(clock.RealClock{}, 0)
	p := New(log)
	log.Gate().Hold()
	for _, point := range Points() {
		if !point.Holdable() {
			p.At(point, "default/a", 1) // hangs if the gate holds the test
		}
	}
	p.Texts(RequestReceived, []string{"GET", "/api/v1/pods"}, "", 0)
	p.Texts(RequestAnswered, []string{"GET", "/api/v1/pods", "watch=1"}, "", 0)
	n := len(log.Gate().State().Waiting)
	assert.True(t, n == 0, "%d are held", n)
}

// quietLog returns a log with a limit of one loud lane; kubectl's lanes are loud, too. told returns the subjects and
// points of the records since its last call, and the first two numbers and the levels of each Look.
func quietLog() (log *Log, told func() string) {
	log = NewLog(clock.RealClock{}, 1<<16)
	log.LimitLoud(1, func(agent string) bool { return strings.HasPrefix(agent, "kubectl/") })
	var seen uint64
	return log, func() string {
		records, _ := log.Since(nil, seen, 1<<16)
		var words []string
		for _, r := range records {
			seen = r.Seq
			word := strings.TrimSpace(r.Subject + " " + r.Point.String())
			if r.Point.Info().Op == Look {
				fill, _ := base64.StdEncoding.DecodeString(r.Texts.Get(FieldFill))
				word += fmt.Sprintf(" %v %v", r.Args[:2], fill)
			}
			words = append(words, word)
		}
		return strings.Join(words, ", ")
	}
}

// event reports the routine moments of one event that a watcher sends to its client.
func event(p *Probe) {
	p.Event(InputSent, "ADDED", "default/a", 1, 1, 10)
	p.Event(InputReceived, "ADDED", "default/a", 1, 0, 10)
	p.Event(ResultSent, "ADDED", "default/a", 1, 1, 10)
	p.Event(ResultReceived, "ADDED", "default/a", 1, 0, 10)
	p.Event(FrameWritten, "ADDED", "default/a", 1, 80, 0)
	p.At(WireFlushed, "default/a", 1)
}

func TestWhatAQuietLaneTells(t *testing.T) {
	const (
		whole = "w2 InputSent, w2 InputReceived, w2 ResultSent, w2 ResultReceived, w2 FrameWritten, w2 WireFlushed"
		seen  = "w2 WatcherLookedAt [10 4] []" // w2 becomes loud
		crowd = "CrowdLookedAt [2 1] [0 101]"
	)
	for _, test := range []struct {
		name string
		do   func(log *Log, p *Probe)
		want string
	}{
		{"what is routine", func(_ *Log, p *Probe) { event(p) }, ""},
		{"an ERROR", func(_ *Log, p *Probe) { p.Event(FrameWritten, "ERROR", "", 0, 80, 0) }, "w2 FrameWritten"},
		{"how full it is, once if that is no news", func(log *Log, p *Probe) {
			event(p)
			log.LookAtCrowd()
			log.LookAtCrowd()
		}, crowd},
		{"how full it is, again when others have come", func(log *Log, p *Probe) {
			log.LookAtCrowd()
			New(log).Resource("pods").Lane("w3", lengths(0, 1)).At(WatcherAdded, "", 1, 10)
			log.LookAtCrowd()
		}, crowd + ", w3 WatcherAdded, CrowdLookedAt [3 2] [0 101 11]"},
		{"a wait, and its end", func(_ *Log, p *Probe) {
			p.Event(ResultBlocked, "ADDED", "default/a", 1)
			event(p)
			event(p)
		}, "w2 ResultBlocked, w2 ResultSent"},
		{"that the dispatcher waits for it, and all from there on", func(_ *Log, p *Probe) {
			p.Event(InputBlocked, "ADDED", "default/a", 2)
			event(p)
		}, seen + ", w2 InputBlocked, " + whole},
		{"all, when someone looks", func(log *Log, p *Probe) { event(p); log.Look("pods", "w2"); event(p) },
			seen + ", " + whole},
		{"less, when others were looked at since", func(log *Log, p *Probe) {
			log.Look("pods", "w2")
			log.Look("pods", "w1")
			log.LookAtCrowd()
			event(p)
		}, seen + ", " + crowd},
		{"all, of a client that is always followed", func(_ *Log, p *Probe) {
			p.Text(WireOpened, "kubectl/v1.37 watch", "", 0)
			event(p)
		}, seen + ", w2 WireOpened, " + whole},
		{"all, while a gate is closed", func(log *Log, p *Probe) {
			event(p)
			log.Gate().Close(Query{Station: Etcd})
			event(p)
			log.Gate().Release()
			log.LookAtCrowd()
			event(p)
		}, seen + ", " + whole + ", " + crowd},
		{"its end, with what is late", func(_ *Log, p *Probe) {
			event(p)
			p.At(WatcherRemoved, "", 1)
			p.Event(ResultReceived, "ADDED", "default/a", 1, 0, 10)
		}, "w2 WatcherRemoved, w2 ResultReceived"},
		{"all, when there is room for it", func(log *Log, p *Probe) {
			log.lanes.open["pods"][0].probe.lane = log.lanes.open["pods"][0]
			log.lanes.open["pods"][0].probe.At(WatcherRemoved, "", 1)
			log.LookAtCrowd()
			event(p)
		}, "w1 WatcherRemoved, " + seen + ", " + whole},
	} {
		t.Run(test.name, func(t *testing.T) {
			log, told := quietLog()
			pods := New(log).Resource("pods")
			first, p := pods.Lane("w1", lengths(0, 0)), pods.Lane("w2", lengths(10, 4))
			first.At(WatcherAdded, "", 1, 10)
			p.At(WatcherAdded, "", 1, 10)
			require.Equal(t, "w1 WatcherAdded, w2 WatcherAdded", told(), "they begin with")
			test.do(log, p)
			assert.Equal(t, test.want, told())
		})
	}
}

func TestAQuietLaneTellsTheEndOfEachWait(t *testing.T) {
	for _, begins := range Points() {
		for _, name := range begins.Info().Until.List() {
			ends, _ := PointNamed(name)
			if begins.Info().Routine || !ends.Info().Routine {
				continue
			}
			log, told := quietLog()
			pods := New(log).Resource("pods")
			pods.Lane("w1", lengths(0, 0)).At(WatcherAdded, "", 1, 10)
			p := pods.Lane("w2", lengths(10, 4))
			p.At(WatcherAdded, "", 1, 10)
			p.Event(begins, "ADDED", "default/a", 1)
			log.Look("pods", "w2") // w2 becomes loud during the wait, and then quiet again
			log.Look("pods", "w1")
			log.LookAtCrowd()
			told()
			p.Event(ends, "ADDED", "default/a", 1, 1, 10)
			p.Event(ends, "ADDED", "default/a", 1, 1, 10)
			assert.Equal(t, "w2 "+name, told(), "the end of %s", begins)
		}
	}
}

func lengths(input, result int) Lengths {
	return func() (int, int, int) { return input, result, 10 }
}

// TestTheCrowdIsInTheOrderOfTheLog opens watchers, and closes most of them, while viewers look at them. A reader that
// counts the records of beginnings and ends must find as many watchers as each record of the crowd has.
func TestTheCrowdIsInTheOrderOfTheLog(t *testing.T) {
	log, _ := quietLog()
	pods := New(log).Resource("pods")
	var moments, looks sync.WaitGroup
	stop := make(chan struct{}) // closed after the last moment of a watcher
	for i := range 4 {
		moments.Go(func() {
			for n := range 300 {
				p := pods.Lane(fmt.Sprint("w", i, "-", n), lengths(i, n%10))
				p.At(WatcherAdded, "", 1, 10)
				event(p)
				if n%3 > 0 {
					p.At(WatcherRemoved, "", 1)
				}
			}
		})
	}
	for _, look := range []func(){log.LookAtCrowd, func() { log.Look("pods", "w1-3") }} {
		looks.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					look()
				}
			}
		})
	}
	moments.Wait()
	close(stop)
	looks.Wait()
	log.LookAtCrowd()
	open, seen := 0, 0
	for r := range log.Between(log.Oldest()-1, log.Last()) {
		switch r.Point {
		case WatcherAdded:
			open++
		case WatcherRemoved:
			open--
		case CrowdLookedAt:
			seen++
			fill, err := base64.StdEncoding.DecodeString(r.Texts.Get(FieldFill))
			require.True(t, err == nil && r.Args[0] == open && len(fill) == open,
				"%d are open, and it is of %v, %d bytes", open, r.Args, len(fill))
		}
	}
	assert.True(t, seen > 0, "no record of the crowd")
}

// TestACrowdHasABound: if there are more watchers than a record has room for, the record still has their number, and
// the levels of the first [MaxCrowd].
func TestACrowdHasABound(t *testing.T) {
	log, _ := quietLog()
	for i := range MaxCrowd + 100 {
		New(log).Resource("pods").Lane(fmt.Sprint("w", i), lengths(5, 0)).At(WatcherAdded, "", 1, 10)
	}
	log.LookAtCrowd()
	records, _ := log.Since(nil, log.Last()-1, 1)
	fill := require.Value(base64.StdEncoding.DecodeString(records[0].Texts.Get(FieldFill)))(t)
	assert.EqualSlices(t, []int{MaxCrowd + 100, MaxCrowd + 99, MaxCrowd, 0, 51},
		[]int{records[0].Args[0], records[0].Args[1], len(fill), int(fill[0]), int(fill[MaxCrowd-1])})
}

// tail reads a log to its end while others write, and returns the records that it saw. It fails the test unless they
// are in order; there may be gaps where the writers overran tail.
func tail(t *testing.T, log *Log, done *atomic.Bool) map[uint64]Record {
	seen := map[uint64]Record{}
	var seq uint64
	var last Record
	for batch := []Record(nil); ; {
		ended := done.Load()
		var ok bool
		batch, ok = log.Since(batch[:0], seq, 100)
		if !ok {
			seq = max(seq, log.Oldest()-1)
			continue
		}
		for _, r := range batch {
			if seq++; r.Seq != seq {
				t.Errorf("after %d the log shows %d", seq-1, r.Seq)
				return seen
			}
			assert.True(t, r.Time >= last.Time, "record %d was made %v before record %d", r.Seq, last.Time-r.Time,
				last.Seq)
			seen[r.Seq], last = r, r
		}
		if ended && len(batch) == 0 {
			return seen
		}
	}
}

// TestReadersSeeTheSameLogWhileItIsWritten has four writers overrun a log: two readers must see the same whole records.
func TestReadersSeeTheSameLogWhileItIsWritten(t *testing.T) {
	const writers, each = 4, 20000
	log := NewLog(clock.RealClock{}, 2000)
	var writing, reading sync.WaitGroup
	var done atomic.Bool
	seen := make([]map[uint64]Record, 2)
	for i := range seen {
		reading.Go(func() { seen[i] = tail(t, log, &done) })
	}
	for range writers {
		p := New(log).Subject("w")
		writing.Go(func() {
			for n := range each {
				p.Event(InputSent, "ADDED", "default/a", uint64(n), n, n)
			}
		})
	}
	writing.Wait()
	done.Store(true)
	reading.Wait()
	for seq, r := range seen[0] {
		require.True(t, r.Args[0] == int(r.RV) && r.Args[1] == int(r.RV) && r.Subject == "w" && r.Point == InputSent,
			"record %d is a mixture of two: %+v", seq, r)
		other, ok := seen[1][seq]
		require.True(t, !ok || other == r, "one reader sees %+v, the other %+v", r, other)
	}
	if last := log.Last(); last != writers*each || len(seen[0]) == 0 || seen[0][last].Seq != last {
		t.Errorf("last: got %d, want %d, and every reader to see it", last, writers*each)
	}
}
