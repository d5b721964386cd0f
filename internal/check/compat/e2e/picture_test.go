package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
)

// contradictions takes a picture (listwatch.picture()) and returns the contradictions in it.
const contradictions = `(p) => {
	const found = [];
	if (p.banner.seq > p.cursor) found.push("the banner is of record " + p.banner.seq);
	const begins = p.said.words.startsWith(p.said.row.replace("…", ""));
	if (p.said.row && !begins) found.push("the sentence and the number beside it are two records'");
	if (p.table.seq !== p.cursor) found.push("the table's top row is record " + p.table.seq);
	if (p.cursor > p.newest) found.push("the cursor is beyond the newest record, " + p.newest);
	const late = p.mode === "live" && p.behind > (p.level > 0 ? 4000 : 12000);
	if (late) found.push("the stage is " + p.behind + " ms behind");
	if (p.ring.end - p.ring.start > p.ring.capacity) found.push("the ring holds more than its capacity");
	for (const q of p.queues) {
		const name = q.name + " of " + q.owner;
		if (q.cap > 0 && q.len > q.cap) found.push(name + " holds " + q.len + " of " + q.cap);
		if (q.slotted && q.tokens.length !== q.len) found.push(name + ": " + q.tokens.length + " tokens, len " + q.len);
	}
	for (const m of p.moving) {
		if (!m.departs && m.seq <= p.cursor) found.push("record " + m.seq + " is folded, and its token on its way");
		if (m.departs && m.seq > p.cursor) found.push("record " + m.seq + " is to come, and its token has left");
		for (const s of p.shelves) {
			if (m.station !== s.station || (m.owner !== s.owner && s.owner !== "")) continue;
			const name = (key) => key.replace(/^\/registry\/[^/]+\//, "");
			const row = s.rows.find((each) => each.key === name(m.key));
			if (!row || BigInt(row.rv) < BigInt(m.rv || 0)) continue;
			found.push(s.station + " has " + row.key + " " + row.rv + " while " + m.rv + " is on its way there");
		}
	}
	return found.map((what) => "at " + p.cursor + " (" + p.mode + "): " + what);
}`

// numbers compares the stage's numbers with the test's own fold at the cursor. The page's fold may be ahead.
const numbers = `() => {
	const { player, stage: { fold } } = listwatch;
	const cursor = Number(document.body.dataset.seq);
	const state = (globalThis.mine ??= structuredClone(listwatch.state));
	fold.apply(state, player.tape.between(state.seq + 1, cursor + 1));
	const number = (text) => Number(/\d+/.exec(text)?.[0] ?? NaN);
	const { shelves, ring } = state.resources.pods;
	const found = [["the cursor", cursor, number($text("#cursor"))],
		["the store", shelves["store/cacher"].n, number($text("[data-text='store.n']"))],
		["the ring's end", ring.end, Number($("[data-station=ring]").dataset.end)],
		["the top row", cursor, Number($("#records tr").dataset.seq)],
		["the slider", cursor, number($("#timeline input").ariaValueText)]]
		.filter(([, is, shown]) => is !== shown);
	return found.map(([name, is, shown]) => "at " + cursor + ": " + name + " is " + is + ", shown is " + shown);
}`

// watchPicture runs checks on n frames of the page. It returns the faults found and the number of moving tokens seen.
func (p *page) watchPicture(t *testing.T, n int, checks string) (found []string, moving int) {
	t.Helper()
	const chunk = 10 // frames in one call, few because frames may come slowly
	for ; n > 0; n -= chunk {
		type seen struct {
			Found  []string
			Moving int
		}
		s := evaluate[seen](t, p, fmt.Sprintf(`(async () => {
			const seen = { Found: [], Moving: 0 };
			for (let n = 0; n < %d; n++) {
				await $frames(1);
				const p = $picture();
				for (const check of [%s]) seen.Found.push(...check(p));
				seen.Moving += p.moving.length;
			}
			return seen;
		})()`, min(n, chunk), checks))
		found, moving = append(found, s.Found...), moving+s.Moving
	}
	return found, moving
}

