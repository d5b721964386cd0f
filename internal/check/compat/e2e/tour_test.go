package e2e

import (
	"cmp"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
)

// tourStop is what the page shows of the tour.
type tourStop struct {
	Step, Purpose, Happened, Focus, Titles, Visited, Reached string
	Cursor                                                   uint64
	Found                                                    []string // contradictions
}

const readTour = `(() => {
	const shown = (el) => el.checkVisibility({ visibilityProperty: true });
	const names = (wanted) => $$(".station").filter(wanted).map((el) => el.dataset.station).join(" ");
	return {
		Step: document.body.dataset.tour ?? "", Focus: document.activeElement?.id ?? "",
		Purpose: $text("#tour-purpose"), Happened: $text("#tour-happened"),
		Titles: names((el) => shown(el.querySelector(".title"))),
			Visited: names((el) => el.classList.contains("visited")),
		Reached: names((el) => el.classList.contains("reached")),
		Cursor: listwatch.player.cursor, Found: (` + contradictions + `)($picture()),
	};
})()`

// stop waits until a step rests, and holds it to what every step must be.
func (p *page) stop(t *testing.T, step int) tourStop {
	t.Helper()
	p.until(t, `document.body.dataset.tour === "%d" && document.body.dataset.tourRest === "true"`, step)
	at := evaluate[tourStop](t, p, readTour)
	assert.False(t, at.Purpose == "" || strings.Contains(at.Happened, "undefined") || len(at.Found) > 0,
		"step %d: %+v", step, at)
	assert.True(t, at.Focus == "tour-next", "step %d: the focus is on %q", step, at.Focus)
	assert.True(t, at.Visited != "", "step %d visits no station", step)
	if step != 7 && step != 9 { // in which the lanes fill the stage
		p.until(t, `(({ Titles, Reached }) => Titles === Reached)(`+readTour+`)`)
		p.none(t, "beside my-pod there stands at etcd", `$picture().drawn
			.filter((d) => d.in === "etcd" && !d.key.includes("my-pod")).map((d) => d.key + " at " + d.rv)`)
	}
	return at
}

