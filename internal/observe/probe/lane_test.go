package probe

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// quietLog returns a log in which one lane of pods is loud, and a function that returns what was told since its last
// call, point by point, with what a sum adds.
func quietLog() (log *Log, told func() string) {
	log = NewLog(clock.RealClock{}, 1<<16)
	log.LimitLoud(1, func(agent string) bool { return strings.HasPrefix(agent, "kubectl/") })
	var seen uint64
	return log, func() string {
		records, _ := log.Since(nil, seen, 1<<16)
		var words []string
		for _, r := range records {
			seen = r.Seq
			word := r.Subject + " " + r.Point.String()
			if r.Point == WatcherSummed {
				word += fmt.Sprint(" ", r.Args)
			}
			words = append(words, word)
		}
		return strings.Join(words, ", ")
	}
}

// event is what happens to one event at a watcher.
func event(p *Probe) {
	p.Event(InputSent, "ADDED", "default/a", 1, 1, 10)
	p.Event(InputReceived, "ADDED", "default/a", 1, 0, 10)
	p.Event(ResultSent, "ADDED", "default/a", 1, 1, 10)
	p.Event(ResultReceived, "ADDED", "default/a", 1, 0, 10)
	p.Event(FrameWritten, "ADDED", "default/a", 1, 80, 0)
	p.At(WireFlushed, "default/a", 1)
}

func TestWhatAQuietLaneTells(t *testing.T) {
	const whole = "w2 InputSent, w2 InputReceived, w2 ResultSent, w2 ResultReceived, w2 FrameWritten, w2 WireFlushed"
	for _, test := range []struct {
		name string
		do   func(log *Log, p *Probe)
		want string
	}{
		{"what is routine", func(_ *Log, p *Probe) { event(p) }, ""},
		{"an ERROR", func(_ *Log, p *Probe) { p.Event(FrameWritten, "ERROR", "", 0, 80, 0) }, "w2 FrameWritten"},
		{"a sum, and only of what is new", func(log *Log, p *Probe) {
			event(p)
			log.SumLanes()
			log.SumLanes()
			p.Event(InputSent, "ADDED", "default/b", 2, 1, 10)
			log.SumLanes()
		}, "w2 WatcherSummed [1 1 1 1], w2 WatcherSummed [1 0 0 0]"},
		{"a wait, and its end", func(_ *Log, p *Probe) {
			p.Event(ResultBlocked, "ADDED", "default/a", 1)
			event(p)
			event(p)
		}, "w2 ResultBlocked, w2 ResultSent"},
		{"the end of a wait during which it was loud", func(log *Log, p *Probe) {
			p.Event(ResultBlocked, "ADDED", "default/a", 1)
			log.Look("pods", "w2")
			log.Look("pods", "w1")
			log.SumLanes()
			event(p)
			event(p)
		}, "w2 ResultBlocked, w2 WatcherSummed [0 0 0 0], w2 ResultSent"},
		{"that the dispatcher waits for it, and all from there on", func(_ *Log, p *Probe) {
			p.Event(InputSent, "ADDED", "default/a", 1, 10, 10)
			p.Event(InputBlocked, "ADDED", "default/a", 2)
			event(p)
		}, "w2 WatcherSummed [1 0 0 0], w2 InputBlocked, " + whole},
		{"all, when someone looks", func(log *Log, p *Probe) { event(p); log.Look("pods", "w2"); event(p) },
			"w2 WatcherSummed [1 1 1 1], " + whole},
		{"less, when others were looked at since", func(log *Log, p *Probe) {
			log.Look("pods", "w2")
			log.Look("pods", "w1")
			log.SumLanes()
			event(p)
		}, "w2 WatcherSummed [0 0 0 0]"},
		{"all, of a client that is always followed", func(_ *Log, p *Probe) {
			p.Text(WireOpened, "kubectl/v1.37 watch", "", 0)
			event(p)
		}, "w2 WireOpened, " + whole},
		{"all, while a gate is closed", func(log *Log, p *Probe) {
			event(p)
			log.Gate().Close(Query{Station: Etcd})
			event(p)
			log.Gate().Release()
			log.SumLanes()
			event(p)
		}, "w2 WatcherSummed [1 1 1 1], " + whole + ", w2 WatcherSummed [0 0 0 0]"},
		{"its end, with what is late", func(_ *Log, p *Probe) {
			event(p)
			p.At(WatcherRemoved, "", 1)
			p.Event(ResultReceived, "ADDED", "default/a", 1, 0, 10)
		}, "w2 WatcherSummed [1 1 1 1], w2 WatcherRemoved, w2 ResultReceived"},
		{"all, when there is room for it", func(log *Log, p *Probe) {
			New(log).Resource("pods").Lane("w3").At(WatcherAdded, "", 1, 10)
			for _, ln := range slices.Clone(log.lanes.open["pods"])[:1] {
				ln.notes(WatcherRemoved, "")
			}
			log.SumLanes()
			event(p)
		}, "w3 WatcherAdded, w3 WatcherSummed [0 0 0 0], " + whole},
	} {
		t.Run(test.name, func(t *testing.T) {
			log, told := quietLog()
			pods := New(log).Resource("pods")
			first, p := pods.Lane("w1"), pods.Lane("w2")
			first.At(WatcherAdded, "", 1, 10)
			p.At(WatcherAdded, "", 1, 10)
			if got, want := told(), "w1 WatcherAdded, w2 WatcherAdded, w2 WatcherSummed [0 0 0 0]"; got != want {
				t.Fatalf("they begin with %s, want %s", got, want)
			}
			test.do(log, p)
			assert.Equal(t, test.want, told())
		})
	}
}

