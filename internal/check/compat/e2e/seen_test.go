package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
)

// seeing returns "" if the page shows the text at the given place, and otherwise a description of the fault.
const seeing = `(at, text, r) => {
	const told = listwatch.stage.scene.story;
	const member = told.members.find((each) => at.startsWith(each.name));
	const lane = '[data-watcher="' + member?.subject + '"]';
	const queue = lane + ' [data-queue="' + at.split(" ").at(-1) + '"] text';
	const where = !member ? '.station[data-station="' + at + '"]:not(#server-reflector) text'
		: at === member.name ? '[data-cast="' + at + '"] text' : queue;
	const words = text.replace(/\$(rv|n|type)/g, (_, name) => (name === "n" ? r.args?.[0] : r[name]) ?? "");
	const wanted = new RegExp("^(?:" + words + ")$");
	const found = $$(where).filter((el) => wanted.test(el.textContent.trim()));
	if (found.length === 0) return "it is not written: " + words;
	const ground = $("#stage").getBoundingClientRect();
	const canvas = $("#tokens");
	const scale = canvas.width / canvas.getBoundingClientRect().width;
	const problems = found.map((el) => {
		const box = el.getBoundingClientRect();
		const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
		if (!el.checkVisibility({ opacityProperty: true, visibilityProperty: true })) return "it is hidden";
		for (let up = el; up.id !== "stage"; up = up.parentElement) {
			if (Number(getComputedStyle(up).opacity) < 0.9) return "it is dimmed";
		}
		if (box.height < 12) return "it is " + box.height.toFixed(1) + " px high";
		const inside = box.left >= Math.max(0, ground.left) && box.right <= Math.min(innerWidth, ground.right) + 1
			&& box.top >= Math.max(0, ground.top) && box.bottom <= Math.min(innerHeight, ground.bottom);
		if (!inside) return "it is not on the screen: " + [box.left, box.top, box.right, box.bottom].map(Math.round);
		const top = document.elementFromPoint(x, y);
		if (!top?.closest(".scenery")) return "it is covered by " + (top?.id || top?.className);
		const at = [(box.left - ground.left) * scale, (box.top - ground.top) * scale, box.width * scale,
			box.height * scale];
		const [left, above, wide, high] = at.map(Math.round);
		const copy = new OffscreenCanvas(wide, high).getContext("2d");
		copy.drawImage(canvas, -left, -above);
		const { data } = copy.getImageData(0, 0, wide, high);
		let painted = 0;
		for (let i = 3; i < data.length; i += 4) if (data[i] > 100) painted++;
		return painted > data.length / 4 / 8 ? "a token covers it" : "";
	});
	return problems.includes("") ? "" : problems.join(", ");
}`

// telling opens a story and plays a beat to its end. If without is not 0, it replays the beat without that record.
const telling = `async (id, beat, without, to) => {
	const { stage, player } = listwatch;
	const { scenarios } = stage;
	const frame = () => new Promise(requestAnimationFrame);
	const rests = async () => {
		while ($("#story").dataset.phase !== "rests" || Number(document.body.dataset.seq) !== to) {
			if ($("#story").dataset.phase === "ready") $("#story-next").click();
			await frame();
		}
		for (let n = 0; n < 3; n++) await frame();
	};
	await scenarios.openStory(id, { beat });
	await rests();
	if (!without) return true;
	const [{ Tape }, whole] = [await import("/viz/assets/log/tape.js"), player.tape];
	const all = whole.between(player.oldest + 1, player.head + 1);
	const lay = async (records) => {
		const tape = new Tape(stage.fold, null);
		const state = await whole.stateAt(player.oldest);
		tape.keep(state, true);
		tape.put(records);
		stage.fold.apply(state, records);
		stage.player.reset(tape, state, true);
	};
	const nothing = ({ seq, t }) => ({ seq, t, point: "KnobTurned", text: "nothing" });
	await lay(all.map((r) => (r.seq === without ? nothing(r) : r)));
	await scenarios.openStory(id, { beat });
	await rests();
	window.layAgain = () => lay(all);
	return true;
}`