// TestTheTourLeadsOneChangeByKeyboard walks the whole tour on a running program: it is skipped, resumed, left by a
// reload, and ends. Meanwhile the demo rests.
func TestTheTourLeadsOneChangeByKeyboard(t *testing.T) {
	t.Parallel()
	v := startViz(t)
	p := openPage(t, "about:blank")
	p.do(t, looks[0].wear(1), chromedp.Navigate(v.URL)) // the first visit, as it is
	p.until(t, `document.documentElement.dataset.first === "asks" && document.activeElement.id === "tour-start"`)
	if names := evaluate[tourStop](t, p, readTour).Titles; names != "" {
		t.Errorf("before the tour begins the page names %s", names)
	}
	p.press(t, kb.Enter)
	first := p.stop(t, 1)
	for step := 2; step <= 3; step++ {
		p.press(t, kb.ArrowRight)
		at := p.stop(t, step)
		assert.True(t, at.Happened != "" && at.Cursor >= first.Cursor, "step %d: %+v", step, at)
	}

	p.press(t, kb.Escape)
	p.until(t, `!document.body.dataset.tour && listwatch.player.mode === "live"`)
	p.do(t, chromedp.Navigate(v.URL))
	p.live(t, v)
	p.is(t, "undefined", "the step of a tour that was skipped", "document.body.dataset.tour")
	p.pick(t, "#open-tour")
	if at := p.stop(t, 3); at.Happened == "" {
		t.Errorf("resumed: %+v", at)
	}
	p.press(t, kb.PageDown)
	p.stop(t, 4)
	p.do(t, chromedp.Navigate(v.URL))
	p.stop(t, 4)
	for step := 5; step <= 7; step++ {
		p.press(t, kb.PageDown)
		p.stop(t, step)
	}

	const clock = `listwatch.player.clock` // of the stage: it does not count what a busy machine misses
	began := evaluate[float64](t, p, clock)
	p.press(t, kb.Enter) // the focus is on the button that stops the client
	p.until(t, `/^\d+ of \d+$/.test($text("#tour-happened"))`)
	acted := p.stop(t, 7)
	if ms := evaluate[float64](t, p, clock) - began; ms > 8000 {
		t.Errorf("the client that does not read is shown for %.0f ms; want eight seconds at most", ms)
	}
	p.is(t, "page-2, not reading", "the client of the second tour", `$$("#cast .member")
		.map((el) => [...el.querySelectorAll("text")].slice(0, 2).map((text) => text.textContent).join(", ")).join()`)
	type lane struct {
		Name   string
		Input  int
		Result string
	}
	lanes := evaluate[[]lane](t, p, `$$("#watchers > .lane").map((el) => {
		const [input, result] = ["input", "result"]
			.map((name) => el.querySelector("[data-queue=" + name + "]").dataset);
		const Name = el.querySelector(".name").textContent;
		return { Name, Input: Number(input.len), Result: result.len + "/" + result.cap };
	})`)
	for _, each := range lanes {
		stopped := strings.Contains(each.Name, "page-")
		if full := each.Result == "10/10" && each.Input == 10; full != stopped {
			t.Errorf("with one client stopped, %+v", each)
		}
	}
	want := "holds 10 of 10, its input 10 of 10. The next change would close it. The informer has every change"
	assert.True(t, len(lanes) >= 2 && strings.Contains(acted.Happened, want),
		"of %d lanes one is stopped, and the page says: %s", len(lanes), acted.Happened)
	p.press(t, kb.ArrowLeft)
	p.stop(t, 6)
	p.press(t, kb.ArrowRight)
	p.until(t, `$text("#tour-next") === "To its end"`)
	p.press(t, kb.ArrowRight)
	if again := p.stop(t, 7); again.Happened != acted.Happened {
		t.Errorf("back and on to its end, the page says %s", again.Happened)
	}
	// Where the client knows, and what came of that, is in the picture: the version that it sent, 410, a bookmark.
	shows := map[int]string{8: `$text("[data-text='http.gets']") + " " + $text("#ring-pins text") + " " +
		$text("#tour-happened")`, 9: `$("#ring-tray").checkVisibility({ visibilityProperty: true }) && $text("#ring-tray") +
		" " + $text("#ring-pins text") + " " + $picture().queues.filter(({ name }) => name === "result").flatMap(
			({ owner, len }) => listwatch.stage.scene.lanes.watchers.get(owner).querySelector(".name").textContent ===
				"page-2" ? ["bookmark " + len] : []) + " " + $text("#tour-happened")`}
	wants := map[int]*regexp.Regexp{
		8: regexp.MustCompile(`^from (\d+) page-2 (?:is|was) here: (\d+) page-2 knows version (\d+)\. The ring still has`),
		9: regexp.MustCompile(`^410 page-2: (\d+) \(gone\) bookmark \d+ Version (\d+) is lost: page-2 got 410.* all [1-9]`),
	}
	for step := 8; step <= 11; step++ {
		p.press(t, kb.ArrowRight)
		if at := p.stop(t, step); at.Happened == "" || at.Cursor <= acted.Cursor {
			t.Errorf("step %d: %+v", step, at)
		}
		if script := shows[step]; script != "" {
			said := strings.Join(strings.Fields(evaluate[string](t, p, script)), " ")
			found := wants[step].FindStringSubmatch(said)
			if found == nil || found[1] != found[2] || step == 8 && found[2] != found[3] {
				t.Errorf("step %d shows %s", step, said)
			}
		}
	}
	if names := evaluate[tourStop](t, p, readTour).Titles; len(strings.Fields(names)) != 16 {
		t.Errorf("at the end of the tour the page names %s", names)
	}
	p.is(t, "true", "a workqueue holds the pod if the page says so", `
		!/has queued the key/.test($text("#tour-happened")) || $picture().queues.some(({ name, tokens }) => name === "workqueue" && tokens.some((each) => /my-pod/.test(each.key)))`)
	p.press(t, kb.ArrowRight)
	p.until(t,
		`document.body.dataset.tour === "end" && $("#tour-kubectl").textContent.endsWith("get pods -w") &&
			document.activeElement.dataset.tourStory`)
	v.rested(t)
	p.click(t, `[data-tour-try="#open-console"]`)
	p.until(t, `!document.body.dataset.tour && !$("#console").hidden`)

	p.navigate(t, v.URL+"/?tour=1")
	p.until(t, `document.documentElement.dataset.first === "asks"`)
	p.navigate(t, v.URL+"/?tour=0")
	p.live(t, v)
	p.is(t, "undefined", "with ?tour=0 the step", "document.body.dataset.tour")
}

