package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"listwatch/internal/check/compat/program"
	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
)

// inspected is what the inspector shows.
type inspected struct {
	Open                   bool
	Title, Tab, Words      string
	Point, File, Line, Lit string   // of the code leaf; Lit is the number of the lit line
	Breaks                 []string // what its three ways to break copy
}

const readInspector = `(() => {
	const panel = $("#inspector");
	const figure = panel.querySelector("figure.decl");
	return {
		Open: !panel.hidden, Title: panel.querySelector("h2").textContent, Tab: panel.querySelector("[aria-selected=true]").dataset.tab,
		Words: panel.querySelector("#leaf").textContent, Point: figure?.dataset.point ?? "", File: figure?.dataset.file ?? "",
		Line: figure?.dataset.line ?? "", Lit: panel.querySelector(".l.lit")?.dataset.n ?? "", Breaks: [...panel.querySelectorAll("[data-copy]")].map((copy) => copy.dataset.copy),
	};
})()`

// inspect waits until the inspector shows what fits.
func (p *page) inspect(t *testing.T, what string, fits func(inspected) bool) inspected {
	t.Helper()
	var seen inspected
	program.Eventually(t, patience, func() (bool, string) {
		seen = evaluate[inspected](t, p, readInspector)
		return fits(seen), fmt.Sprintf("want %s, the inspector shows %.600s", what, fmt.Sprintf("%+v", seen))
	})
	return seen
}

// TestTheStageCanBeLookedInto starts one program and one browser for everything that can be looked into.
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
	t.Run("the wire is bytes", func(t *testing.T) { wireIsBytes(t, p, v) })
	t.Run("a leaf that comes slowly is shown", func(t *testing.T) { slowLeafIsShown(t, p, v) })
	t.Run("the ring is readable", func(t *testing.T) { ringIsReadable(t, p) })
	t.Run("every point has its sentence", func(t *testing.T) { everyPointHasItsSentence(t, p) })
	t.Run("the level follows the rate", func(t *testing.T) { levelFollowsTheRate(t, p) })
	t.Run("the timeline counts what was summed up", func(t *testing.T) { timelineCountsSums(t, p) })
	t.Run("an anomaly is never merged", func(t *testing.T) { anomalyIsNeverMerged(t, p) })
}

func everyStationOpens(t *testing.T, p *page) {
	stations := evaluate[[]string](t, p,
		`$$(".scenery [data-station]").map((el) => el.dataset.station)`)
	if len(stations) != 16 {
		t.Fatalf("stations on stage: %q", stations)
	}
	for _, station := range stations {
		evaluate[bool](t, p, fmt.Sprintf(
			`$('.scenery [data-station=%s]').focus(), document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true })) || true`, station))
		p.inspect(t, station, func(i inspected) bool {
			return i.Open && i.Tab == "what" && strings.Contains(i.Words,
				"Why it exists")
		})
		if got := evaluate[string](t, p, "document.body.dataset.inspecting"); got != station {
			t.Errorf("inspecting %q, want %q", got, station)
		}
	}
	for _, tab := range []string{"state", "code", "blocked", "history", "upstream", "knobs", "what"} {
		p.do(t, chromedp.Click(chromedp.CSS("#tab-"+tab)))
		p.inspect(t, tab, func(i inspected) bool {
			return i.Tab == tab && evaluate[bool](t, p,
				fmt.Sprintf(`$("#leaf .leaf.%s") !== null`, tab))
		})
	}
	p.strike(t, "Escape")
	p.inspect(t, "nothing", func(i inspected) bool { return !i.Open })
	p.click(t, `[data-watcher] [data-queue="input"] .wall`)
	p.inspect(t, "a watcher's input", func(i inspected) bool {
		return i.Open && strings.HasPrefix(i.Title,
			"input of w")
	})
}