// TestThePictureNeverContradictsItself looks at eight hundred frames, or two thousand with FULL: live at four rates,
// frozen, scrubbed, in a replay, and while the world is held.
func TestThePictureNeverContradictsItself(t *testing.T) {
	t.Parallel()
	v := startViz(t)
	p := openPage(t, v.URL)
	p.live(t, v)
	p.findsWhatIsWrong(t)
	frames := 100
	if full {
		frames = 250
	}
	looks := func(name string, more ...string) {
		t.Helper()
		found, moving := p.watchPicture(t, frames, strings.Join(append(more, contradictions), ", "))
		if len(found) > 0 {
			t.Errorf("%s: %d contradictions in %d frames:\n%s", name, len(found), frames,
				strings.Join(found[:min(len(found), 8)], "\n"))
		}
		assert.False(t, name == "live at 1 changes a second" && moving < frames/10,
			"%s: %d tokens on their way in %d frames", name, moving, frames)
	}
	for i, rate := range []int{1, 60, 500, 10000} {
		more := []string{numbers, numbers}[min(i, 2):] // above 60 changes a second the feed sends sums
		post(t, v.URL+"/viz/knobs", map[string]any{"name": "traffic.rate", "value": fmt.Sprint(rate)})
		looks(fmt.Sprint("live at ", rate, " changes a second"), more...)
	}
	post(t, v.URL+"/viz/knobs", map[string]any{"name": "traffic.rate", "value": "1"})
	p.caughtUp(t, v)
	p.strike(t, " ")
	looks("frozen")
	p.run(t, `await listwatch.player.seek(listwatch.player.head - 400);`)
	looks("scrubbed")
	p.run(t, `await listwatch.player.play();`)
	looks("replay")
	p.strike(t, "End")
	post(t, v.URL+"/viz/hold", map[string]any{"do": "hold", "unattended": "10m"})
	looks("held")
	post(t, v.URL+"/viz/hold", map[string]any{"do": "release"})
	post(t, v.URL+"/viz/knobs", map[string]any{"name": "traffic.rate", "value": "0"})
	p.sameAsServer(t, v) // although the feed sent sums instead of records
	p.is(t, "0", "records lost", "listwatch.state.lost")
}

// caughtUp waits until the cursor has reached the record that is the newest at the call.
func (p *page) caughtUp(t *testing.T, v *viz) {
	t.Helper()
	var snapshot struct{ Seq uint64 }
	v.Get(t, "/viz/snapshot", &snapshot)
	program.Eventually(t, patience, func() (bool, string) {
		at := evaluate[uint64](t, p, "listwatch.picture({ texts: false }).cursor")
		return at >= snapshot.Seq, fmt.Sprintf("the cursor is at %d, the log was at %d", at, snapshot.Seq)
	})
}

// findsWhatIsWrong tests contradictions with a picture without a fault and with pictures that have one fault each.
func (p *page) findsWhatIsWrong(t *testing.T) {
	t.Helper()
	const good = `{
		cursor: 7, newest: 9, mode: "live", behind: 500, banner: { seq: 7 }, said: { words: "a", row: "a" },
			table: { seq: 7 }, ring: { start: 0, end: 3, capacity: 100 },
		queues: [{ name: "input", owner: "w1", len: 1, cap: 10, slotted: true,
			tokens: [{ key: "default/a", rv: "4" }] }],
		shelves: [{ station: "store", owner: "cacher", n: 1, rows: [{ key: "default/a", rv: "3" }] }],
		moving: [{ key: "/registry/pods/default/a", rv: "4", owner: "cacher", station: "store", seq: 8 }],
	}`
	for name, wrong := range map[string]string{
		"":                               "",
		"the banner is of":               "p.banner.seq = 8",
		"two records'":                   `p.said.row = "b"`,
		"the table's top row":            "p.table.seq = 8",
		"beyond the newest":              "p.newest = 6",
		"ms behind":                      "p.behind = 19000",
		"more than its capacity":         "p.ring.end = 101",
		"input of w1 holds":              "p.queues[0].cap = 0.5",
		"2 tokens, len 1":                "p.queues[0].tokens.push({})",
		"is folded, and its token":       "p.moving[0].seq = 7",
		"is to come, and its token":      "p.moving[0].departs = true",
		"store has default/a 4 while 4":  `p.shelves[0].rows[0].rv = "4"`,
		"store has default/a 12 while 4": `p.shelves[0].rows[0].rv = "12"`,
	} {
		found := evaluate[[]string](t, p, fmt.Sprintf("(() => { const p = %s; %s; return (%s)(p); })()", good, wrong,
			contradictions))
		if name == "" && len(found) != 0 || name != "" && (len(found) != 1 || !strings.Contains(found[0], name)) {
			t.Errorf("%q: found %q", wrong, found)
		}
	}
}

