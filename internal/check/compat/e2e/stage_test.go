package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
)

// inspected is the content of the inspector.
type inspected struct {
	Open                   bool
	Title, Tab, Words      string
	Point, File, Line, Lit string   // in the code leaf; Lit is the number of the lit line
	Breaks                 []string // the texts that the code leaf's three copy buttons put on the clipboard
}

const readInspector = `(() => {
	const panel = $("#inspector");
	const figure = panel.querySelector("figure.decl");
	const { point = "", file = "", line = "" } = figure?.dataset ?? {};
	return {
		Open: !panel.hidden, Title: panel.querySelector("h2").textContent,
			Words: panel.querySelector("#leaf").textContent,
		Tab: panel.querySelector(".tabs [aria-pressed=true]").dataset.tab, Point: point, File: file, Line: line,
		Lit: panel.querySelector(".l.lit")?.dataset.n ?? "",
		Breaks: [...panel.querySelectorAll("[data-copy]")].map((copy) => copy.dataset.copy),
	};
})()`

// inspect waits until fits returns true for the inspector's content, and returns the content.
func (p *page) inspect(t *testing.T, what string, fits func(inspected) bool) inspected {
	t.Helper()
	var seen inspected
	program.Eventually(t, patience, func() (bool, string) {
		seen = evaluate[inspected](t, p, readInspector)
		return fits(seen), fmt.Sprintf("want %s, the inspector shows %.600s", what, fmt.Sprintf("%+v", seen))
	})
	return seen
}

// TestTheStreamNamesTheSlow runs a thousand changes a second, with a client that stops reading and a handler that takes
// 20 ms for each call. The stage must show how far both are behind.
func TestTheStreamNamesTheSlow(t *testing.T) {
	t.Parallel()
	v := startViz(t)
	p := openPage(t, v.URL)
	p.live(t, v)
	p.strike(t, "Escape")
	for _, knob := range [][3]string{{"traffic.rate", "", "1000"}, {"handler.delay", "observer", "20ms"},
		{"line.stall", "listwatch-scheduler", "true"}} {
		post(t, v.URL+"/viz/knobs", map[string]string{"name": knob[0], "target": knob[1], "value": knob[2]})
	}
	p.until(t, `$$('.late > .has, .late > [data-queue="pending"] .num').filter((el) => / behind|pending \d{3}/
		.test(el.textContent) && el.checkVisibility({ visibilityProperty: true })).length === 2`)
}

// TestTheStageCanBeLookedInto checks the inspector, the ring, clients' names, the timeline and anomalies on one page.
func TestTheStageCanBeLookedInto(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-controllers=false", "-demo=false")
	v.busy(t, 300)
	p := openPage(t, v.URL)
	p.live(t, v)
	t.Run("every station opens", func(t *testing.T) { everyStationOpens(t, p) })
	t.Run("the code moves with the cursor", func(t *testing.T) { codeMoves(t, p) })
	t.Run("the gutter counts", func(t *testing.T) { gutterCounts(t, p, v) })
	t.Run("the past is of its time", func(t *testing.T) { pastIsOfItsTime(t, p) })
	t.Run("a leaf that comes slowly is shown", func(t *testing.T) { slowLeafIsShown(t, p, v) })
	t.Run("the ring is readable", func(t *testing.T) { ringIsReadable(t, p) })
	t.Run("clients have their names", func(t *testing.T) { clientsHaveTheirNames(t, p) })
	t.Run("the timeline counts what was summed up", func(t *testing.T) { timelineCountsSums(t, p) })
	t.Run("an anomaly is never merged", func(t *testing.T) { anomalyIsNeverMerged(t, p) })
}

