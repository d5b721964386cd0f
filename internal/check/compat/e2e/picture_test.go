package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
)

// contradictions is a function of a picture (listwatch.picture()): what in it cannot be true at once.
const contradictions = `(p) => {
	const found = [];
	if (p.banner.seq > p.cursor) found.push("the banner is of record " + p.banner.seq);
	const begins = p.said.words.startsWith(p.said.row.replace("…", ""));
	if (p.said.row && !begins) found.push("the sentence and the number beside it are two records'");
	if (p.table.seq !== p.cursor) found.push("the table's top row is record " + p.table.seq);
	if (p.cursor > p.newest) found.push("the cursor is beyond the newest record, " + p.newest);
	if (p.mode === "live" && p.behind > (p.level > 0 ? 4 : 12)) found.push("the stage is " + p.behind + " s behind");
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

// watchPicture looks at n frames of the page and returns what they contradict themselves in.
func (p *page) watchPicture(t *testing.T, n int) (found []string, moving int) {
	t.Helper()
	const chunk = 10 // one call must not take long, and frames may come slowly
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
				seen.Found.push(...(%s)(p));
				seen.Moving += p.moving.length;
			}
			return seen;
		})()`, min(n, chunk), contradictions))
		found, moving = append(found, s.Found...), moving+s.Moving
	}
	return found, moving
}

