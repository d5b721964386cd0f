package informer

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	processor "listwatch/chapters/12-processor"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/handlertest"
	"listwatch/internal/check/require"
)

// script is what happens to an informer, step by step:
//
//	set a, delete a      writes
//	mark                 a bookmark
//	cut, expire          all watches end; after expire they cannot be resumed: 410
//	fail, heal           from now on every request fails; from now on none does
//	join, join slow      a handler joins; one that takes a second for everything it is told
//	leave                the handler that joined first leaves
//	settle, wait         everything comes to rest; 20 s pass
//	rest                 so much time passes that nothing happens any more; the store and every handler are looked at
type script struct {
	t             *testing.T
	server        *fakeServer
	bench         *bench
	views         []*handlertest.Follower
	registrations []processor.Registration
}

// play plays steps in a bubble, and returns what was wrong, "" if nothing was. Chance must have spoken before: rapid
// knows nothing of bubbles, and would stop after a day, which passes here in no time.
func play(t *testing.T, fifo string, watchList bool, steps []string) (wrong string) {
	bubble.Test(t, func(t *testing.T) {
		b := newBench(t, Config{FIFO: fifo, UseWatchList: watchList, ResyncPeriod: time.Minute})
		p := &script{t: t, server: b.server, bench: b}
		p.bench.run()
		defer p.bench.end()
		for i, step := range append(steps, "rest") {
			if wrong = p.step(step); wrong != "" {
				wrong = fmt.Sprintf("step %d, %s: %s", i, step, wrong)
				return
			}
		}
	})
	return wrong
}

func (p *script) step(step string) (wrong string) {
	verb, what, _ := strings.Cut(step, " ")
	switch verb {
	case "set":
		p.server.set(what)
	case "delete":
		p.server.delete(what)
	case "mark":
		p.server.bookmark(0)
	case "cut", "expire":
		p.server.cut(verb == "expire")
	case "fail":
		p.server.fail(errBroken)
	case "heal":
		p.server.fail(nil)
	case "join":
		p.join(what == "slow")
	case "leave":
		if len(p.views) > 0 {
			p.bench.RemoveEventHandler(p.registrations[0])
			p.views, p.registrations = p.views[1:], p.registrations[1:]
		}
	case "settle":
		synctest.Wait()
	case "wait":
		time.Sleep(20 * time.Second)
	case "rest":
		p.server.fail(nil)
		time.Sleep(10*time.Minute + 30*time.Second) // not on the minute, when everything is resynced
		synctest.Wait()
		return p.look()
	}
	return ""
}

func (p *script) join(slow bool) {
	v := &handlertest.Follower{}
	if slow {
		v.Delay = time.Second
	}
	p.views = append(p.views, v)
	p.registrations = append(p.registrations, p.bench.add(v, HandlerOptions{}))
}

// look expects that the store and every handler know what the server holds, and that no handler was told anything
// strange.
func (p *script) look() (wrong string) {
	if diff := cmp.Diff(p.server.state(), p.bench.stored()); diff != "" {
		return "store (-server +store):\n" + diff
	}
	for i, v := range p.views {
		state, _, strange := v.Read()
		// A handler that was told nothing has no map.
		if want := p.server.state(); !maps.Equal(want, state) || len(strange) > 0 {
			return fmt.Sprintf("handler %d: %v (-server +handler):\n%s", i, strange, cmp.Diff(want, state))
		}
		if !p.registrations[i].HasSynced() {
			return fmt.Sprintf("handler %d has not synced", i)
		}
	}
	return ""
}

// Whatever happens to the watch, and whenever a handler joins: when all is quiet, each handler knows what the store
// holds, which is what the server holds, and was told nothing strange on the way.
func TestEveryHandlerEndsUpKnowingTheServersState(t *testing.T) {
	steps := rapid.SliceOfN(rapid.SampledFrom([]string{
		"set a", "set b", "set c", "set d", "delete a", "delete b", "delete c", "delete d", "mark", "cut", "expire",
		"expire",
		"fail", "heal", "join", "join slow", "leave", "settle", "wait", "rest",
	}), 12, 80)
	for _, fifo := range []string{FIFOReal, FIFODelta} {
		t.Run(fifo, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				require.Equal(rt, "", play(t, fifo, rapid.Bool().Draw(rt, "watch-list"), steps.Draw(rt, "steps")))
			})
		})
	}
}