func everyStationOpens(t *testing.T, p *page) {
	stations := evaluate[[]string](t, p, `[...new Set($$(".scenery [data-station]").map((el) => el.dataset.station))]`)
	require.True(t, len(stations) == 16, "stations on stage: %q", stations)
	for _, station := range stations {
		p.run(t, `const el = $('.scenery [data-station=%s]');
			el.focus();
			el.dispatchEvent(new KeyboardEvent("keydown",
				{ key: "Enter", bubbles: true, cancelable: true }));`, station)
		p.inspect(t, station, func(i inspected) bool {
			return i.Open && i.Tab == "what" && strings.Contains(i.Words, "Why it exists")
		})
		p.is(t, station, "inspecting", "document.body.dataset.inspecting")
	}
	for _, tab := range []string{"state", "code", "blocked", "history", "what"} {
		p.click(t, "#tab-"+tab)
		p.until(t, `$("#tab-%s[aria-pressed=true]") && $("#leaf .leaf.%[1]s")`, tab)
	}
	p.strike(t, "Escape")
	p.until(t, `$("#inspector").hidden`)
	p.click(t, `[data-watcher] [data-queue="input"] .wall`)
	p.until(t, `$("#inspector h2").textContent.startsWith("input of w")`)
}

// codeMoves steps over records of several stations. Each step must light the line that reported the record.
func codeMoves(t *testing.T, p *page) {
	p.click(t, "#tab-code")
	p.run(t, `const { tape, head } = listwatch.player;
		await tape.load(1, head + 1);
		const commit = (r) => r.point === "TxnCommitted" && r.key.includes("busy");
		await listwatch.player.seek(tape.between(1, head - 79).findLast(commit).seq);`)
	files := map[string]bool{}
	for range 14 {
		r := evaluate[struct {
			Point string
			Seq   int
		}](t, p, `(({ tape, cursor }) => ({ Point: tape.get(cursor).point, Seq: cursor }))(listwatch.player)`)
		got := p.inspect(t, r.Point, func(i inspected) bool {
			return i.Point == r.Point && i.Lit == i.Line && i.Lit != ""
		})
		at := got.File + ":" + got.Line
		assert.True(t, slices.Equal(got.Breaks, []string{"break " + at, at, at}),
			"%s: debuggers are told %q, the line is %s", r.Point, got.Breaks, at)
		p.is(t, "true", r.Point+" is in the line that is lit", `$text(".l.lit").includes("probe.%s")`, r.Point)
		files[got.File] = true
		p.strike(t, ".")
		p.becomes(t, fmt.Sprint(r.Seq+1), "listwatch.player.cursor")
	}
	assert.True(t, len(files) >= 4, "the code was in %v only", files)
}

func gutterCounts(t *testing.T, p *page, v *viz) {
	p.strike(t, "End")
	p.strike(t, "Escape") // the inspector may cover the ring
	p.click(t, `[data-station=ring] .title`, "#tab-code")
	p.inspect(t, "the ring", func(i inspected) bool { return i.Title == "history ring" && i.Lit != "" })
	v.busy(t, 200)
	p.until(t, `(() => {
		const counts = $$("#leaf .l [data-hits]");
		const { points } = listwatch.state.resources.pods;
		return counts.length > 0 && counts.every((el) => el.textContent === String(points[el.dataset.hits] ?? 0));
	})()`)
}

func pastIsOfItsTime(t *testing.T, p *page) {
	p.click(t, "#tab-state")
	for _, fraction := range []string{"0.4", "0.8"} {
		p.run(t, `await listwatch.player.seek(Math.round(listwatch.player.head * %s))`, fraction)
		p.until(t, `$('#leaf [data-group=ring] [data-field=end] td')?.textContent ===
			String(listwatch.state.resources.pods.ring.end)`)
	}
}

// slowLeafIsShown opens an inspector's tab that takes 2 s to load, longer than the page waits before its next request.
func slowLeafIsShown(t *testing.T, p *page, v *viz) {
	p.run(t, `$("#leaf").replaceChildren(); // clears the previous leaf
		window.quick = window.fetch;
		window.fetch = async (url, ...rest) => {
			const answer = await quick(url, ...rest);
			if (String(url).includes("/viz/part/")) await new Promise((done) => setTimeout(done, 2000));
			return answer;
		};`)
	p.click(t, "[data-station=wire] .title", "#tab-state") // the first click's leaf, the same one, is still loading
	p.until(t, `$("#leaf .leaf.state")`)
	post(t, v.URL+"/viz/knobs", map[string]any{"name": "traffic.rate", "value": "6"})
	p.click(t, "[data-station=wire] .title", "#tab-history")
	p.until(t, `$("#leaf .history li") !== null`)
	post(t, v.URL+"/viz/knobs", map[string]any{"name": "traffic.rate", "value": "0"})
	p.run(t, `window.fetch = quick`)
	p.strike(t, "Escape")
}