// besides lists, by story and beat, texts that the picture must show besides the beat's point. The picture must not
// show texts that follow "!".
var besides = map[string]string{
	"watch-list 2":     "of list",
	"watch-list 3":     "of stream|8|!12 calls",
	"watch-list 4":     "list: holds 12 pods at once|stream: holds one pod at a time|!observer",
	"selector 2":       "of blue|OnAdd blue|!observer",
	"two-queues 3":     "RealFIFO|DeltaFIFO",
	"trigger-index 4":  "2 of 1004 picked by node|to 2 nodes . 2",
	"resync 4":         "3 × from its copy|!c",
	"restored-etcd 6":  "b|old server",
	"fail-over 5":      "server B|11",
	"six-pods 4":       "a|f",
	"deployment 11":    "kubectl|scheduler|kubelet",
	"stale-write 1":    "201",
	"stale-write 4":    "first|second",
	"server-restart 6": "904 resumed, 100 listed|old server",
	"server-restart 1": "the server has ended|ended|!a|!ready",
	"server-restart 2": "another server has started|not ready|!a|!ready|!21 of 100",
	"server-restart 4": "another server has started|ready",
	"server-restart 5": "another server has started|node 500|watching|knows 8|knows 28",
	"restored-etcd 2":  "another server has started",
	"restored-etcd 3":  "!410",
	"selector 4":       "POST|409",
}

// says returns the entries of besides that a beat breaks. A dimmed text fulfills an entry, but breaks none with "!".
func (p *page) says(t *testing.T, beat string) (wrong []string) {
	t.Helper()
	seen := evaluate[[]string](t, p, `$$(".scenery text").filter((el) => el.checkVisibility({ opacityProperty: true,
		visibilityProperty: true }) && el.getClientRects().length > 0).map((el) => (
			el.closest(".dimmed .station:not(.bright)") ? "dim " : "") + el.textContent.trim())`)
	for want := range strings.SplitSeq(besides[beat], "|") {
		text, not := strings.CutPrefix(want, "!")
		is := regexp.MustCompile(map[bool]string{true: "^", false: "^(?:dim )?"}[not] + "(?:" + text + ")$").MatchString
		if text != "" && slices.ContainsFunc(seen, is) == not {
			wrong = append(wrong, want)
		}
	}
	return wrong
}

// inTurn takes the names of a beat's lanes in order. It returns two names that an earlier beat has in the other order,
// or "". above collects the orders of all beats so far.
func inTurn(above map[[2]string]bool, names []string) string {
	for i, first := range names {
		for _, second := range names[i+1:] {
			if above[[2]string{second, first}] && first != second {
				return first + " above " + second
			}
			above[[2]string{first, second}] = true
		}
	}
	return ""
}

const lanes = `$$("#watchers .lane:not(.over) > .name, #cast .bare > .name").map((el) => (
	[el.getBoundingClientRect().top, el.textContent.replace(" · closed", "")])).sort(([a], [b]) => b - a)
	.map(([, name]) => name)`

var reduced = look{"reduced", 1440, 900, "light", "reduce"} // no motion

// TestEveryStorysPictureShowsItsPoint checks each beat of each story. At rest, the picture must show the beat's point:
// on the screen, lit, large enough and not covered. At each story's last beat, or at all beats with FULL, the point
// must vanish if the record behind it is missing. The beat's stations are lit. The picture has no contradictions. The
// lanes keep their order, the story's clients first. With FULL, no texts overlap in any window.
func TestEveryStorysPictureShowsItsPoint(t *testing.T) {
	t.Parallel()
	v, all := quiet(t)
	p := openPage(t, "about:blank")
	p.do(t, reduced.wear(1))
	p.navigate(t, v.URL)
	p.until(t, `window.listwatch?.player.head === 1`)
	for i := range all {
		t.Run(all[i].ID, func(t *testing.T) {
			above := map[[2]string]bool{}
			for n := range all[i].Beats {
				p.shows(t, &all[i], n, above)
			}
		})
	}
	// A beat that plays in no time must not show the change that the previous beat left.
	p.tokens(t, all, "fail-over", 1, `await listwatch.player.playTo(%d, { within: 1 })`, "fail-over-a in store")
	p.tokens(t, all, "two-queues", 3, ``, "two-queues-b in fifo") // after a queue was emptied
}