// codeMoves steps over records of several stations: each lights the line that reported it, in whatever file.
func codeMoves(t *testing.T, p *page) {
	p.click(t, "#tab-code")
	begin := evaluate[int](t, p, `(async () => {
		const tape = listwatch.player.tape;
		await tape.load(1, listwatch.player.head + 1);
		const commit = await tape.find(listwatch.player.head - 80, -1, 1, listwatch.player.head, (r) => r.point === "TxnCommitted" && r.key.includes("busy"));
		await window.listwatch.player.seek(commit);
		return commit;
	})()`)
	files := map[string]bool{}
	for range 14 {
		r := evaluate[struct {
			Point string
			Seq   int
		}](t, p,
			`({ Point: listwatch.player.tape.get(listwatch.player.cursor).point, Seq: listwatch.player.cursor })`)
		got := p.inspect(t, r.Point, func(i inspected) bool {
			return i.Point == r.Point && i.Lit == i.Line &&
				i.Lit != ""
		})
		if at := got.File + ":" + got.Line; !slices.Equal(got.Breaks, []string{"break " + at, at, at}) {
			t.Errorf("%s: debuggers are told %q, the line is %s", r.Point, got.Breaks, at)
		}
		if text := evaluate[string](t, p, `$(".l.lit").textContent`); !strings.Contains(text,
			"probe."+r.Point) {
			t.Errorf("%s: the lit line is %q", r.Point, text)
		}
		if link := evaluate[string](t, p,
			`$("#leaf a.button").getAttribute("href")`); !strings.HasPrefix(link,
			"vscode://file/") || !strings.HasSuffix(link, "/"+got.File+":"+got.Line) {
			t.Errorf("%s: an editor is sent to %q, the line is %s:%s", r.Point, link, got.File, got.Line)
		}
		files[got.File] = true
		p.strike(t, ".")
		program.Eventually(t, patience, func() (bool, string) {
			at := evaluate[int](t, p, "window.listwatch.player.cursor")
			return at == r.Seq+1, fmt.Sprintf("at %d, want %d", at, r.Seq+1)
		})
	}
	if len(files) < 4 {
		t.Errorf("from record %d on the code was in %v only", begin, files)
	}
}

func gutterCounts(t *testing.T, p *page, v *viz) {
	p.strike(t, "End")
	p.click(t, `[data-station=ring] .title`, "#tab-code")
	p.inspect(t, "the ring", func(i inspected) bool { return i.Title == "history ring" && i.Lit != "" })
	v.busy(t, 200)
	program.Eventually(t, patience, func() (bool, string) {
		seen := evaluate[[]string](t, p,
			`$$("#leaf .l [data-hits]").map((el) => el.dataset.hits + " " + el.textContent)`)
		want := evaluate[[]string](t, p,
			`$$("#leaf .l [data-hits]").map((el) => el.dataset.hits + " " + (listwatch.state.resources.pods.points[el.dataset.hits] ?? 0))`)
		return len(seen) > 0 && fmt.Sprint(seen) == fmt.Sprint(want), fmt.Sprintf("the gutter says %q, the log %q",
			seen, want)
	})
}

func pastIsOfItsTime(t *testing.T, p *page) {
	p.click(t, "#tab-state")
	for _, fraction := range []string{"0.4", "0.8"} {
		evaluate[bool](t, p,
			`(async () => { const { player } = window.listwatch; await player.seek(Math.round(player.head * `+fraction+
				`)); return true; })()`)
		p.inspect(t, "the ring as it was", func(inspected) bool {
			return evaluate[bool](t, p,
				`$('#leaf [data-field="endIndex"] td')?.textContent.split(",")[0] === String(listwatch.state.resources.pods.ring.end)
				&& Number($("#leaf .leaf").dataset.seq) === listwatch.player.cursor`)
		})
	}
}

