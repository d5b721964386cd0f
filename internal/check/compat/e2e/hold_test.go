package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
)

// patience is for a machine that does much else: nothing here depends on how long anything takes.
const patience = time.Minute

// world is what the program says of itself when it is held.
type world struct {
	Held    bool
	Passed  int
	LetGo   string
	Gates   []struct{ Station, Subject string }
	Waiting []struct {
		Goroutine, Point, Station, Resource, Subject, Key string
		Seconds                                           float64
		Seq                                               uint64
	}
	Clock struct {
		Now    time.Time
		Paused bool
		Next   []struct{ Who string }
	}
	Attending  int
	Unattended string
}

// command sends one of the page's commands and returns how the world is then.
func (v *viz) command(t *testing.T, path, body string) world {
	t.Helper()
	client := &http.Client{Timeout: patience}
	response, err := client.Post(v.URL+path, "application/json", strings.NewReader(body))
	require.NoError(t, err)
	defer response.Body.Close()
	var w world
	if err := json.NewDecoder(response.Body).Decode(&w); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("POST %s %s: %s, %v", path, body, response.Status, err)
	}
	return w
}

func (v *viz) world(t *testing.T) (w world) {
	t.Helper()
	v.Get(t, "/viz/hold", &w)
	return w
}

// queues is what the stations say of the queues for pods.
type queues struct {
	Incoming, Result int // of the cacher, and of its watch on etcd
	Terminated       int
	Watchers         []watcherQueues
}

type watcherQueues struct {
	ID, Text            string
	InputLen, ResultLen int
}

// watcher returns the watcher whose scope says so; without an ID: there is none.
func (q *queues) watcher(text string) (found watcherQueues) {
	for _, each := range q.Watchers {
		if strings.Contains(each.Text, text) {
			found = each
		}
	}
	return found
}

func (v *viz) queues(t *testing.T) (q queues) {
	t.Helper()
	var state struct {
		Server struct {
			Cachers []struct {
				Resource                 string
				IncomingLen, NTerminated int
				Watchers                 []watcherQueues
			}
			Stores []struct {
				Watches []struct {
					Text      string
					ResultLen int
				}
			}
		}
	}
	v.Get(t, "/viz/state", &state)
	for _, each := range state.Server.Cachers {
		if each.Resource == "pods" {
			q.Incoming, q.Terminated, q.Watchers = each.IncomingLen, each.NTerminated, each.Watchers
		}
	}
	for _, store := range state.Server.Stores {
		for _, watch := range store.Watches {
			if strings.HasPrefix(watch.Text, "/registry/pods/") {
				q.Result = watch.ResultLen
			}
		}
	}
	return q
}

// queued waits until the queues are as they should be.
func (v *viz) queued(t *testing.T, holds func(q queues) bool) {
	t.Helper()
	program.Eventually(t, patience, func() (bool, string) { q := v.queues(t); return holds(q), fmt.Sprintf("%+v", q) })
}

// becomes waits until the world is as it should be.
func (v *viz) becomes(t *testing.T, holds func(w world) bool) {
	t.Helper()
	program.Eventually(t, patience, func() (bool, string) {
		w := v.world(t)
		return holds(w), fmt.Sprintf("%+v\n%s", w, v.Stderr.String())
	})
}

// stream is a raw watch on pods, and the names it was told of.
type stream struct {
	mu    sync.Mutex // guards the fields below
	names []string
	ended bool
}

func (s *stream) seen() (names []string, ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.names), s.ended
}

// watchPods opens a watch whose selector, which every pod matches, is its name in the snapshots.
func (v *viz) watchPods(t *testing.T, selector string) *stream {
	t.Helper()
	response, err := http.Get(v.URL + "/api/v1/pods?watch=true&labelSelector=" + selector)
	require.NoError(t, err)
	s, done := &stream{}, make(chan struct{}) // done is closed by the reader
	go func() {
		defer close(done)
		for in, more := json.NewDecoder(response.Body), true; more; {
			var event struct {
				Object struct{ Metadata struct{ Name string } }
			}
			more = in.Decode(&event) == nil
			s.mu.Lock()
			if s.ended = !more; more {
				s.names = append(s.names, event.Object.Metadata.Name)
			}
			s.mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		response.Body.Close()
		<-done
	})
	return s
}