// TestEachMomentIsReportedOrSummed lets lanes become loud and quiet all the time while their moments happen.
func TestEachMomentIsReportedOrSummed(t *testing.T) {
	const lanes, each = 3, 2000
	log, _ := quietLog()
	pods := New(log).Resource("pods")
	var moments, changes sync.WaitGroup
	stop := make(chan struct{}) // closed when all moments have happened; nothing is sent
	for i := range lanes {
		p := pods.Lane(fmt.Sprint("w", i))
		p.At(WatcherAdded, "", 1, 10)
		for _, point := range []Point{InputSent, InputReceived, ResultSent, ResultReceived} {
			moments.Go(func() {
				for range each {
					p.Event(point, "ADDED", "default/a", 1, 1, 10)
				}
			})
		}
	}
	for _, change := range []func(){
		log.SumLanes,
		func() { log.Look("pods", "w1") },
		func() { log.Look("pods", "w2") },
		func() { log.Gate().Close(Query{Station: Etcd}); log.Gate().Release() },
	} {
		changes.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					change()
				}
				if log.Last() > 1<<15 {
					return // the log is to hold everything
				}
			}
		})
	}
	moments.Wait()
	close(stop)
	changes.Wait()
	log.SumLanes()
	got := map[string]int{}
	records, ok := log.Since(nil, 0, 1<<16)
	require.True(t, ok, "the log does not hold everything")
	for _, r := range records {
		got[r.Subject+" "+r.Point.String()]++
		if r.Point == WatcherSummed {
			for i, name := range r.Point.Info().Args.List() {
				got[r.Subject+" "+name] += r.Args[i]
			}
		}
	}
	for i := range lanes {
		for _, point := range []Point{InputSent, InputReceived, ResultSent, ResultReceived} {
			n := got[fmt.Sprint("w", i, " ", point)]
			assert.True(t, n == each, "%s of w%d: %d reported or summed, want %d", point, i, n, each)
		}
	}
}

// tail reads a log to its end while others write, and returns the records it saw: in order, with gaps where it was
// overrun.
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

// TestReadersSeeTheSameLogWhileItIsWritten overruns small logs with many writers, so that blocks are used again and
// again.
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