// TestWhatIsWrittenIsFollowed creates two pods with kubectl, and then one with the page's button. The page follows the
// newest of them, and follows a clicked row until the next click. Change and Delete act on the followed object. Home in
// a select list does not move the cursor.
func TestWhatIsWrittenIsFollowed(t *testing.T) {
	t.Parallel()
	v, p := still(t)
	const followed = `listwatch.follow.key`
	const changes = `[$("#change-pod").disabled, $("#delete-pod").disabled, $text("#change-pod")].join()`
	p.press(t, "x")
	p.run(t, `$("#traffic").focus()`)
	p.press(t, kb.Home)
	p.is(t, "live", "Home in a list leads to", `document.body.dataset.mode`)
	p.is(t, "true,true,Change the followed pod", "with nothing followed", changes)
	k := kubectlFor(t, v)
	k.Run(t, "run", "by-kubectl", "--image=example.com/c")
	p.becomes(t, "default/by-kubectl", followed)
	k.Run(t, "run", "another", "--image=example.com/c")
	p.becomes(t, "default/another", followed)
	p.pick(t, "#create-pod")
	p.becomes(t, "default/a", followed)
	p.becomes(t, "false,false,Change default/a", changes)
	p.until(t, `$(".row.followed .key")?.textContent === "a"`)
	p.pick(t, "#delete-pod")
	p.until(t, changes+`.startsWith("true,true")`)
	p.caughtUp(t, v)
	p.becomes(t, "arrived", `document.body.dataset.own`) // earlier, the page could still begin to follow the deletion
	p.run(t, `listwatch.follow.clear()`)
	k.Run(t, "delete", "pod", "another", "--wait=false", "--now")
	p.becomes(t, "default/another", followed)
	click := `$(".row:not(.empty)").dispatchEvent(new MouseEvent("click", { bubbles: true }))`
	p.run(t, `listwatch.follow.clear(), %s`, click)
	p.until(t, `listwatch.follow.key !== ""`)
	p.run(t, `%s`, click)
	p.becomes(t, "", followed)
}

// TestWhatIsFollowedBeforeTheListHasComeStaysFollowed creates a pod before the page has its first snapshot.
func TestWhatIsFollowedBeforeTheListHasComeStaysFollowed(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-demo=false", "-controllers=false")
	p := openPage(t, "about:blank")
	p.do(t, before(`{
		const [ask, come] = [window.fetch, new Promise((done) => (window.come = done))];
		window.fetch = async (url, ...rest) => (String(url).startsWith("/viz/snapshot") && (await come),
			ask(url, ...rest));
	}`))
	p.navigate(t, v.URL)
	p.until(t, `window.listwatch`)
	p.pick(t, "#create-pod")
	p.until(t, `listwatch.follow.key === "default/a"`)
	p.run(t, `come()`)
	p.live(t, v)
	p.until(t, `listwatch.follow.key === "default/a" && $(".row.followed")`)
}

