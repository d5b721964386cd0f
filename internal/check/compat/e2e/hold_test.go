package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
)

// patience is the time limit of a wait, long enough for a busy machine.
const patience = program.HangsAfter

// world is the program's report: what is held, which goroutines wait, the clock, and the watchdog.
type world struct {
	Held    bool
	LetGo   string
	Gates   []any
	Waiting []any
	Clock   struct {
		Paused bool
		Next   []any
	}
	Attending  int
	Unattended string
}

// command posts body to path, as the page does, and returns the world in the response.
func (v *viz) command(t *testing.T, path, body string) world {
	t.Helper()
	client := &http.Client{Timeout: patience}
	response := require.Value(client.Post(v.URL+path, "application/json", strings.NewReader(body)))(t)
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

// becomes waits until holds returns true for the world.
func (v *viz) becomes(t *testing.T, holds func(w world) bool) {
	t.Helper()
	program.Eventually(t, patience, func() (bool, string) {
		w := v.world(t)
		return holds(w), fmt.Sprintf("%+v\n%s", w, v.Stderr.String())
	})
}

// TestAHeldWorldLosesNoWatcherUntilItsClockRuns holds one watcher at the station wire. While the clock is stopped, the
// dispatcher waits for the watcher, the queues before it fill up, and no watcher is lost, not even while the whole
// world is held. Once the clock runs, the server evicts the slow watcher, and only that one.
func TestAHeldWorldLosesNoWatcherUntilItsClockRuns(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-demo=false", "-controllers=false", "-flight=off")
	slow := require.Value(http.Get(v.URL + "/api/v1/pods?watch=true&labelSelector=slow!=no"))(t)
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
	lost := func() int { return v.Points(t)["WatcherForced"] }
	for range 500 { // far longer than the dispatcher waits for a watcher, even on a fast machine
		require.Equal(t, 0, lost(), "watchers that were lost while held")
	}
	v.command(t, "/viz/hold", `{"do":"release"}`)
	assert.Equal(t, 0, lost(), "released with a stopped clock: watchers lost")
	v.command(t, "/viz/clock", `{"paused":false}`)
	program.Eventually(t, patience, func() (bool, string) { return lost() == 1, "the slow watcher is not evicted" })
	v.command(t, "/viz/hold", `{"do":"release"}`) // opens the gate
	told, err := io.ReadAll(slow.Body)
	n := strings.Count(string(told), "\n")
	assert.True(t, err == nil && n > 0 && n < 30 && lost() == 1, "the slow client got %d events, %v; want only the "+
		"first", n, err)
}

func (v *viz) seq(t testing.TB) uint64 {
	t.Helper()
	var snapshot struct{ Seq uint64 }
	v.Get(t, "/viz/snapshot", &snapshot)
	return snapshot.Seq
}

// TestAManualClockMovesTheWholeProgram advances the clock without a page. The demo must act every ten seconds of the
// world's time. The tests of internal/observe/worldclock cover the other ways to move the clock.
func TestAManualClockMovesTheWholeProgram(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-clock=manual", "-controllers=false")
	pods := func() int {
		var list struct{ Items []any }
		v.Get(t, "/api/v1/pods", &list)
		return len(list.Items)
	}
	start := v.world(t).Clock
	require.True(t, start.Paused && len(start.Next) != 0, "clock: %+v", start)
	for had := pods(); had < 3; had++ { // the demo keeps four alive, and may have created one before its clock stopped
		v.command(t, "/viz/clock", `{"advance":"10s"}`)
		program.Eventually(t, patience, func() (bool, string) { return pods() == had+1, fmt.Sprint(pods()) })
	}
}

// TestThePageHoldsTheWorldAndOneKeyMovesAPodToItsHandler holds the world, creates a pod, and presses one key until the
// pod's handler has run (hold.World.Walk). Each press moves the pod further along its path, no waiting time is
// negative, and a gate shows the pod's name. Then one button releases the world.
func TestThePageHoldsTheWorldAndOneKeyMovesAPodToItsHandler(t *testing.T) {
	t.Parallel()
	v, p := still(t)
	const mode = `document.body.dataset.mode`
	p.click(t, "#hold")
	p.becomes(t, "held", mode)
	p.pick(t, "#create-pod")
	p.until(t, `$$("#held tr").some((tr) => tr.dataset.point === "RequestReceived")`)
	const ran = `listwatch.player.tape.between(1, listwatch.player.head + 1)
		.some((r) => r.point === "HandlerCalled" && listwatch.follow.matches(r))`
	const held = `$picture().held.filter((h) => listwatch.follow.matches(h)).map((h) => h.at + h.goroutine).join()`
	presses, before, named := 0, "", false
	for ; presses < 24 && !evaluate[bool](t, p, ran); presses++ {
		p.strike(t, "h")
		p.until(t, `%s || (%s !== "" && %[2]s !== %q)`, ran, held, before)
		before = evaluate[string](t, p, held)
		p.none(t, "held since a time in the future",
			`$$("#held td.n").map((td) => td.textContent).filter((text) => text.startsWith("-"))`)
		named = named || evaluate[bool](t, p, `$$("[data-gate-at]").some((gate) => gate.dataset.keys === "default/a"
			&& gate.querySelector(".who").textContent === "a")`)
	}
	assert.True(t, presses >= 8 && presses != 24,
		"after %d presses the pod is held at %q; want its handler to run after 8 at least", presses, before)
	assert.True(t, named, "no gate has the pod's name")
	// The button in a row lets that row's goroutine pass.
	const row = `$$("#held tr").find((tr) => tr.dataset.rv > 0 && listwatch.follow.matches(tr.dataset))`
	p.until(t, row+` !== undefined`)
	passed := evaluate[int](t, p, row+`.dataset.seq * 1`)
	p.run(t, row+`.querySelector("button").click()`)
	p.until(t, `!$$("#held tr").some((tr) => Number(tr.dataset.seq) === %d)`, passed)
	if w := v.world(t); w.Attending != 1 || w.Unattended != "15s" {
		t.Errorf("the watchdog knows of %d pages and would wait %s", w.Attending, w.Unattended)
	}
	// Freezing stops the view; holding stops the world. Neither changes the other.
	p.run(t, `listwatch.player.toggle()`)
	p.becomes(t, "frozen", mode)
	assert.True(t, v.world(t).Held, "freezing the view let the world go")
	p.run(t, `listwatch.player.toggle()`)
	p.becomes(t, "held", mode)
	p.click(t, "#hold")
	p.becomes(t, "live", mode)
	v.becomes(t, func(w world) bool { return !w.Held && len(w.Waiting) == 0 && !w.Clock.Paused })
	p.sameAsServer(t, v)

	// The page leaves while one station's gate is closed.
	p.strike(t, "k")
	p.click(t, "#world-clock", `#world [data-gate="watcher"]`)
	p.becomes(t, "true watcher", `$("[data-gate-at=watcher]").dataset.closed + " " + document.body.dataset.gates`)
	p.becomes(t, "live", mode)
	p.do(t, chromedp.Navigate("about:blank"))
	v.becomes(t, func(w world) bool { return w.Attending == 0 })
	v.command(t, "/viz/hold", `{"do":"hold","unattended":"100ms"}`) // the watchdog releases the world and the gate
	v.becomes(t, func(w world) bool { return len(w.Gates) == 0 && !w.Held && w.LetGo != "" })
}