// create creates n pods and returns their names.
func (v *viz) create(t *testing.T, prefix string, n int) (names []string) {
	t.Helper()
	for i := range n {
		names = append(names, fmt.Sprintf("%s-%03d", prefix, i))
		v.createPod(t, names[i])
	}
	return names
}

// TestAHeldWorldLosesNoWatcherUntilItsClockRuns is the story the hold is for. One watcher does not read. With the clock
// stopped the dispatcher waits for it, and all that is behind fills up; held for ten seconds on top of that, no watcher
// is lost; let go with the clock running, the slow one is evicted, and only that.
func TestAHeldWorldLosesNoWatcherUntilItsClockRuns(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-demo=false", "-controllers=false", "-flight=off")
	k := kubectlFor(t, v) // it may have to be built: not while the world is held
	fast, slow := v.watchPods(t, "fast!=no"), v.watchPods(t, "slow!=no")
	v.queued(t, func(q queues) bool { return q.watcher("slow!=no").ID != "" && q.watcher("fast!=no").ID != "" })
	q := v.queues(t)
	id := q.watcher("slow!=no").ID
	before := len(q.Watchers)
	v.command(t, "/viz/hold", fmt.Sprintf(`{"do":"hold","station":"wire","resource":"pods","subject":%q}`, id))
	v.command(t, "/viz/clock", `{"paused":true}`)
	names := v.create(t, "pod", 30)

	// Result and input are full, and so are the hands of who sends into each; the dispatcher has one more that it
	// cannot place. The other seven stand in incoming, with bookmarks of the cache between them: let go all at once
	// they fit into an input of ten, so that no watcher that reads can come to be late.
	v.queued(t, func(q queues) bool {
		each := q.watcher("slow!=no")
		return each.ResultLen == 10 && each.InputLen == 10 && q.Incoming >= 7
	})
	began := v.command(t, "/viz/hold", `{"do":"hold"}`)
	require.True(t, began.Held && began.Clock.Paused, "not held: %+v", began)
	held := time.Now()
	if out := k.Run(t, "get", "pods", "--request-timeout=20s"); !strings.Contains(out, "pod-029") {
		t.Errorf("while held kubectl shows:\n%s", out)
	}
	program.Eventually(t, patience, func() (bool, string) { return time.Since(held) > 10*time.Second, "ten seconds" })
	now := v.world(t)
	if q := v.queues(t); !now.Held || q.Terminated != 0 || len(q.Watchers) != before ||
		!now.Clock.Now.Equal(began.Clock.Now) {
		t.Errorf("after ten seconds: %+v, %+v", now, q)
	}
	if _, ended := slow.seen(); ended {
		t.Error("the slow watch has ended while the world was held")
	}

	v.command(t, "/viz/hold", `{"do":"release"}`)
	if q := v.queues(t); q.Terminated != 0 {
		t.Errorf("let go, but the clock stands: %+v", q)
	}
	v.command(t, "/viz/clock", `{"paused":false}`)
	program.Eventually(t, patience, func() (bool, string) {
		got, ended := fast.seen()
		q := v.queues(t)
		return q.Terminated == 1 && !ended && len(got) == len(names),
			fmt.Sprintf("the fast one has %d, ended: %v; %+v", len(got), ended, q)
	})
	if got, _ := fast.seen(); !slices.Equal(got, names) {
		t.Errorf("the fast one saw %v", got)
	}
	v.command(t, "/viz/hold", `{"do":"release"}`) // the gate
	program.Eventually(t, patience, func() (bool, string) {
		got, ended := slow.seen()
		return ended, fmt.Sprintf("the slow one has seen %d", len(got))
	})
	got, _ := slow.seen()
	assert.False(t, len(got) == 0 || len(got) >= len(names) || !slices.Equal(got, names[:len(got)]),
		"the slow one was told of %d, want a beginning: %v", len(got), got)
}