// TestTokensStandInTheirCellsInAPlaceOfAnyShape opens a figure's page in a wide and in a high window. There, too, the
// stage must draw tokens in their cells, or not at all.
func TestTokensStandInTheirCellsInAPlaceOfAnyShape(t *testing.T) {
	t.Parallel()
	v, all := quiet(t)
	i := slices.IndexFunc(all, func(s told) bool { return s.ID == filmStory })
	filled := all[i].Recorded[2].To
	p := openPage(t, "about:blank")
	p.do(t, look{"film", 900, 432, "light", "reduce"}.wear(1))
	p.navigate(t, v.URL+"/?figure=1&detail=boxes&take=story-"+filmStory)
	p.until(t, "window.listwatch?.player.head >= %d", filled)
	p.run(t, "await listwatch.player.seek(%d)", filled)
	p.none(t, "elsewhere", `(async () => {
		listwatch.stage.zoom.around("etcd");
		await $frames(4);
		const named = listwatch.picture().texts.filter(({ moves }) => moves);
		const { left, right } = $("#stage").getBoundingClientRect();
		if (named.length === 0) return ["no token stands"];
		return named.filter(({ x, w }) => x + w > left && x < right).map(({ text }) => text);
	})()`)
	for _, size := range []look{{"wide", 900, 432, "light", "reduce"}, {"high", 390, 700, "light", "reduce"}} {
		p.do(t, size.wear(1))
		for _, where := range []string{"frameOn([])", `frameOn(["dispatch", "watcher"])`, `around("watcher")`} {
			p.none(t, size.name+", "+where, `(async () => {
				listwatch.stage.zoom.%s;
				await $frames(4);
				const cells = $$("[data-queue] .held use").map((cell) => {
					const { left, right, top, bottom } = cell.getBoundingClientRect();
					const pipe = cell.closest("[data-queue]");
					const owner = cell.closest("[data-watcher]")?.dataset.watcher ?? "";
					return { of: [cell.dataset.key, pipe.dataset.queue, owner].join(), left, right, top, bottom };
				});
				const tokens = $picture().drawn.filter((token) => token.in && token.owner);
				const within = ({ x, y }, cell) => x > cell.left && x < cell.right && y > cell.top && y < cell.bottom;
				const owns = (token) => cells.some(({ of }) => of === [token.key, token.in, token.owner].join());
				const lost = tokens.filter((token) => owns(token) && !cells.some((cell) => within(token, cell)));
				if (cells.length < 10) return ["there are only " + cells.length + " cells"];
				return lost.map((token) => token.key + " of " + token.in + " at " + token.x + ", " + token.y);
			})()`, where)
		}
	}
}

// TestNothingIsCutInTheDefaultView looks at the demo under traffic, with versions of six digits. Every name and every
// version must be whole, even in a ring of few cells.
func TestNothingIsCutInTheDefaultView(t *testing.T) {
	t.Parallel()
	v := startViz(t)
	post(t, v.URL+"/viz/knobs", map[string]any{"name": "ring.capacity", "value": "16"})
	p := openPage(t, v.URL)
	p.live(t, v)
	post(t, v.URL+"/viz/knobs", map[string]any{"name": "traffic.rate", "value": "20"})
	p.until(t, `$$(".row:not(.empty) .key").some((el) => el.textContent.startsWith("t-"))
		&& $$("#ring-versions text").length === 16`)
	p.strike(t, " ")
	p.none(t, "cut", `(async () => {
		const { scene } = listwatch.stage;
		const show = scene.show.bind(scene);
		const late = (state) => JSON.parse(JSON.stringify(state).replace(/"(rv|oldest|newest)":"(\d+)"/g,
			(all, name, rv) => '"' + name + '":"' + (rv === "0" ? rv : 700000 + Number(rv)) + '"'));
		scene.show = (state, resource) => show(late(state), resource);
		scene.stale = true;
		await $frames(3);
		scene.show = show;
		const texts = listwatch.picture().texts.filter(({ text }) => text.length > 1 && text.includes("…"));
		const versions = $$("#ring-versions text").map((el) => [el.textContent, el.getComputedTextLength()]);
		if (versions.length !== 16) return ["the ring shows " + versions.length + " versions"];
		const wide = versions.filter(([text, w]) => text.length !== 6 || w > 39);
		return [...texts.map(({ text }) => text), ...wide.map((each) => each.join(" is as long as "))];
	})()`)
}