// wireIsBytes compares what the leaf shows with what the program says was on the wire.
func wireIsBytes(t *testing.T, p *page, v *viz) {
	p.strike(t, "End")
	p.strike(t, "Escape")
	p.click(t, `[data-station=wire] .title`, "#tab-bytes")
	var streams []struct {
		Watcher string
		Wire    struct {
			Request string
			Chunks  []struct{ SizeLine string }
		}
	}
	v.Get(t, "/viz/wire?resource=pods", &streams)
	if len(streams) == 0 || len(streams[0].Wire.Chunks) == 0 {
		t.Fatalf("nothing on the wire: %+v", streams)
	}
	for _, s := range streams {
		line, _, _ := strings.Cut(s.Wire.Request, "\r\n")
		p.inspect(t, line, func(i inspected) bool {
			return strings.Contains(i.Words, line+`\r\n`) && strings.Contains(i.Words, `HTTP/1.1 200 OK\r\n`) &&
				strings.Contains(i.Words, `Transfer-Encoding: chunked\r\n`)
		})
		size := strings.TrimSpace(s.Wire.Chunks[len(s.Wire.Chunks)-1].SizeLine)
		p.inspect(t, "a chunk of "+size, func(i inspected) bool { return strings.Contains(i.Words, size+`\r\n`) })
	}
	p.strike(t, "Escape")
}

// slowLeafIsShown looks at a leaf that takes longer to come than the page waits before it asks for a newer one.
func slowLeafIsShown(t *testing.T, p *page, v *viz) {
	p.run(t, `window.quick = window.fetch;
		window.fetch = async (url, ...rest) => {
			const answer = await quick(url, ...rest);
			if (String(url).includes("/viz/part/")) await new Promise((done) => setTimeout(done, 2000));
			return answer;
		};`)
	post(t, v.URL+"/viz/knobs", map[string]any{"name": "traffic.rate", "value": "6"})
	p.click(t, "[data-station=wire] .title", "#tab-bytes")
	p.until(t, `$("#leaf details.stream") !== null`)
	post(t, v.URL+"/viz/knobs", map[string]any{"name": "traffic.rate", "value": "0"})
	p.run(t, `window.fetch = quick`)
	p.strike(t, "Escape")
}

// levelFollowsTheRate asks the page's own module.
func levelFollowsTheRate(t *testing.T, p *page) {
	got := evaluate[string](t, p, `(async () => {
		const { newLevel } = await import("/viz/assets/stage/level.js");
		const l = newLevel();
		const seen = [];
		for (const [rate, now] of [[5, 0], [21, 1], [15, 100], [18, 5000], [10, 6000], [10, 7000], [10, 8100], [1999, 8200], [2001, 8300], [9000, 8400], [300, 9000], [300, 12000], [0, 12100], [0, 15000]]) {
			const { level, every } = l.at(rate, now);
			seen.push(level + (level === 2 ? "/" + every : ""));
		}
		return seen.join(" ");
	})()`)
	if want := "0 1 1 1 1 1 0 2/64 3 3 3 2/8 2/2 0"; got != want {
		t.Errorf("levels by rate: got %s, want %s", got, want)
	}
}

// anomalyIsNeverMerged lets ten thousand events and three evictions come at once, at every level: each eviction
// travels.
func anomalyIsNeverMerged(t *testing.T, p *page) {
	type drawing struct{ Tokens, Evictions, Counted int }
	for level, most := range []int{3000, 3000, 3000, 3} {
		got := evaluate[drawing](t, p, fmt.Sprintf(`(() => {
			const { motion, player } = window.listwatch;
			player.freeze();
			motion.clear();
			const list = [];
			for (let i = 0; i < 10000; i++) {
				const rv = String(100000 + i);
				list.push({ point: "RingAppend", resource: "pods", type: "ADDED", key: "/registry/pods/default/x", rv, args: [0, i + 1, 100, 1] });
				if (i %% 4000 === 1) list.push({ seq: i, point: "WatcherForced", resource: "pods", subject: "w" + i, type: "", rv: "0" });
			}
			motion.records(list, "pods", performance.now(), %d);
			const counted = motion.flow.sums(performance.now() + 1).get("ring")?.n ?? 0;
			const seen = { Tokens: motion.alive, Evictions: motion.anomalies, Counted: counted };
			motion.clear();
			return seen;
		})()`, []int{10, 100, 1000, 10000}[level]))
		if got.Evictions != 3 || got.Tokens > most+3 || level == 3 && got.Counted != 10000 {
			t.Errorf("level %d: drawn %+v, want all 3 evictions and at most %d others", level, got, most)
		}
	}
}

