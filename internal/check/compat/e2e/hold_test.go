package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
)

// patience is for a machine that does much else: nothing here depends on how long anything takes.
const patience = program.HangsAfter

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

// becomes waits until the world is as it should be.
func (v *viz) becomes(t *testing.T, holds func(w world) bool) {
	t.Helper()
	program.Eventually(t, patience, func() (bool, string) {
		w := v.world(t)
		return holds(w), fmt.Sprintf("%+v\n%s", w, v.Stderr.String())
	})
}

// TestAHeldWorldLosesNoWatcherUntilItsClockRuns is the story the hold is for. One watcher is held before its wire. With
// the clock stopped the dispatcher waits for it, and all that is behind fills up; held for some seconds on top of that,
// no watcher is lost; let go with the clock running, the slow one is evicted, and only that.
func TestAHeldWorldLosesNoWatcherUntilItsClockRuns(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-demo=false", "-controllers=false", "-flight=off")
	k := kubectlFor(t, v) // it may have to be built: not while the world is held
	slow, err := http.Get(v.URL + "/api/v1/pods?watch=true&labelSelector=slow!=no")
	require.NoError(t, err)
	defer slow.Body.Close()
	var opened struct {
		Records []struct {
			Subject string
			Texts   map[string]string
		}
	}
	program.Eventually(t, patience, func() (bool, string) {
		v.Get(t, "/viz/records?point=WireOpened", &opened)
		return strings.HasPrefix(opened.Records[len(opened.Records)-1].Texts["agent"], "Go-http-client"),
			fmt.Sprint(opened)
	})
	id := opened.Records[len(opened.Records)-1].Subject
	v.command(t, "/viz/hold", fmt.Sprintf(`{"do":"hold","station":"wire","resource":"pods","subject":%q}`, id))
	v.command(t, "/viz/clock", `{"paused":true}`)
	for i := range 30 {
		v.createPod(t, fmt.Sprintf("pod-%03d", i))
	}
	program.Eventually(t, patience, func() (bool, string) {
		points := v.Points(t)
		return points["DispatchBlocked"] == 1, fmt.Sprint(points)
	})
	began := v.command(t, "/viz/hold", `{"do":"hold"}`)
	require.True(t, began.Held && began.Clock.Paused, "not held: %+v", began)
	held := time.Now()
	if out := k.Run(t, "get", "pods", "--request-timeout=20s"); !strings.Contains(out, "pod-029") {
		t.Errorf("while held kubectl shows:\n%s", out)
	}
	program.Eventually(t, patience, func() (bool, string) { return time.Since(held) > 5*time.Second, "five seconds" })
	lost := func() int { return v.Points(t)["WatcherForced"] }
	now := v.world(t)
	assert.True(t, now.Held && lost() == 0 && now.Clock.Now.Equal(began.Clock.Now), "after five seconds: %+v", now)
	v.command(t, "/viz/hold", `{"do":"release"}`)
	assert.Equal(t, 0, lost(), "let go, but the clock stands: watchers that were lost")
	v.command(t, "/viz/clock", `{"paused":false}`)
	program.Eventually(t, patience, func() (bool, string) { return lost() == 1, "the slow watcher is not evicted" })
	v.command(t, "/viz/hold", `{"do":"release"}`) // the gate
	told, err := io.ReadAll(slow.Body)
	n := strings.Count(string(told), "\n")
	assert.True(t, err == nil && n > 0 && n < 30 && lost() == 1, "the slow one was told of %d, %v; want a beginning",
		n, err)
}

func (v *viz) seq(t testing.TB) uint64 {
	t.Helper()
	var snapshot struct{ Seq uint64 }
	v.Get(t, "/viz/snapshot", &snapshot)
	return snapshot.Seq
}

// TestAManualClockMovesTheWholeProgram needs no page: what the demo does it does every ten seconds of the world's time.
// The clock's own test holds that nothing happens meanwhile (internal/observe/worldclock).
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
		if i > 1000 { // each cache has timers of its own
			t.Fatalf("the demo's timer is not among the next thousand: %+v", v.world(t).Clock.Next)
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

// TestThePageHoldsTheWorldAndOneKeyMovesAPodToItsHandler holds the world, creates a pod, and presses one key until
// its handler has run (hold.World.Walk). After each press the pod is held further on its way, and nothing waits since a
// time to come. Its gate has its name. Then all goes on by one button.
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
	// A row's own button lets its goroutine pass.
	const row = `$$("#held tr").find((tr) => tr.held?.rv && listwatch.follow.matches(tr.held))`
	p.until(t, row+` !== undefined`)
	passed := evaluate[int](t, p, row+`.held.seq`)
	p.run(t, row+`.querySelector("button").click()`)
	p.until(t, `!$$("#held tr").some((tr) => tr.held?.seq === %d)`, passed)
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