// whole returns the faults of the stage: another level of detail, a cut stage, a wrong number of names, and texts that
// are small, overlap or run over an edge.
const whole = `(async (level, names, fits) => {
	await $frames(6);
	const { scene } = listwatch.stage;
	const [stage, scale] = [$("#stage").getBoundingClientRect(), scene.root.getScreenCTM().a];
	const wrong = [];
	if (document.body.dataset.detail !== level) wrong.push("the level is " + document.body.dataset.detail);
	const wide = stage.left < -1 || stage.right > innerWidth + 1;
	if (wide || (fits && (stage.top < -1 || stage.bottom > innerHeight + 1))) wrong.push("the stage is cut");
	const seen = $$(".scenery text").filter((el) => el.textContent && el.checkVisibility({ visibilityProperty: true }));
	for (const el of seen) {
		const size = parseFloat(getComputedStyle(el).fontSize) * scale;
		if (size < 12) wrong.push(el.textContent + " is written in " + size + " px");
	}
	const titles = seen.filter((el) => el.matches(".title:not(.num), [data-detail=names] .side.others"));
	if (titles.length !== names) wrong.push("the names are " + titles.map((el) => el.textContent).join(", "));
	const texts = listwatch.picture().texts.filter((t) => !t.moves);
	if (texts.length < names) wrong.push("only " + texts.length + " texts are told");
	texts.forEach((a, i) => {
		if (a.x < stage.left - 1 || a.x + a.w > stage.right + 1) wrong.push(a.text + " runs over an edge");
		for (const b of texts.slice(i + 1)) if ($meet(a, b)) wrong.push(a.text + " on " + b.text);
	});
	return wrong;
})(%q, %d, %v)`

// level returns the level of detail, the visible parts that only the level "all" shows, whether the page has the data
// attributes on which other tests rely, and the address's detail parameter.
const level = `(() => {
	const of = { lock: "[data-lock]", budget: "#battery", goroutine: ".role", hand: "#hand-end" };
	const seen = Object.keys(of).filter((name) => $(of[name]).checkVisibility({ visibilityProperty: true }));
	const names = $$("[data-station], [data-queue][data-len][data-cap], [data-role], [data-lock]").length > 40;
	return [document.body.dataset.detail, ...seen, names, new URLSearchParams(location.search).get("detail")].join(" ");
})()`

// TestTheStageOpensStepByStep expects five names at first, eight boxes after Escape, and everything after one key or
// through a link. A click must open a box in place. Each level must be legible and whole, but may scroll on a phone.
func TestTheStageOpensStepByStep(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-demo=false")
	p := openPage(t, "about:blank")
	p.do(t, look{"projector", 1280, 720, "light", "reduce"}.wear(1))
	p.navigate(t, v.URL+"/?tour=1")
	p.until(t, `document.documentElement.dataset.first === "asks" && $$("#watchers .lane").length > 3`)
	p.none(t, "names", whole, "names", 5, true)
	p.strike(t, "Escape")
	p.none(t, "boxes", whole, "boxes", 8, true)
	p.becomes(t, "boxes true ", level)
	p.run(t, `$('[data-station="etcd3"] .hit').dispatchEvent(new MouseEvent("click", { bubbles: true }))`)
	p.until(t, `$('[data-queue="etcd3-incoming"]').checkVisibility({ visibilityProperty: true })`)
	p.strike(t, "k")
	p.becomes(t, "all lock budget goroutine hand true all", level)
	for _, size := range []look{{"laptop", 1440, 900, "dark", "reduce"}, {"wall", 1920, 1080, "light", "reduce"}} {
		p.do(t, size.wear(1))
		p.none(t, "all, "+size.name, whole, "all", 17, true)
	}
	p.do(t, look{"phone", 390, 844, "light", "reduce"}.wear(1))
	p.none(t, "all, on a phone", whole, "all", 17, false)
	p.strike(t, "k")
	p.none(t, "boxes, on a phone", whole, "boxes", 8, false)
	p.do(t, looks[2].wear(1))
	p.navigate(t, v.URL+"/?detail=all")
	p.live(t, v)
	p.becomes(t, "all lock budget goroutine hand true all", level)
	p.pick(t, "#detail")
	p.becomes(t, "boxes true ", level)
}
