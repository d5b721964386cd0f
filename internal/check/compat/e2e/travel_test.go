package e2e

import (
	"fmt"
	"slices"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"listwatch/internal/check/assert"
)

// travelling looks at every frame for the given ms of the stage's clock, or until a frozen stage is at rest. It returns
// the pictures' faults, the numbers of frames and of moving tokens in them, and the durations of hops and whole ways.
const travelling = `((lasts) => new Promise((done) => {
	const { player, picture } = listwatch;
	const began = player.clock;
	const [wrong, ways, hops] = [[], {}, []];
	let [hop, since, whole, frames, moved] = ["", 0, false, 0, 0];
	const look = () => {
		const p = picture({ texts: false });
		const at = player.clock;
		frames++;
		const say = (what) => wrong.length < 20 && wrong.push("at " + p.cursor + ": " + what);
		const changes = new Set(p.moving.map((m) => m.key + " " + m.rv));
		if (p.level === 0 && changes.size > 1) say("moving at once: " + [...changes].join(", "));
		if (new Set(p.moving.map((m) => m.owner)).size < p.moving.length) say("an owner has two in the air");
		const drawn = p.drawn.map((d) => [d.key, d.rv, d.in ? d.owner : "", d.in].join(" ") + (d.in ? "" : d.owner));
		for (const d of drawn.filter((each, i) => drawn.indexOf(each) !== i)) say("drawn twice: " + d);
		const change = (r) => (r?.key ?? "").split("/").slice(-2).join("/") + " " + (r?.rv || "0");
		const of = p.moving[0] && p.moving[0].key + " " + p.moving[0].rv;
		const known = of && p.moving[0].rv !== "0" && player.mode !== "frozen" &&
			player.tape.between(p.cursor - 40, p.cursor + 1).some((r) => listwatch.stage.here(r) && change(r) === of);
		const told = known && change(player.tape.get(p.banner.seq));
		if (known && told !== of) say("the sentence is not of " + of + ": " + p.banner.text);
		const marked = document.querySelector("#records [aria-current]");
		const row = Number(marked?.dataset.seq ?? p.banner.seq);
		if (row !== p.banner.seq) say("the table marks " + row + ", the sentence is of " + p.banner.seq);
		if (p.said.words && !p.said.words.startsWith(p.said.row.replace("…",
			""))) say("the number is another record's: " + p.said.words);
		for (const m of p.moving) {
			moved++;
			if (m.departs ? m.seq > p.cursor : m.seq <= p.cursor) say("record " + m.seq + " does not fit its token");
			const stands = p.drawn.filter((d) => d.in && d.key === m.key && d.rv === m.rv && d.owner === m.owner);
			if (stands.length > 0) say(m.point + " of " + m.owner + " is on its way, and stands in " + stands[0].in);
			if (!m.key || m.rv === "0") continue;
			const etcd = Number(document.querySelector("[data-text='etcd.rev']").textContent);
			if (m.station !== "etcd" && etcd < Number(m.rv)) say(m.rv + " has left etcd, which is at " + etcd);
			const way = (ways[m.rv] ??= { from: at, to: at });
			way.to = at;
		}
		const now = p.moving.map((m) => m.seq + m.owner).join();
		if (now !== hop) {
			if (hop && whole) hops.push(at - since);
			[hop, since, whole] = [now, at, frames > 1]; // the first frame's hop may have begun earlier
		}
		if (at - began < lasts && !(listwatch.player.mode === "frozen" && frames > 5 && p.moving.length === 0)) {
			return requestAnimationFrame(look);
		}
		done({ Wrong: wrong, Frames: frames, Moved: moved, Hops: hops,
			Ways: Object.values(ways).map((w) => w.to - w.from) });
	};
	requestAnimationFrame(look);
}))`

// travel is the result of travelling.
type travel struct {
	Wrong         []string
	Frames, Moved int
	Hops, Ways    []float64 // ms of the stage's clock
}

