package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
	"listwatch/internal/play/sandbox"
)

// TestEveryStoryAndKnobOfThePage checks that the gallery has every story, and uses the knobs, promises and switches.
func TestEveryStoryAndKnobOfThePage(t *testing.T) {
	t.Parallel()
	v := startViz(t)
	p := openPage(t, v.URL)
	p.live(t, v)
	var all []told
	v.Get(t, "/viz/scenarios", &all)
	n := evaluate[int](t, p, `new Set($$("[data-play]").map((el) => el.dataset.play)).size`)
	assert.True(t, n >= 12 && n == len(all), "the gallery offers %d stories, the program %d", n, len(all))
	p.addWatcher(t)
	p.knobs(t, v)
	p.promises(t)
	p.pick(t, "#open-knobs")
	p.switches(t, v)
}

// addWatcher adds a watcher with selectors in the dialog, and removes it.
func (p *page) addWatcher(t *testing.T) {
	t.Helper()
	p.pick(t, "#add-watcher")
	p.run(t, `const form = $("#watcher-form");
		form.elements.labelSelector.value = "app notin (none)";
		form.elements.fieldSelector.value = "metadata.name!=none";`)
	p.click(t, "#watcher-form [name=watchList]", "#watcher-form .main")
	p.until(t,
		`$$("[data-watcher] title").some((el) => /listwatch-page-.*sendInitialEvents=true/.test(el.textContent))`)
	p.until(t, `$$("[data-watcher] title").some((el) => el.textContent.includes("metadata.name") &&
			el.textContent.includes("notin"))`)
	p.pick(t, "#open-knobs")
	p.click(t, "#knob-watchers button")
	p.until(t, `$("#knob-watchers").hidden`)
	p.click(t, "#knobs-close")
}

// knobs turns the knobs on the panel, except the switches, and waits in the log for the record of each effect.
func (p *page) knobs(t *testing.T, v *viz) {
	t.Helper()
	p.pick(t, "#open-knobs")
	p.until(t, `$$("#knob-lines li").length > 2`)
	pressed := func(knob string) string {
		return `$('[data-knob="line.` + knob + `"][data-target="listwatch-informer"]').click()`
	}
	steps := []struct{ act, effect string }{
		{`$("#add-handler").click()`, `"ListenerAdded" handler-1`},
		{choose(`#knob-handlers select[aria-label$=" handler-1 takes"]`, "500ms"),
			`"KnobTurned" handler.delay handler-1 500ms`},
		{`$('[data-knob="handler.remove"][data-target="handler-1"]').click()`, `"ListenerRemoved" handler-1`},
		{choose("#ring-fixed", "8"), `"RingResize" a knob was turned`},
		{choose("#ring-fixed", "0"), `"KnobTurned" ring.capacity pods 0`},
		{pressed("drop"), `"ReflectorWatchEnded" informer`},
		{pressed("stall"), `"KnobTurned" line.stall listwatch-informer true`},
		{pressed(`stall"][aria-pressed="true`), `"KnobTurned" line.stall listwatch-informer false`},
		{pressed("cut"), `"ReflectorWatchEnded" informer`},
		{pressed(`cut"][aria-pressed="true`), `"KnobTurned" line.cut listwatch-informer false`},
		{`$('[data-knob="etcd.compact"]').click()`, `"KnobTurned" etcd.compact`},
		{`$('[data-knob="etcd.restart"]').click()`, `"KnobTurned" etcd.restart`},
		{choose("#traffic", "150"), `"TxnCommitted" t-`},
		{`$("#reset").click()`, `"KnobTurned" everything`},
	}
	for _, step := range steps {
		from := evaluate[int](t, p, "listwatch.player.head")
		// The control may not have appeared yet.
		p.until(t, `(() => { try { `+step.act+`; return true } catch { return false } })()`)
		point, words, _ := strings.Cut(step.effect, " ")
		p.until(t, `listwatch.player.tape.between(%d, listwatch.player.head + 1)
			.some((r) => r.point === %s && (JSON.stringify(r) + Object.values(r.texts ?? {}).join(" ")).includes(%q))`,
			from, point, words)
	}
	p.until(t, `$("#notice").textContent.includes("reset: done")`)
	var state struct {
		Traffic  struct{ Rate int }
		Handlers []struct{ Name string }
	}
	v.Get(t, "/viz/knobs", &state)
	assert.True(t, state.Traffic.Rate == 0 && len(state.Handlers) == 1, "after the reset: %+v", state)
}

