package probe

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"

	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/observe/routine"
)

// line is three goroutines with two channels between them: what passes is reported as in a real station.
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

// run passes n values from end to end. The test waits for the end of that, also if it fails in a held world.
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

// counts returns how often each point has been reported.
func (l *line) counts() map[Point]int {
	counts := map[Point]int{}
	records, _ := l.log.Since(nil, 0, l.log.Size())
	for i := range records {
		counts[records[i].Point]++
	}
	return counts
}

// where returns at which points goroutines are held, in path order.
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
		// The source's first value lies in input, so middle has it in hand, and nothing is in result yet.
		assert.EqualSlices(t, []Point{InputSent, InputReceived}, where(gate), "held at")
		n := gate.Step(Query{})
		assert.True(t, n == 2, "%d passed, want 2", n)
		synctest.Wait()
		assert.EqualSlices(t, []Point{InputSent, ResultSent, ResultReceived}, where(gate), "after one hop held at")
		got := l.counts()
		assert.True(t, got[InputSent] == 2 && got[InputReceived] == 1 && got[ResultSent] == 1 &&
			got[ResultReceived] == 1 &&
			got[FrameWritten] == 0, "after one hop reported: %v", got)
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
		gate.Step(Query{}) // 2 stands at InputSent, 1 at ResultSent and ResultReceived
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

func TestBehindAClosedStationTheQueueFillsExactly(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		l := newLine()
		gate := l.log.Gate()
		gate.Close(Query{Station: Wire})
		group := l.run(t, 100)
		synctest.Wait()
		assert.EqualSlices(t, []Point{ResultReceived}, where(gate), "held at")
		// The sink holds one, result and input are full, and so are the hands of those who want to send.
		assert.True(t, len(l.result) == 10 && len(l.input) == 10,
			"queues: %d and %d, want 10 and 10", len(l.result), len(l.input))
		got := l.counts()
		assert.True(t, got[ResultReceived] == 1 && got[ResultSent] == 11 && got[InputReceived] == 12 &&
			got[InputSent] == 22,
			"reported: %v", got)
		gate.Open(Query{Station: Wire})
		group.Wait()
		assert.Equal(t, 100, l.counts()[FrameWritten], "values that arrived")
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
		gate.Hold() // everything is held again
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
			p.At(point, "default/a", 1) // returns, or the test never ends
		}
	}
	p.Texts(RequestReceived, []string{"GET", "/api/v1/pods"}, "", 0)
	p.Texts(RequestAnswered, []string{"GET", "/api/v1/pods", "watch=1"}, "", 0)
	n := len(log.Gate().State().Waiting)
	assert.True(t, n == 0, "%d are held", n)
}