// rested holds the demo to its rest while the tour was open, and waits until it goes on; the client of the tour has
// gone.
func (v *viz) rested(t *testing.T) {
	t.Helper()
	demo := probe.Query{Points: []probe.Point{probe.RequestReceived}, Fields: map[probe.Field]string{
		probe.FieldAgent: "listwatch-demo", probe.FieldMethod: "POST|PATCH|DELETE"}}
	program.Eventually(t, patience, func() (bool, string) {
		records := []probe.Record{}
		for _, point := range []string{"KnobTurned", "RequestReceived"} {
			var log struct{ Records []probe.Record }
			v.Get(t, "/viz/records?from=1&to=60000&point="+point, &log)
			records = append(records, log.Records...)
		}
		slices.SortFunc(records, func(a, b probe.Record) int { return cmp.Compare(a.Seq, b.Seq) })
		open, story := false, []string{} // what the demo did, and when it rested, in order
		writes, inTour := 0, []string{}
		for _, r := range records {
			switch {
			case r.Point == probe.KnobTurned && r.Field(probe.FieldName) == "demo.rest":
				open = r.Field(probe.FieldValue) == "true"
				story = append(story, r.Field(probe.FieldValue))
				writes = 0
			case demo.Matches(&r) && open:
				inTour = append(inTour, r.Field(probe.FieldPath))
			case demo.Matches(&r):
				writes++
			}
		}
		// Each rest may begin while a write is under way.
		require.True(t, len(inTour) <= len(story)/2, "while a tour is open: %q", inTour)
		return !open && writes > 0 && slices.Contains(story, "false"),
			fmt.Sprintf("%q, then %d writes of the demo", story, writes)
	})
	var left []struct{ ID string }
	v.Get(t, "/viz/watchers", &left)
	assert.True(t, len(left) == 0, "the tour leaves %d watchers", len(left))
	response, err := http.Get(v.URL + "/api/v1/namespaces/default/pods/my-pod")
	require.NoError(t, err)
	if response.Body.Close(); response.StatusCode != http.StatusNotFound {
		t.Errorf("the tour leaves its pod: %s", response.Status)
	}
}

// TestAPageThatWatchesOnGivesItsTourOn: when it follows something else, its stream is another one; the program must not
// take the tour for over between the two.
func TestAPageThatWatchesOnGivesItsTourOn(t *testing.T) {
	t.Parallel()
	_, p := still(t)
	const feed = `(async () => {
		const { Feed } = await import("/viz/assets/log/feed.js");
		let heard = null;
		const nothing = () => {};
		const feed = new Feed({ snapshot: nothing, records: nothing, coalesced: nothing, world: nothing, took: nothing,
			follows: () => "&tour", state: (word) => word === "live" && heard?.() });
		const live = () => new Promise((done) => (heard = done));
		await Promise.all([feed.begin(), live()]);
		const wanted = { method: "POST", headers: { "Content-Type": "application/json" }, body: '{"tour":true}' };
		await fetch("/viz/watchers", wanted);
		for (let n = 0; n < 20; n++) {
			feed.rejoin();
			await live();
		}
		const open = await (await fetch("/viz/watchers")).json();
		const metadata = { name: "my-pod", labels: { "listwatch-tour": "open" } };
		const pod = { metadata, spec: { containers: [{ name: "c", image: "c" }] } };
		await fetch("/api/v1/namespaces/default/pods", { ...wanted, body: JSON.stringify(pod) });
		const pods = async () => (await (await fetch("/api/v1/pods")).json()).items.map((each) => each.metadata.name);
		const left = await pods();
		feed.close();
		while ((await pods()).includes("my-pod"));
		return JSON.stringify([...open.map(({ userAgent }) => userAgent), ...left]);
	})()`
	p.is(t, `["listwatch-page-1","my-pod"]`, "the clients that are open, and their pod", "await "+feed)
}