// TestWhatIsBehindAGateFillsUpAndComesThrough also ends the program while it is held.
func TestWhatIsBehindAGateFillsUpAndComesThrough(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-demo=false", "-controllers=false")
	k := kubectlFor(t, v) // it may have to be built: not while the world is held
	s := v.watchPods(t, "reader!=no")
	// no watcher that reads can come to be late, however slow the machine is
	v.command(t, "/viz/clock", `{"paused":true}`)
	v.command(t, "/viz/hold", `{"do":"hold","station":"incoming","resource":"pods"}`)
	names := v.create(t, "pod", 230)
	// Exactly to their capacities: incoming and, because the reflector cannot go on, resultChan before it.
	v.queued(t, func(q queues) bool { return q.Incoming == 100 && q.Result == 100 })
	if w := v.world(t); w.Held || len(w.Waiting) != 1 || w.Waiting[0].Point != "IncomingReceived" ||
		w.Waiting[0].Goroutine != "cacher.dispatchEvents" || w.Waiting[0].Key != "default/pod-000" {
		t.Errorf("held: %+v", w)
	}
	if w := v.command(t, "/viz/hold", `{"do":"step","key":"default/pod-000"}`); w.Passed != 1 {
		t.Errorf("%d passed with the first pod, want the dispatcher", w.Passed)
	}
	for _, next := range []string{"default/pod-001", "default/pod-002"} {
		v.becomes(t, func(w world) bool { return len(w.Waiting) == 1 && w.Waiting[0].Key == next })
		v.command(t, "/viz/hold", `{"do":"step","station":"incoming"}`)
	}
	v.command(t, "/viz/hold", `{"do":"release","station":"incoming","resource":"pods"}`)
	program.Eventually(t, patience, func() (bool, string) {
		got, ended := s.seen()
		return !ended && slices.Equal(got, names), fmt.Sprintf("%d of %d, ended: %v", len(got), len(names), ended)
	})

	v.command(t, "/viz/hold", `{"do":"hold"}`)
	program.Start(t, k.Command("delete", "pod", "pod-000", "--now"))
	v.becomes(t, func(w world) bool { return strings.Contains(fmt.Sprint(w.Waiting), "RequestReceived") })
	v.Interrupt(t)
	if code := v.ExitCode(t, program.EndsWithin); code != 0 {
		t.Errorf("exit status %d, want 0; stderr:\n%s", code, v.Stderr.String())
	}
}

// TestWhoLooksAtAHeldWorldIsAnswered takes a busy world hop by hop and asks everything there is to ask at each. A lock
// that a held goroutine kept would be found by the one whose answer does not come.
func TestWhoLooksAtAHeldWorldIsAnswered(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-flight=off")
	k := kubectlFor(t, v)
	v.command(t, "/viz/hold", `{"do":"hold","unattended":"1m"}`)
	v.command(t, "/viz/clock", `{"paused":false}`) // so that there is something to hold
	want, stations := []string{"http", "etcd", "etcd3", "incoming", "watcher", "wire", "reflector", "fifo",
		"listener"}, map[string]bool{}
	missing := func() bool { return slices.ContainsFunc(want, func(station string) bool { return !stations[station] }) }
	client := &http.Client{Timeout: 20 * time.Second}
	for hop, began := 0, time.Now(); missing() && time.Since(began) < patience; hop++ { // the demo acts in its own time
		for _, path := range []string{"/viz/state", "/viz/snapshot", "/viz/watchers", "/metrics",
			"/api/v1/pods?resourceVersion=0", "/api/v1/nodes"} {
			if hop%20 != 0 && strings.HasPrefix(path, "/api") {
				continue // a reader who wants to be fresh waits for up to three seconds
			}
			response, err := client.Get(v.URL + path)
			if err != nil {
				t.Fatalf("hop %d, GET %s: %v; held: %+v", hop, path, err, v.world(t).Waiting)
			}
			response.Body.Close()
			assert.True(t, response.StatusCode == http.StatusOK, "hop %d, GET %s: %s", hop, path, response.Status)
		}
		for _, each := range v.world(t).Waiting {
			stations[each.Station] = true
		}
		v.command(t, "/viz/hold", `{"do":"step"}`)
	}
	assert.False(t, missing(), "goroutines were held at %v, want at each of %v", stations, want)
	k.Run(t, "get", "pods", "--request-timeout=20s")
	v.command(t, "/viz/hold", `{"do":"hold","unattended":"100ms"}`)
	v.becomes(t, func(w world) bool { // no page is there: the watchdog
		return !w.Held && !w.Clock.Paused && w.LetGo != "" && strings.Contains(v.Stderr.String(), "was resumed")
	})
	before := v.seq(t)
	program.Eventually(t, patience, func() (bool, string) { return v.seq(t) > before+50, "the world goes on" })
}