// anomalyIsNeverMerged passes ten thousand events and three evictions to the stage at once. The stage must count the
// events and draw each eviction.
func anomalyIsNeverMerged(t *testing.T, p *page) {
	p.is(t, "3 10000", "evictions drawn, events counted", `(() => {
		const { motion, player } = window.listwatch;
		player.freeze();
		motion.clear();
		const list = [];
		const key = "/registry/pods/default/x";
		for (let i = 0; i < 10000; i++) {
			const rv = String(100000 + i);
			list.push({ point: "RingAppend", resource: "pods", type: "ADDED", key, rv, args: [0, i + 1, 100, 1] });
			if (i % 4000 !== 1) continue;
			list.push({ seq: i, point: "WatcherForced", resource: "pods", subject: "w" + i, type: "", rv: "0" });
		}
		const now = performance.now();
		const counted = (RingAppend) => ({ points: { RingAppend }, subjects: {} });
		motion.records([], now - 500, { own: player.own, stream: true }, counted(0));
		motion.records(list, now, { own: player.own, stream: true }, counted(10000));
		const drawn = motion.trails.filter(({ single, colour }) => single && colour === "anomaly").length;
		const sum = [...motion.flow.sums(now + 1).values()].find(({ way }) => way.point === "RingAppend");
		const seen = [drawn, sum?.n ?? 0].join(" ");
		motion.clear();
		return seen;
	})()`)
}

// ringIsReadable compares the number of the ring's cells with its data attributes.
func ringIsReadable(t *testing.T, p *page) {
	p.is(t, "true,true", "there is a cell for each place, and as many are held as there are events", `(() => {
		const el = $("[data-station=ring]");
		const [start, end, capacity] = ["start", "end", "capacity"].map((name) => Number(el.dataset[name]));
		const [cells, held] = [".cell", ".cell.held"].map((css) => el.querySelectorAll(css).length);
		return [cells === Math.min(capacity, 128), held === Math.min(end - start, cells)].join();
	})()`)
}

// clientsHaveTheirNames reads the page's sentences about copied events. They must use a client's name, not its number.
func clientsHaveTheirNames(t *testing.T, p *page) {
	p.is(t, "true", "the clients are called by their names", `await (async () => {
		const { head, tape } = listwatch.player;
		await tape.load(1, head + 1);
		const sent = tape.between(1, head + 1).filter((r) => r.point === "InputSent").map(listwatch.stage.says);
		const named = sent.some((words) => words.endsWith("the input of your controller."));
		return named && !sent.some((words) => /\bw\d/.test(words));
	})()`)
	p.none(t, "is called by a number in the table",
		`$$("#records td").map((el) => el.textContent).filter((text) => /\bw\d/.test(text))`)
}

// timelineCountsSums gives a timeline some records, then the server's index, which includes part of these records, and
// then more records. The timeline must count each record once.
func timelineCountsSums(t *testing.T, p *page) {
	got := evaluate[[]int](t, p, `(async () => {
		const { Timeline } = await import("/viz/assets/timeline/timeline.js");
		const record = (seq) => ({ seq, t: seq * 1e7, point: "RingAppend" });
		const list = [38, 39, 40, 41, 42].map(record);
		const tape = { between: (from, to) => list.filter((r) => r.seq >= from && r.seq < to) };
		const player = { mode: "frozen", tape, oldest: 1, head: 42 };
		const line = new Timeline({ player, isFlag: ({ seq }) => seq % 2 > 0 });
		line.arrived(list);
		line.index({ last: 40, t: 4e8, buckets: [[0, 1, 40, 7]], flags: [{ seq: 15 }, { seq: 39 }] });
		line.arrived([42, 43].map(record));
		const all = (i) => line.buckets.reduce((n, b) => n + b[i], 0);
		return [all(2), all(3), ...line.flags.map((f) => f.seq)];
	})()`)
	want := []int{43, 10, 15, 39, 41, 43}
	assert.True(t, slices.Equal(got, want), "records, changes, flags: got %v, want %v", got, want)
}
