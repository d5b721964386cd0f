package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
)

// TestEveryStoryAndKnobOfThePage plays two stories one after the other on the machine, with FULL all of them, and turns
// every knob by clicks.
func TestEveryStoryAndKnobOfThePage(t *testing.T) {
	t.Parallel()
	v := startViz(t)
	p := openPage(t, v.URL)
	p.live(t, v)
	var all []told
	v.Get(t, "/viz/scenarios", &all)
	if n := evaluate[int](t, p, `new Set($$("[data-play]").map((el) => el.dataset.play)).size`); n < 12 || n != len(all) {
		t.Errorf("the gallery offers %d stories, the program %d", n, len(all))
	}
	played := 0
	for _, each := range all {
		if each.Alone == "" && (full || played < 2) { // the others are told from their recordings
			v.play(t, each.ID)
			played++
		}
	}
	p.addWatcher(t)
	p.knobs(t, v)
	p.promises(t)
	p.pick(t, "#open-knobs")
	p.switches(t, v)
}

// addWatcher adds a watcher by the dialog, with selectors, looks at its bytes, and removes it.
func (p *page) addWatcher(t *testing.T) {
	t.Helper()
	p.pick(t, "#add-watcher")
	p.run(t, `const form = $("#watcher-form");
		form.elements.labelSelector.value = "app notin (none)";
		form.elements.fieldSelector.value = "metadata.name!=none";`)
	p.click(t, "#watcher-form [name=watchList]", "#watcher-form .main")
	p.until(t,
		`$$("[data-watcher] title").some((el) => /listwatch-page-.*sendInitialEvents=true/.test(el.textContent))`)
	p.until(t,
		`$$("[data-watcher] title").some((el) => el.textContent.includes("metadata.name") &&
			el.textContent.includes("notin"))`)
	p.click(t, "[data-station=wire] .title", "#tab-bytes")
	p.until(t,
		`/bytes in \d+ chunks.*GET \/api\/v1\/pods.*200 OK.*chunk of \d+ bytes/s.test($$("#leaf details.stream")
			.find((el) => el.querySelector("summary").textContent.includes("page-"))?.textContent ?? "")`)
	p.strike(t, "Escape")
	p.pick(t, "#open-knobs")
	p.click(t, "#knob-watchers button")
	p.until(t, `$("#knob-watchers").hidden`)
	p.click(t, "#knobs-close")
}

// play plays a story on the machine. Every beat of it must stand in what the machine did.
func (v *viz) play(t *testing.T, id string) {
	t.Helper()
	client := &http.Client{Timeout: 3 * patience} // a reflector that was cut off often takes its time
	response, err := client.Post(v.URL+"/viz/scenario/"+id, "application/json", nil)
	require.NoError(t, err)
	defer response.Body.Close()
	var seen struct {
		Message, Saw, Untold string
		Beats                []struct{ From, To uint64 }
	}
	require.NoError(t, json.NewDecoder(response.Body).Decode(&seen))
	assert.True(t, response.StatusCode == http.StatusOK && seen.Untold == "" && len(seen.Saw) >= 50,
		"%s: %s %+v", id, response.Status, seen)
}

// knobs turns every knob on the panel with a click, and looks for its effect in the log.
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
		{choose("#traffic", "6"), `"TxnCommitted" t-`},
		{`$("#reset").click()`, `"KnobTurned" everything`},
	}
	for _, step := range steps {
		from := evaluate[int](t, p, "listwatch.player.head")
		// the glyph may only just be coming
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

// switches goes back to an older age and lets the reset return: the stage shows the new run without being asked to.
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

// choose changes a field as a hand would.
func choose(selector, value string) string {
	return fmt.Sprintf(
		`const el = $(%q); el.value = %q; el.dispatchEvent(new Event("change", { bubbles: true }))`, selector, value)
}

// promises looks at the ten of them: after all that, none is broken.
func (p *page) promises(t *testing.T) {
	t.Helper()
	p.click(t, "#open-promises")
	p.until(t, `$("#promises-checked").textContent.includes("records checked")`)
	p.is(t, "", "broken", `$$("#promises li.broken").map((el) => el.textContent).join()`)
}

// TestABrokenPromiseLeadsToItsRecord replays a recording into which a fault was written.
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

// brokenRecording writes a recording in which a watcher is sent one event twice, and returns the number of the second
// time.
func brokenRecording(t *testing.T) (name string, seq int) {
	t.Helper()
	key := "/registry/pods/default/a"
	records := []probe.Record{
		{Point: probe.WatcherAdded, Key: "/registry/pods/", RV: 5, Args: [4]int{10},
			Texts: probe.TextsOf(probe.WatcherAdded, "/registry/pods/")},
		{Point: probe.ResultSent, Type: "ADDED", Key: key, RV: 6, Args: [4]int{1, 10}},
		{Point: probe.ResultSent, Type: "MODIFIED", Key: key, RV: 7, Args: [4]int{2, 10}},
		{Point: probe.ResultSent, Type: "MODIFIED", Key: key, RV: 7, Args: [4]int{3, 10}},
		{Point: probe.ResultSent, Type: "MODIFIED", Key: key, RV: 8, Args: [4]int{4, 10}},
	}
	for i := range records {
		records[i].Seq, records[i].Time, records[i].Resource, records[i].Subject = uint64(i+1),
			time.Duration(i+1)*time.Millisecond, "pods", "w1"
	}
	return writeRecording(t, records), 4
}