// ringIsReadable compares the ring's cells with what it holds.
func ringIsReadable(t *testing.T, p *page) {
	type ring struct {
		Start, End, Capacity int
		Cells, Held          int
	}
	read := func() ring {
		return evaluate[ring](t, p, `(() => {
			const el = $("[data-station=ring]");
			return {
				Start: Number(el.dataset.start), End: Number(el.dataset.end), Capacity: Number(el.dataset.capacity), Cells: el.querySelectorAll(".cell").length,
				Held: el.querySelectorAll(".cell.held").length,
			};
		})()`)
	}
	r := read()
	if r.Cells != min(r.Capacity, 128) || r.Held != min(r.End-r.Start, r.Cells) {
		t.Errorf("%+v: want a cell for each place, and as many held as there are events", r)
	}
}

// everyPointHasItsSentence compares what the page says of a record of each point with what the program says.
func everyPointHasItsSentence(t *testing.T, p *page) {
	var written []string
	var want []string
	for i, point := range probe.Points() {
		r := probe.Record{
			Seq: uint64(i + 1), Point: point, Resource: "pods", Subject: "w3", Type: "MODIFIED",
			Key: "/registry/pods/default/a", RV: 41,
			Args: [4]int{1, 2, 3, 4}, Text: "why it is so",
		}
		written = append(written, string(fold.AppendRecord(nil, &r)))
		want = append(want, r.Sentence())
		if strings.ContainsAny(r.Sentence(), "{}") || len(r.Sentence()) < 12 {
			t.Errorf("%s says %q", point, r.Sentence())
		}
	}
	got := evaluate[[]string](t, p, `(async () => {
		const { sentence } = await import("/viz/assets/log/fold.js");
		return [`+strings.Join(written, ",")+`].map((r) => sentence(listwatch.stage.infos.get(r.point), r));
	})()`)
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%s: the page says %q, the program %q", probe.Points()[i], got[i], want[i])
		}
	}
}

// timelineCountsSums gives a timeline of its own a sum and a record before the server's index, of which a part of that
// sum is counted already: everything is counted once.
func timelineCountsSums(t *testing.T, p *page) {
	got := evaluate[[]int](t, p, `(async () => {
		const { newTimeline } = await import("/viz/assets/timeline/timeline.js");
		const line = newTimeline({ mode: "frozen" }, { flag: () => null });
		const state = (t, RingAppend) => ({ seq: 10, t, resources: { pods: { points: { RingAppend } } } });
		const sum = (from, seq, t, n) => ({ from, seq, flags: [{ seq: from + 5 }, { seq: seq - 5 }], state: state(t, n) });
		line.expect(state(1e8, 2));
		line.skip(sum(10, 60, 1e9, 12));
		line.add([{ seq: 61, t: 1.1e9, point: "RingAppend" }]);
		line.index({ last: 40, t: 8e8, events: 7, buckets: [[0, 1, 40, 7]], flags: [{ seq: 15 }] });
		line.skip(sum(61, 100, 2e9, 20));
		line.skip(sum(61, 100, 2e9, 20));
		const all = (i) => line.buckets.reduce((n, b) => n + b[i], 0);
		return [all(2), all(3), ...line.flags.map((f) => f.seq)];
	})()`)
	if want := []int{100, 20, 15, 55, 66, 95}; !slices.Equal(got, want) {
		t.Errorf("records, events, flags: got %v, want %v", got, want)
	}
}