// judge fails the test for each fault, for hops under 40 ms, and if too little moved.
func (s travel) judge(t *testing.T, where string) {
	t.Helper()
	assert.EqualSlices(t, nil, s.Wrong, where)
	for _, ms := range s.Hops {
		assert.True(t, ms >= 40, "%s: a hop took %.0f ms", where, ms)
	}
	assert.True(t, s.Moved >= 10 && len(s.Hops) >= 5,
		"%s: %d tokens on their way in %d frames, %d hops", where, s.Moved, s.Frames, len(s.Hops))
	t.Logf("%s: %d frames, %d hops, ways %.0f ms", where, s.Frames, len(s.Hops), s.Ways)
}

// TestOneChangeTravels looks at every frame of ten changes at once, one alone, three a second, one for 204 watchers, a
// replay, a figure and a story. Changes must move one at a time and never be drawn twice, with hops long enough to see.
func TestOneChangeTravels(t *testing.T) {
	t.Parallel()
	alone(t)
	v, p := still(t)
	for range 3 {
		post(t, v.URL+"/viz/watchers", map[string]any{"resource": "pods"})
	}
	p.until(t, `$$("#watchers > .lane").length === 4`)
	p.caughtUp(t, v)
	watch := func(ms int, act string) travel {
		t.Helper()
		return evaluate[travel](t, p, fmt.Sprintf("(%s, %s(%d))", act, travelling, ms))
	}
	one := watch(10_000, `$("#create-pod").click()`) // first: later, the stage would hurry because of other changes
	one.judge(t, "live")
	assert.True(t, len(one.Ways) == 1 && one.Ways[0] >= 3000 && one.Ways[0] <= 9000,
		"the viewer's change was on its way for %.0f ms, want 3 to 9 s: its sentences are read", one.Ways)
	const tenAtOnce = `(async () => { for (let i = 0; i < 10; i++) await fetch("/api/v1/namespaces/default/pods", {
		method: "POST", headers: { "Content-Type": "application/json" },
		body: JSON.stringify({ metadata: { name: "p" + i },
			spec: { containers: [{ name: "c", image: "example.com/c" }] } }),
	}); })()`
	burst := watch(14000, tenAtOnce)
	burst.judge(t, "ten at once")
	// The viewer made all ten changes. The page sums up the changes after the fifth.
	assert.True(t, len(burst.Ways) == 5, "of ten changes %d travelled", len(burst.Ways))
	p.is(t, "5", "changes that are summed", `listwatch.player.own.summed.size`)
	p.run(t, `listwatch.follow.clear(), void fetch("/api/v1/namespaces/default/pods/p3", { method: "DELETE" })`)
	p.until(t, `(() => {
		const token = $picture().drawn.find((d) => d.in === "" && d.key === "default/p3");
		if (!token) return false;
		const at = { clientX: token.x, clientY: token.y, bubbles: true };
		document.elementFromPoint(token.x, token.y).dispatchEvent(new MouseEvent("click", at));
		return listwatch.follow.key === "default/p3";
	})()`)
	// While paused, the page lights the station that holds a token, even if the cursor's record is about another
	// station, and draws the token's path ahead.
	p.run(t, `await listwatch.player.live(), $("#create-pod").click()`)
	p.is(t, "true", "the station of a paused token is lit", `await new Promise((done) => {
		const look = () => {
			const token = listwatch.picture({ texts: false }).drawn.filter((d) => d.in === "" && d.rv !== "0").at(-1);
			const holds = (b) => b.left < token.x && token.x < b.right && b.top < token.y && token.y < b.bottom;
			const hit = (el) => holds(el.querySelector(".hit").getBoundingClientRect());
			const over = token ? $$(".station").filter(hit) : [];
			const begun = over.length > 0 && over.every((el) => !/^(http|etcd)$/.test(el.dataset.station));
			if (!begun) return requestAnimationFrame(look);
			listwatch.player.freeze();
			const drawn = () => over.some((el) => el.classList.contains("told"))
				&& listwatch.picture({ texts: false }).ahead.some(({ rv }) => rv === token.rv);
			requestAnimationFrame(() => requestAnimationFrame(() => done(drawn())));
		};
		look();
	})`)
	p.run(t, `await listwatch.player.live()`)

	// At three changes a second, some changes travel the whole way. The rest wait, or arrive without a token.
	post(t, v.URL+"/viz/knobs", map[string]any{"name": "traffic.rate", "value": "3"})
	p.until(t, `$picture().pile > 0`)
	some := watch(8000, "1")
	some.judge(t, "three a second")
	assert.False(t, len(some.Ways) < 2 || len(some.Ways) > 8 || slices.Max(some.Ways) < 1000,
		"of three changes a second these travelled, for %.0f ms; want a few, each a whole way", some.Ways)
	post(t, v.URL+"/viz/knobs", map[string]any{"name": "traffic.rate", "value": "0"})
	// The token splits for the watchers with a lane; the other watchers are dots.
	for range 200 {
		post(t, v.URL+"/viz/watchers", map[string]any{"resource": "pods"})
	}
	p.until(t, `$picture().crowd.n === 204`)
	watch(5000, `document.querySelector("#create-pod").click()`).judge(t, "204 watchers")

	replayed := func(address, where, act string) {
		t.Helper()
		p.navigate(t, v.URL+address)
		p.until(t, `window.listwatch?.player.head > 0 && listwatch.player.mode === "frozen"`)
		watch(5000, act).judge(t, where)
	}
	replayed("/?take=life", "replay", `listwatch.player.play()`)
	replayed("/?figure=1&take=life", "figure", `listwatch.player.play()`)
	p.navigate(t, v.URL+"/?story=two-queues&beat=2")
	p.until(t, `document.body.dataset.rest === "true"`)
	p.press(t, kb.ArrowRight)
	p.until(t, `document.body.dataset.rest !== "true"`)
	watch(8000, "1").judge(t, "story")
}