// TestThePictureNeverContradictsItself looks at eight hundred frames, two thousand with FULL: live at four rates,
// frozen, scrubbed, in a replay, and while the world is held.
func TestThePictureNeverContradictsItself(t *testing.T) {
	t.Parallel()
	v := startViz(t)
	p := openPage(t, v.URL)
	p.live(t, v)
	frames := 100
	if full {
		frames = 250
	}
	looks := func(name string) {
		t.Helper()
		found, moving := p.watchPicture(t, frames)
		if len(found) > 0 {
			t.Errorf("%s: %d contradictions in %d frames:\n%s", name, len(found), frames,
				strings.Join(found[:min(len(found), 8)], "\n"))
		}
		assert.False(t, name == "live at 1 changes a second" && moving < frames/10,
			"%s: %d tokens on their way in %d frames", name, moving, frames)
	}
	for _, rate := range []int{1, 20, 500, 10000} {
		post(t, v.URL+"/viz/knobs", map[string]any{"name": "traffic.rate", "value": fmt.Sprint(rate)})
		looks(fmt.Sprint("live at ", rate, " changes a second"))
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
	p.sameAsServer(t, v) // of ten thousand a second it was sent sums
	p.is(t, "0", "records lost", "listwatch.state.lost")
}

// caughtUp waits until the cursor has come to the record that is the newest now.
func (p *page) caughtUp(t *testing.T, v *viz) {
	t.Helper()
	var snapshot struct{ Seq uint64 }
	v.Get(t, "/viz/snapshot", &snapshot)
	program.Eventually(t, patience, func() (bool, string) {
		at := evaluate[uint64](t, p, "listwatch.picture({ texts: false }).cursor")
		return at >= snapshot.Seq, fmt.Sprintf("the cursor is at %d, the log was at %d", at, snapshot.Seq)
	})
}

// TestTheCheckOfThePictureFindsWhatIsWrong shows the check pictures that are wrong in one thing each.
func TestTheCheckOfThePictureFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-demo=false", "-controllers=false")
	p := openPage(t, v.URL+"/book/")
	const good = `{
		cursor: 7, newest: 9, mode: "live", behind: 0.5, banner: { seq: 7 }, said: { words: "a", row: "a" },
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
		"s behind":                       "p.behind = 19",
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

// TestWhatIsWrittenIsFollowed creates a pod by the button, and another by kubectl: the first is followed by itself to
// its handler; the second is not, as something is followed already. What is clicked has its biography opened.
func TestWhatIsWrittenIsFollowed(t *testing.T) {
	t.Parallel()
	v, p := still(t)
	k := kubectlFor(t, v)
	const followed = `[listwatch.follow.key, $("#biography").hidden].join()`
	create(t, k, podManifest("by-kubectl"))
	p.becomes(t, "default/by-kubectl,true", followed)
	create(t, k, podManifest("another"))
	p.caughtUp(t, v)
	p.becomes(t, "default/by-kubectl,true", followed)
	p.pick(t, "#create-pod") // a hand's own write comes before one that was only seen
	p.becomes(t, "default/a,true", followed)
	p.until(t, `$(".row.followed .key")?.textContent === "a"`)
	p.strike(t, "f")
	p.becomes(t, ",true", followed)
	k.Run(t, "delete", "pod", "another", "--wait=false", "--now")
	p.becomes(t, "default/another,true", followed)
	p.run(t, `$(".row:not(.empty)").dispatchEvent(new MouseEvent("click", { bubbles: true }))`)
	p.until(t, `!$("#biography").hidden && $$("#biography li").length > 5`)
}

// TestWhatIsFollowedBeforeTheListHasComeStaysFollowed creates a pod while the page still waits for its list.
func TestWhatIsFollowedBeforeTheListHasComeStaysFollowed(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-demo=false", "-controllers=false")
	p := openPage(t, "about:blank")
	p.do(t, func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		slow := cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: `{
			const [ask, come] = [window.fetch, new Promise((done) => (window.come = done))];
			window.fetch = async (url, ...rest) => (String(url).startsWith("/viz/snapshot") && (await come),
				ask(url, ...rest));
		}`}
		_, err := cdp.Call(ctx, target, cdppage.AddScriptToEvaluateOnNewDocument, slow)
		return chromedp.Void{}, err
	})
	p.navigate(t, v.URL)
	p.until(t, `window.listwatch`)
	p.pick(t, "#create-pod")
	p.until(t, `listwatch.follow.key === "default/a"`)
	p.run(t, `come()`)
	p.live(t, v)
	p.until(t, `listwatch.follow.key === "default/a" && $(".row.followed")`)
}

// TestTheMachineryIsShownOnDemand turns the machinery on and off: what is drawn changes, the names outsiders rely on do
// not.
func TestTheMachineryIsShownOnDemand(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-demo=false")
	p := openPage(t, v.URL)
	p.live(t, v)
	type drawn struct {
		Detail, Address string
		Seen            []string
		Names           int
	}
	look := func() drawn {
		return evaluate[drawn](t, p, `(() => {
			const of = { lock: "[data-lock]", budget: "#battery", goroutine: ".role", hand: "#hand-end" };
			const seen = (css) => $(css).checkVisibility({ visibilityProperty: true });
			return {
				Detail: document.body.dataset.detail,
					Address: location.search.replace(/tour=0&?/, "").replace(/[?&]$/, ""),
				Seen: Object.keys(of).filter((name) => seen(of[name])),
				Names: $$("[data-station], [data-queue][data-len][data-cap], [data-role], [data-lock]").length,
			};
		})()`)
	}
	path := look()
	assert.True(t, path.Detail == "path" && len(path.Seen) == 0, "at first: %+v, want the path alone", path)
	p.strike(t, "k")
	all := look()
	if all.Detail != "machinery" || len(all.Seen) != 4 || all.Address != "?detail=machinery" ||
		all.Names != path.Names {
		t.Errorf("with the machinery: %+v, want all of it, at an address that says so, and %d names", all, path.Names)
	}
	p.strike(t, "k")
	p.navigate(t, v.URL+"/?detail=machinery")
	p.live(t, v)
	if linked := look(); len(linked.Seen) != 4 {
		t.Errorf("by a link: %+v", linked)
	}
	p.pick(t, "#detail")
	if again := look(); again.Detail != "path" || len(again.Seen) != 0 || again.Address != "" {
		t.Errorf("turned off: %+v", again)
	}
}

// TestTokensStandInTheirCellsInAPlaceOfAnyShape: a figure of the book and the film's page have not the stage's
// proportions, and what is painted over the drawing stands on it there, too. A token that stands elsewhere is not
// shown.
func TestTokensStandInTheirCellsInAPlaceOfAnyShape(t *testing.T) {
	t.Parallel()
	v, all := quiet(t)
	i := slices.IndexFunc(all, func(s told) bool { return s.ID == filmStory })
	filled := all[i].Recorded[2].To
	p := openPage(t, "about:blank")
	p.do(t, look{"film", 900, 432, "light", "reduce"}.wear(1))
	p.navigate(t, v.URL+"/?figure=1&detail=path&take=story-"+filmStory)
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
					const [{ left, right, top, bottom }, pipe] = [cell.getBoundingClientRect(), cell.closest("[data-queue]")];
					const owner = cell.closest("[data-watcher]")?.dataset.watcher ?? "";
					return { of: [cell.dataset.key, pipe.dataset.queue, owner].join(), left, right, top, bottom };
				});
				const tokens = $picture().drawn.filter((token) => token.in && token.owner);
				const within = ({ x, y }, cell) => x > cell.left && x < cell.right && y > cell.top && y < cell.bottom;
				const lost = tokens.filter((token) => cells.some(({ of }) => of === [token.key, token.in, token.owner].join())
					&& !cells.some((cell) => within(token, cell)));
				if (cells.length < 10) return ["there are only " + cells.length + " cells"];
				return lost.map((token) => token.key + " of " + token.in + " at " + token.x + ", " + token.y);
			})()`, where)
		}
	}
}

// TestNothingIsCutInTheDefaultView looks at the demo, and at traffic, with versions of six digits: every name and every
// version is whole, also in a ring of few cells.
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