func (v *viz) seq(t testing.TB) uint64 {
	t.Helper()
	var snapshot struct{ Seq uint64 }
	v.Get(t, "/viz/snapshot", &snapshot)
	return snapshot.Seq
}

// TestAManualClockMovesTheWholeProgram needs no page: what the demo does it does every ten seconds of the world's time,
// and while that stands it does nothing.
func TestAManualClockMovesTheWholeProgram(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-clock=manual", "-controllers=false")
	pods := func() int {
		var list struct{ Items []any }
		v.Get(t, "/api/v1/pods", &list)
		return len(list.Items)
	}
	become := func(n int) {
		t.Helper()
		program.Eventually(t, patience, func() (bool, string) { return pods() == n, fmt.Sprint(pods()) })
	}
	start := v.world(t).Clock
	require.True(t, start.Paused && len(start.Next) != 0, "clock: %+v", start)
	v.standsStill(t)
	had := pods()
	for had < 3 { // the demo keeps four alive, and may have made one before its clock was stopped
		now := v.world(t).Clock.Now
		v.command(t, "/viz/clock", `{"advance":"10s"}`)
		if moved := v.world(t).Clock.Now.Sub(now); moved != 10*time.Second {
			t.Errorf("the clock moved by %v, want 10s", moved)
		}
		had++
		become(had)
	}
	for i := 0; ; i++ {
		next := v.world(t).Clock.Next[0].Who
		v.command(t, "/viz/clock", `{"advance":"next"}`)
		if strings.Contains(next, "demo") {
			break
		}
		if i > 100 {
			t.Fatalf("the demo's timer is not among the next hundred: %+v", v.world(t).Clock.Next)
		}
	}
	become(had + 1)
	v.command(t, "/viz/clock", `{"speed":10,"paused":false}`)
	began := v.world(t).Clock.Now
	wall := time.Now()
	program.Eventually(t, patience, func() (bool, string) {
		moved := v.world(t).Clock.Now.Sub(began)
		return moved > 10*time.Second, fmt.Sprintf("%v in %v on the wall", moved, time.Since(wall))
	})
}

// standsStill looks for six seconds of the wall at a program whose clock stands. What happens is not ours: etcd says
// every five seconds how far it is. A timer of ours that ran by the wall would show.
func (v *viz) standsStill(t *testing.T) {
	t.Helper()
	from, began := v.seq(t), time.Now()
	// what was under way when the clock was stopped comes to its end
	program.Eventually(t, patience, func() (bool, string) {
		if now := v.seq(t); now != from {
			from, began = now, time.Now()
		}
		return time.Since(began) > time.Second, fmt.Sprint("records still come: ", from)
	})
	program.Eventually(t, patience, func() (bool, string) { return time.Since(began) > 7*time.Second, "six seconds" })
	var answer struct{ Records []json.RawMessage }
	v.Get(t, fmt.Sprintf("/viz/records?from=%d", from+1), &answer)
	for i, written := range answer.Records {
		r, err := fold.ReadRecord(written)
		require.NoError(t, err)
		told := r.Key == "" && (r.Type == "BOOKMARK" || slices.Contains([]probe.Point{probe.Etcd3IncomingSent,
			probe.Etcd3IncomingReceived, probe.RVAdvanced}, r.Point))
		assert.True(t, told, "though the clock stands: %s", r.Sentence())
		if first, err := fold.ReadRecord(answer.Records[0]); err != nil || r.Time != first.Time {
			t.Errorf("record %d is of %v, the first one of %v: %v", i, r.Time, first.Time, err)
		}
	}
}

