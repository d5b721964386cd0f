package cacher

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	watchcache "listwatch/chapters/04-watchcache"
	"listwatch/internal/check/chapterdrawing"
	"listwatch/internal/check/require"
)

// The drawing of the budget over two events: three watchers that do not keep up, of which none to three have stopped
// reading; a look every five milliseconds.
func TestTheDrawingOfTheBudgetIsOfThisDispatcher(t *testing.T) {
	d := chapterdrawing.New("budget.svg", 366)
	for n := range 4 {
		d.Pose("watchers that have stopped reading", n, 1, func() {
			run(t, nil, func(f *fixture) { drawBudget(d, f, []int{1, 2, 0}[:n]) })
		})
	}
	d.Check(t)
}

// drawBudget draws what happens if some of three watchers have stopped reading.
func drawBudget(d *chapterdrawing.Drawing, f *fixture, stopped []int) {
	const (
		step   = 5 * time.Millisecond
		second = 340 * time.Millisecond // when the other event comes
		end    = 600 * time.Millisecond
	)
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
		6 * step: 0, 12 * step: 2, 18 * step: 1, second + step: 0, second + 2*step: 2, second + 3*step: 1,
	}

	at := func(when time.Duration) int { return 100 + int(when/time.Millisecond)*85/100 }
	level := func(budget time.Duration) float64 { return 298 - budget.Seconds()*1000 }
	line := fmt.Sprintf("M%d %g", at(-20*time.Millisecond), level(f.Snapshot().Budget))
	ends := [3]time.Duration{end, end, end}
	terminated, waits := int64(0), []time.Duration{}
	var began, spend time.Duration
	for when := time.Duration(0); when <= end; when += step {
		if when == 0 || when == second {
			began, spend = when, f.Snapshot().Budget
			waits = append(waits, -1)
			line += fmt.Sprintf("L%d %g", at(when), level(spend))
			d.Path("way later", "M%d 30V298", at(when))
			d.Text(at(when), 22, "", "an event, %d ms to spend", spend.Milliseconds())
			f.update("default/a")
		}
		if i, ok := reads[when]; ok && !slices.Contains(stopped, i) {
			<-slow[i].ResultChan()
			d.In("acts", func() { d.Box(at(when)-2, 40+i*34, 4, 22, "fill") })
			d.Text(at(when)+8, 57+i*34, "", "makes room after %d ms", (when - began).Milliseconds())
		}
		synctest.Wait()
		s := f.Snapshot()
		if s.NTerminated > terminated {
			for _, i := range stopped {
				d.Box(at(when)-2, 40+i*34, 4, 22, "full")
				d.Text(at(when)+8, 57+i*34, "bold", "evicted after %d ms", when.Milliseconds())
				ends[i] = when
			}
		}
		if waited := when - began; !s.Dispatching && waits[len(waits)-1] < 0 {
			waits[len(waits)-1] = waited
			d.In("queue", func() { d.Box(at(began), 142, at(when)-at(began), 22, "fill") })
			d.Text(at(when)+8, 158, "", "would wait %d ms", waited.Milliseconds())
			if back := s.Budget - waited/(time.Second/refreshPerSecond); back > 0 && waited > 0 {
				d.Text(at(when)+26, 256, "", "%d − %d = %d ms back", spend.Milliseconds(),
					waited.Milliseconds(), back.Milliseconds())
				line += fmt.Sprintf("L%d %g", at(when), level(s.Budget-back))
				d.Arrow("way", "M%d 258L%d %g", at(when)+22, at(when)+3, level(s.Budget)-5)
			}
		}
		terminated = s.NTerminated
		line += fmt.Sprintf("L%d %g", at(when), level(s.Budget))
		time.Sleep(step)
	}
	for i := range slow {
		d.Text(12, 57+i*34, "mono", "w%d", i+1)
		d.Path("way", "M60 %dH%d", 66+i*34, at(ends[i]))
	}
	d.Text(12, 158, "", "next event")
	d.In("acts", func() { d.Path("wall", "%s", line) })
	d.Text(12, 250, "", "budget")
	d.Text(at(80*time.Millisecond), 222, "soft", "+%d ms each second", refreshPerSecond.Milliseconds())
	d.Text(78, int(level(maxBudget))+5, "end soft", "%d ms", maxBudget.Milliseconds())
	d.Text(78, int(level(0))+5, "end soft", "0")
	d.Path("way", "M%d %gH624", at(-20*time.Millisecond), level(0))
	for tick := time.Duration(0); tick <= end; tick += 100 * time.Millisecond {
		d.Path("way", "M%d %gv6", at(tick), level(0))
		d.Text(at(tick), 322, "mid soft", "%d", tick.Milliseconds())
	}
	d.Text(78, 322, "end soft", "time, ms")
	d.Text(12, 354, "", "Stopped: %d of 3. Evicted: %d. The next event would wait %d ms, and later %d ms.",
		len(stopped), terminated, waits[0].Milliseconds(), waits[1].Milliseconds())
}

// The drawing of a watch that begins: the same change, once between choosing the place in the ring and registering,
// once after both. The first is what would happen without the lock, played by hand.
func TestTheDrawingOfTheLockIsOfThisCacher(t *testing.T) {
	d := chapterdrawing.New("watch-begins.svg", 346)
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
func drawLanes(d *chapterdrawing.Drawing, locked bool, rv, first, next string, got []string) {
	y, title, write := 24, "Without the lock", 250
	if locked {
		y, title, write = 200, "With the lock", 420
	}
	d.Text(16, y, "bold", "%s", title)
	d.Text(180, y, "soft", "The writer appends version %s, and then %s.", first, next)
	d.Text(16, y+46, "mono", "Watch")
	d.Text(16, y+96, "mono", "writer")
	d.Path("way", "M84 %dH628M84 %dH628", y+54, y+104)
	if locked {
		d.Box(96, y+20, 320, 52, "wall")
		d.Text(424, y+40, "soft", "holds the cache’s lock")
		d.In("queue", func() { d.Box(250, y+98, write-250, 12, "fill") })
		d.Text(244, y+100, "end", "waits")
	}
	d.In("acts", func() {
		d.Box(108, y+43, 8, 22, "fill")
		d.Box(400, y+43, 8, 22, "fill")
		d.Box(write, y+93, 8, 22, "fill")
		d.Box(556, y+93, 8, 22, "fill")
	})
	d.Text(122, y+46, "", "replay: after version %s", rv)
	d.Text(394, y+46, "end", "registers")
	d.Text(write+12, y+96, "", "version %s", first)
	d.Text(568, y+96, "", "version %s", next)
	for i, event := range got {
		got[i] = strings.TrimPrefix(event, "MODIFIED default/a ")
	}
	verdict := "The watcher sends version " + strings.Join(got, " and version ")
	if len(got) == 1 {
		verdict += " only: version " + first + " is lost"
	}
	d.Text(16, y+134, "", "%s.", verdict)
}