// switches chooses an older dispatcher and an older etcd watcher, and then resets. The page must show each new run.
func (p *page) switches(t *testing.T, v *viz) {
	t.Helper()
	const run = "listwatch.stage.shown.log"
	for _, step := range []struct{ act, dispatch string }{
		{choose(`[data-knob="switch"][data-target="dispatch"]`, "sequential"), "sequential"},
		{choose(`[data-knob="switch"][data-target="etcd-watcher"]`, "etcd2"), "sequential"},
		{`$("#reset").click()`, "two-phase"},
	} {
		before := evaluate[string](t, p, run)
		p.run(t, step.act)
		p.until(t, `listwatch.stage.shown.log !== %q && document.body.dataset.mode === "live"`, before)
		var how struct {
			Log      string
			Switches map[string]string
		}
		v.Get(t, "/viz/snapshot", &how)
		assert.True(t, how.Switches["dispatch"] == step.dispatch, "the program runs %+v", how)
		p.is(t, how.Log, "the page shows the log", run)
		p.until(t, `$('[data-knob="switch"][data-target="dispatch"]').value === %q`, step.dispatch)
		watcher := map[string]string{"etcd3": "watchChan", "etcd2": "etcdWatcher"}[how.Switches["etcd-watcher"]]
		p.until(t, `$('[data-station="etcd3"] .title').textContent === %q`, watcher)
	}
}

// choose returns a script that sets a field's value and dispatches the event change.
func choose(selector, value string) string {
	return fmt.Sprintf(
		`const el = $(%q); el.value = %q; el.dispatchEvent(new Event("change", { bubbles: true }))`, selector, value)
}

// promises checks that the page lists no broken rule.
func (p *page) promises(t *testing.T) {
	t.Helper()
	p.click(t, "#open-promises")
	p.until(t, `$("#promises-checked").textContent.includes("records checked")`)
	p.is(t, "", "broken", `$$("#promises li.broken").map((el) => el.textContent).join()`)
}

// handsOnStage returns the faults of visible hands (hands.js): number, size, hidden or long words, overlapping texts.
const handsOnStage = `(async (least) => {
	const wrong = [];
	const hands = $$(".grip").filter((el) => el.checkVisibility({ visibilityProperty: true }));
	for (const hand of hands) {
		hand.focus();
		await $frames(2);
		const { width, height } = hand.querySelector(".touch").getBoundingClientRect();
		const ghost = hand.querySelector(".would");
		const reads = ghost.checkVisibility({ visibilityProperty: true }) && ghost.textContent.split(" ").length <= 6;
		if (Math.min(width, height) < 24 || !reads) wrong.push(hand.ariaLabel + " is " + width + " by " + height);
		const texts = listwatch.picture().texts.filter((text) => !text.moves);
		texts.forEach((a, i) => texts.slice(i + 1).filter((b) => $meet(a, b))
			.forEach((b) => wrong.push(hand.ariaLabel + ": " + a.text + " on " + b.text)));
	}
	document.activeElement.blur();
	return hands.length < least || (least === 0 && hands.length > 0) ? [hands.length + " hands"] : wrong;
})`

