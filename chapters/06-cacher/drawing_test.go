package cacher

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	watchcache "listwatch/chapters/04-watchcache"
	"listwatch/internal/check/drawing"
	"listwatch/internal/check/require"
)

// The drawing of the budget over two events: three watchers that do not keep up, a look every five milliseconds.
func TestTheDrawingOfTheBudgetIsOfThisDispatcher(t *testing.T) {
	const (
		step   = 5 * time.Millisecond
		second = 340 * time.Millisecond // when the other event comes
	)
	run(t, nil, func(f *fixture) {
		time.Sleep(time.Minute)
		rv := f.create("default/a")
		var slow [3]watch.Interface
		for i := range slow {
			slow[i] = f.watch("", everything(rv))
		}
		for range 21 { // result, the watcher's hand, input
			f.update("default/a")
			synctest.Wait()
		}
		reads := map[time.Duration]int{
			30 * time.Millisecond: 0, 60 * time.Millisecond: 2, second + step: 0, second + 2*step: 2,
		}

		d := drawing.New("budget.svg", 308)
		at := func(when time.Duration) int { return 96 + int(when/time.Millisecond) }
		level := func(budget time.Duration) int { return 290 - int(budget/time.Millisecond) }
		line := fmt.Sprintf("M%d %d", at(-20*time.Millisecond), level(f.Snapshot().Budget))
		ends := [3]time.Duration{600 * time.Millisecond, 0, 600 * time.Millisecond}
		var marks []string
		terminated, waiting := int64(0), time.Duration(-1)
		for when := time.Duration(0); when <= 600*time.Millisecond; when += step {
			if when == 0 || when == second {
				line += fmt.Sprintf("L%d %d", at(when), level(f.Snapshot().Budget))
				marks = append(marks, fmt.Sprintf("event at %d ms, %d ms to spend",
					when.Milliseconds(), f.Snapshot().Budget.Milliseconds()))
				f.update("default/a")
			}
			if i, ok := reads[when]; ok {
				<-slow[i].ResultChan()
				d.In("acts", func() { d.Box(at(when)-2, 40+i*34, 4, 22, "fill") })
				d.Text(at(when)+8, 57+i*34, "", "makes room after %d ms", (when % second).Milliseconds())
			}
			synctest.Wait()
			s := f.Snapshot()
			if s.NTerminated > terminated {
				d.Box(at(when)-2, 74, 4, 22, "full")
				d.Text(at(when)+8, 91, "bold", "evicted after %d ms", when.Milliseconds())
				ends[1] = when
			}
			if s.Dispatching && waiting < 0 {
				waiting = when
			}
			if !s.Dispatching && waiting >= 0 {
				d.Box(at(waiting), 152, at(when)-at(waiting), 22, "full")
				d.Text(at(when)+8, 168, "", "the dispatcher waited %d ms", (when - waiting).Milliseconds())
				waiting = -1
			}
			terminated = s.NTerminated
			line += fmt.Sprintf("L%d %d", at(when), level(s.Budget))
			time.Sleep(step)
		}
		for i := range slow {
			d.Text(16, 57+i*34, "mono", "w%d", i+1)
			d.Path("way", "M60 %dH%d", 66+i*34, at(ends[i]))
		}
		d.Text(16, 168, "bold", "all wait")
		d.In("acts", func() { d.Path("wall", "%s", line) })
		d.Text(16, 240, "bold", "budget")
		d.Text(at(150*time.Millisecond), 262, "soft", "+%d ms each second", refreshPerSecond.Milliseconds())
		d.Text(at(second)+30, 262, "soft", "what is unused comes back")
		d.Text(72, level(maxBudget)+5, "end soft", "%d ms", maxBudget.Milliseconds())
		d.Text(88, level(0)+5, "end soft", "0")
		d.Path("way", "M96 %dH704", level(0))
		for i, mark := range marks {
			d.Path("way later", "M%d 30V300", at(time.Duration(i)*second))
			d.Text(at(time.Duration(i)*second), 22, "", "%s", mark)
		}
		d.Check(t)
	})
}

// The drawing of a watch that begins: the same change, once between choosing the place in the ring and registering,
// once after both. The first is what would happen without the lock, played by hand.
func TestTheDrawingOfTheLockIsOfThisCacher(t *testing.T) {
	d := drawing.New("watch-begins.svg", 334)
	for _, locked := range []bool{false, true} {
		run(t, nil, func(f *fixture) {
			rv := f.create("default/a")
			synctest.Wait()
			req := require.Value(f.newWatchRequest(prefix+"/", everything(rv)))(t)
			req.watcher = f.newWatcher(f.ctx, req)
			req.requiredRV = req.requestedRV
			change := func() string {
				rv := f.update("default/a")
				synctest.Wait()
				return rv
			}
			var first string
			if locked {
				f.startWatch(f.ctx, req)
				first = change()
			} else {
				var chosen *watchcache.Interval
				choose := func(interval *watchcache.Interval, _ uint64) { chosen = interval }
				require.NoError(t, f.watchCache.BeginWatch(req.requiredRV, req.key, req.opts, choose))
				first = change()
				f.register(f.ctx, req, chosen, 0)
			}
			next := change()
			got := seen(req.watcher)
			req.watcher.Stop()
			seen(req.watcher)
			drawLanes(d, locked, rv, first, next, got)
		})
	}
	d.Check(t)
}

// drawLanes draws the goroutine that begins the watch above, and the one that writes into the cache below.
func drawLanes(d *drawing.Drawing, locked bool, rv, first, next string, got []string) {
	y, title, write := 26, "without the lock", 260
	if locked {
		y, title, write = 190, "with the lock", 440
	}
	d.Text(16, y, "bold", "%s", title)
	d.Text(16, y+40, "mono", "Watch")
	d.Text(16, y+90, "mono", "writer")
	d.Path("way", "M90 %dH704M90 %dH704", y+48, y+98)
	d.In("kept", func() {
		if locked {
			d.Box(110, y+14, 290, 52, "wall")
			d.Text(408, y+34, "soft", "under the cache's lock")
		}
	})
	d.In("acts", func() {
		d.Box(130, y+37, 8, 22, "fill")
		d.Box(360, y+37, 8, 22, "fill")
	})
	d.Text(146, y+40, "", "interval: after %s", rv)
	d.Text(354, y+40, "end", "register")
	d.In("queue", func() {
		d.Box(write, y+87, 8, 22, "fill")
		d.Box(580, y+87, 8, 22, "fill")
	})
	if locked {
		d.Box(260, y+92, 172, 12, "full")
		d.Text(254, y+94, "end soft", "waits for it")
	}
	d.Text(write+12, y+90, "", "append %s", first)
	d.Text(592, y+90, "", "append %s", next)
	verdict := "the watcher sends " + strings.Join(got, ", ")
	if len(got) == 1 {
		verdict += ": " + first + " is lost"
	}
	d.Text(16, y+132, "", "%s", verdict)
}