// standing stops at each record that moves a change on. It returns the tokens in a queue that does not count them, and
// the names that cover another name or a text.
const standing = `(async () => {
	const { motion, player, stage: { scene, planner } } = listwatch;
	const frame = () => new Promise(requestAnimationFrame);
	const meet = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
	const wrong = [];
	let named = 0;
	await player.tape.load(player.oldest + 1, player.head + 1);
	const all = player.tape.between(player.oldest + 1, player.head + 1).filter(listwatch.stage.here);
	for (const r of all.filter((r) => planner.travels(r))) {
		await player.seek(r.seq);
		for (let n = 0; n < 3; n++) await frame();
		const at = r.seq + " " + r.point + ": ";
		for (const { label, x, y } of planner.standing) {
			const in_ = scene.wells().find(([l, t, r, b]) => x > l + 1 && x < r - 1 && y > t && y < b);
			if (in_) wrong.push(at + label + " stands on a queue that does not count it");
		}
		const names = motion.brush.labels.map(([, y, text, x, w]) => ({ text, box: [x, y - 10, x + w, y - 1] }));
		named += names.length;
		names.forEach(({ text, box }, i) => {
			if (names.slice(i + 1).some((other) => meet(box, other.box))) wrong.push(at + text + " is on a name");
			const word = scene.words(() => true).find(([l, t, r, b]) => meet(box, [l, t + 3, r, b - 3]));
			if (word) wrong.push(at + text + " is on a word at " + word.map(Math.round));
		});
	}
	return named < 50 ? [named + " names were seen"] : wrong;
})()`

// TestWhatStandsCanBeRead expects standing to find no fault in the recording of one pod's life.
func TestWhatStandsCanBeRead(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-demo=false", "-controllers=false")
	p := openPage(t, "about:blank")
	p.do(t, looks[0].wear(1))
	p.navigate(t, v.URL+"/?take=life")
	p.until(t, `window.listwatch?.player.recording && listwatch.player.head > 0`)
	p.none(t, "where a change stands", standing)
}