// TestAViewerBreaksAThingWhereItIs drags the ring's rim and a handler's edge, makes a client stop reading by click and
// by key, and undoes each change. Stories, recordings, the first view, and refused knobs have no hands.
func TestAViewerBreaksAThingWhereItIs(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-demo=false")
	p := openPage(t, v.URL)
	p.live(t, v)
	p.until(t, `$$("#watchers .lane").length > 3 && $$(".grip:not(.none)").length > 8`)
	becomes := func(capacity int64, stalled bool, delay time.Duration) {
		t.Helper()
		program.Eventually(t, patience, func() (bool, string) {
			var knobs sandbox.KnobState
			v.Get(t, "/viz/knobs", &knobs)
			var snapshot struct{ State fold.State }
			v.Get(t, "/viz/snapshot", &snapshot)
			closed := slices.ContainsFunc(knobs.Lines, func(c sandbox.Connection) bool { return c.Stalled })
			ring, slow := snapshot.State.Resources["pods"].Ring.Capacity, knobs.Handlers[0].Delay
			return ring == capacity && closed == stalled && slow == delay, fmt.Sprint(ring, closed, slow)
		})
	}
	drag := func(selector string, by float64) {
		t.Helper()
		at := evaluate[struct{ X, Y, Scale float64 }](t, p, fmt.Sprintf(`(() => {
			const { right, y, height } = $(%q).getBoundingClientRect();
			return { X: right - 4, Y: y + height / 2, Scale: $(".scenery").getScreenCTM().a };
		})()`, selector))
		p.mouse(t, at.X, at.Y, at.X+by*at.Scale/2, at.X+by*at.Scale)
		p.until(t, `!$("#undo").hidden`)
	}
	for _, size := range []look{looks[1], {"large", 1440, 900, "dark", "reduce"},
		{"phone", 390, 844, "light", "reduce"}, looks[0]} {
		p.do(t, size.wear(1))
		p.none(t, "hands in "+size.name, handsOnStage+`(8)`)
	}
	drag("circle.rim", -24)
	becomes(8, false, 0)
	p.strike(t, "z")
	becomes(100, false, 0)
	drag(`[data-hand="handler.delay"] .touch`, -36)
	becomes(100, false, 2*time.Second)
	p.strike(t, "z")
	becomes(100, false, 0)

	const eye = `.lane:not(.yours, .over) [data-hand="line.stall"]`
	p.click(t, eye+" .touch")
	becomes(100, true, 0)
	p.until(t, `$('%s').ariaPressed === "true" && $("#undo").textContent.endsWith(" stops reading")`, eye)
	p.run(t, `$('%s').focus()`, eye)
	p.press(t, "\r")
	becomes(100, false, 0)
	p.until(t, `$('%s').ariaPressed === "false"`, eye)
	p.press(t, " ")
	becomes(100, true, 0)
	p.click(t, "#undo")
	becomes(100, false, 0)
	p.is(t, "true", "no hand opened the inspector", `$("#inspector").hidden`)

	p.is(t, "none", "the hand of a refused knob is shown as", `($("#knob-etcd").id = "", // the page must not update it
		$('#knobs [data-knob="etcd.restart"]').disabled = true,
		listwatch.stage.scene.stale = true, await $frames(3),
		getComputedStyle($('[data-hand="etcd.restart"]')).display)`)
	p.run(t, `document.body.dataset.laid = "true"`)
	p.none(t, "in a recording", handsOnStage+`(0)`)
	p.run(t, `delete document.body.dataset.laid, document.body.dataset.detail = "names"`)
	p.none(t, "in the first view", handsOnStage+`(0)`)
	p.run(t, `document.body.dataset.detail = "boxes"`)
	p.run(t, `await listwatch.stage.scenarios.openStory("bookmarks")`)
	p.none(t, "in a story", handsOnStage+`(0)`)
}

// TestABrokenPromiseLeadsToItsRecord replays a recording that breaks a rule, and clicks the breach.
func TestABrokenPromiseLeadsToItsRecord(t *testing.T) {
	t.Parallel()
	file, seq := brokenRecording(t)
	v := startViz(t, "-replay", file)
	p := openPage(t, v.URL)
	p.until(t, `$("#open-promises").classList.contains("broken")`)
	p.click(t, "#open-promises")
	p.click(t, `[data-rule="9"] .breaches button`)
	p.until(t, `listwatch.player.cursor === %d && document.body.dataset.seq === "%d"`, seq, seq)
}

// brokenRecording writes a recording in which watcher w1 receives one event twice. It returns the file, and the number
// of the record that sends the event again.
func brokenRecording(t *testing.T) (name string, seq int) {
	t.Helper()
	var r reel
	r.add(probe.WatcherAdded, "w1", 5, 10)
	r[0].Key, r[0].Texts = "/registry/pods/", probe.TextsOf(probe.WatcherAdded, "/registry/pods/")
	for i, rv := range []int{6, 7, 7, 8} {
		r.add(probe.ResultSent, "w1", rv, i+1, 10)
	}
	r[1].Type = "ADDED"
	return writeRecording(t, r), 4
}