// tokens goes to the end of the beat before, runs act, and compares the tokens on the stage with want.
func (p *page) tokens(t *testing.T, all []told, id string, beat int, act, want string) {
	t.Helper()
	s := all[slices.IndexFunc(all, func(s told) bool { return s.ID == id })]
	evaluate[bool](t, p, fmt.Sprintf("(%s)(%q, %d, 0, %d)", telling, id, beat-1, s.Recorded[beat-1].To))
	if act != "" {
		p.run(t, act, s.Recorded[beat].To)
	}
	p.is(t, want, "what stands in "+id,
		`listwatch.stage.planner.standing.map((t) => t.key.split("/").at(-1) + " in " + t.in).join()`)
}

func (p *page) shows(t *testing.T, s *told, n int, above map[[2]string]bool) {
	t.Helper()
	beat, place := s.Beats[n], s.Recorded[n]
	text, _ := json.Marshal(beat.Text)
	look := fmt.Sprintf("(%s)(%q, %s, window.behind)", seeing, beat.At, text)
	at := fmt.Sprintf("%s, beat %d (%s): %s", s.ID, n+1, beat.Seen, beat.At)
	evaluate[bool](t, p, fmt.Sprintf("(%s)(%q, %d, 0, %d)", telling, s.ID, n, place.To))
	evaluate[bool](t, p, fmt.Sprintf("Boolean(window.behind = listwatch.player.tape.get(%d))", place.Behind))
	problem := evaluate[string](t, p, fmt.Sprintf(`(async () => { // waits for tokens on their way
		for (let n = 0, problem = ""; ; n++) {
			if (!(problem = %s) || n === 90) return problem;
			await new Promise(requestAnimationFrame);
		}
	})()`, look))
	if problem != "" {
		t.Errorf("%s: %s", at, problem)
		return
	}
	s.holds(t, n+1, "rests", place.To, p.rests(t, n+1, "rests"))
	wrong := p.says(t, fmt.Sprint(s.ID, " ", n+1))
	assert.True(t, wrong == nil, "%s: besides, %q does not hold", at, wrong)
	names := evaluate[[]string](t, p, lanes)
	assert.Equal(t, "", inTurn(above, names), "%s: lanes %q, other than before", at, names)
	for i, member := range s.Cast {
		assert.True(t, i < len(names) && names[i] == member.Name, "%s: lanes %q begin otherwise than the cast", at,
			names)
	}
	p.collides(t, fmt.Sprint(s.ID, " ", n+1))
	p.do(t, reduced.wear(1))
	if !full && n < len(s.Beats)-1 {
		return
	}
	p.is(t, "true", s.ID+" is shown to its end to the last row", `await (async () => {
		$("#presenter").click();
		await $frames(2);
		const { scrollHeight, clientHeight } = $("#story");
		$("#presenter").click();
		return scrollHeight <= clientHeight;
	})()`)
	evaluate[bool](t, p, fmt.Sprintf("(%s)(%q, %d, %d, %d)", telling, s.ID, n, place.Behind, place.To))
	problem = evaluate[string](t, p, look)
	assert.False(t, !strings.HasPrefix(problem, "it is not written") && problem != "it is hidden",
		"%s: %q is there without record %d, too", at, beat.Text, place.Behind)
	evaluate[bool](t, p, "layAgain().then(() => true)")
}