// TestThePageHoldsTheWorldAndOneKeyMovesAPodToItsHandler holds the world, creates a pod, and presses one key until
// its handler has run. After each press the pod is held further on its way, and nothing waits since a time to come. Its
// gate has its name. Then all goes on by one button.
func TestThePageHoldsTheWorldAndOneKeyMovesAPodToItsHandler(t *testing.T) {
	t.Parallel()
	v, p := still(t)
	const mode = `document.body.dataset.mode`
	p.click(t, "#hold")
	p.becomes(t, "held", mode)
	p.pick(t, "#create-pod")
	p.until(t, `$$("#held tr").some((tr) => tr.held?.point === "RequestReceived")`)
	const ran = `listwatch.player.tape.between(1, listwatch.player.head + 1)
		.some((r) => r.point === "HandlerCalled" && listwatch.follow.matches(r))`
	const held = `$picture().held.filter((h) => listwatch.follow.matches(h)).map((h) => h.at + h.goroutine).join()`
	presses, before, named := 0, "", false
	for ; presses < 24 && !evaluate[bool](t, p, ran); presses++ {
		p.strike(t, "h")
		p.until(t, `%s || (%s !== "" && %[2]s !== %q)`, ran, held, before)
		before = evaluate[string](t, p, held)
		p.none(t, "held since a time to come",
			`$$("#held td.n").map((td) => td.textContent).filter((text) => text.startsWith("-"))`)
		named = named || evaluate[bool](t, p, `$$("[data-gate-at]").some((gate) => gate.dataset.keys === "default/a"
			&& gate.querySelector(".who").textContent === "a")`)
	}
	if presses < 8 || presses == 24 {
		t.Errorf("after %d presses the pod is held at %q; want its handler to run after 8 at least", presses, before)
	}
	assert.True(t, named, "no gate has the pod's name")
	if w := v.world(t); w.Attending != 1 || w.Unattended != "15s" {
		t.Errorf("the watchdog knows of %d pages and would wait %s", w.Attending, w.Unattended)
	}
	// Frozen is the view, held is the world: one does not hide the other.
	p.run(t, `listwatch.player.toggle()`)
	p.becomes(t, "frozen", mode)
	assert.True(t, v.world(t).Held, "freezing the view let the world go")
	p.run(t, `listwatch.player.toggle()`)
	p.becomes(t, "held", mode)
	p.click(t, "#hold")
	p.becomes(t, "live", mode)
	v.becomes(t, func(w world) bool { return !w.Held && len(w.Waiting) == 0 && !w.Clock.Paused })
	p.sameAsServer(t, v)

	// A gate of one station; and a page that goes while it is closed.
	p.click(t, "#world-clock", `#world [data-gate="watcher"]`)
	p.becomes(t, "true watcher", `$("[data-gate-at=watcher]").dataset.closed + " " + document.body.dataset.gates`)
	p.becomes(t, "live", mode)
	p.do(t, chromedp.Navigate("about:blank"))
	v.becomes(t, func(w world) bool { return w.Attending == 0 })
	v.command(t, "/viz/hold", `{"do":"hold","unattended":"100ms"}`) // what was left is let go by the watchdog
	v.becomes(t, func(w world) bool { return len(w.Gates) == 0 && !w.Held && w.LetGo != "" })
}
