package e2e

import (
	"encoding/json"
	"fmt"
	"listwatch/internal/check/assert"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// seeing looks for what a beat must show: its answer is "" if it is there, and otherwise what is wrong.
const seeing = `(at, text, r) => {
	const told = listwatch.stage.scene.story;
	const member = told.members.find((each) => at.startsWith(each.name));
	const lane = '[data-watcher="' + member?.subject + '"]';
	const where = !member ? '[data-station="' + at + '"] text' : at === member.name ? '[data-cast="' + at + '"] text'
		: lane + ' [data-queue="' + at.split(" ").at(-1) + '"] text';
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

// telling lays a recording again, without what one of its records said (0: as it is), and turns to where a beat rests.
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

// besides is what a story's picture says besides its point, and after "!" what it must not say, by story and beat.
var besides = map[string]string{
	"watch-list 2":     "of list",
	"watch-list 3":     "of stream|8|!12 calls",
	"watch-list 5":     "of stream|!observer",
	"selector 2":       "of blue|OnAdd blue|!observer",
	"selector 5":       "!1/10|!409",
	"selector 6":       "of blue|!1/10",
	"selector 7":       "of blue|!1/10",
	"two-queues 3":     "none",
	"stale-write 1":    "201",
	"stale-write 6":    "200",
	"server-restart 1": "the server has ended|ended|!a|!ready",
	"server-restart 2": "another server has started|not ready|!a|!ready|!21 of 100",
	"server-restart 4": "another server has started|ready",
	"server-restart 5": "another server has started|node 500|watching|knows 8|knows 28",
	"restored-etcd 2":  "another server has started",
	"restored-etcd 3":  "!410",
	"selector 4":       "POST|409",
	"one-leader 1":     "lease: [0-9.]+ s",
	"one-leader 3":     "first|lease: [01][.][0-9] s|lease 10",
	"one-leader 4":     "lease expired|second|lease: [23][.][0-9] s",
}

// says returns what of besides is not so at a beat.
func (p *page) says(t *testing.T, beat string) (wrong []string) {
	t.Helper()
	seen := evaluate[[]string](t, p, `$$(".scenery text").filter((el) => el.checkVisibility({ opacityProperty: true,
		visibilityProperty: true }) && el.getClientRects().length > 0).map((el) => el.textContent.trim())`)
	for want := range strings.SplitSeq(besides[beat], "|") {
		text, not := strings.CutPrefix(want, "!")
		is := regexp.MustCompile("^(?:" + text + ")$").MatchString
		if text != "" && slices.ContainsFunc(seen, is) == not {
			wrong = append(wrong, want)
		}
	}
	return wrong
}

// inTurn takes the names of lanes that a beat shows, from above, and returns two of which an earlier beat showed the
// second one above the first, "" if there are none; above has what earlier beats showed.
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

const lanes = `$$("#watchers .lane:not(.over), #cast .bare").map((el) => [el.getBoundingClientRect().top,
	el.querySelector(".name").textContent.replace(" · closed", "")]).sort(([a], [b]) => a - b).map(([, name]) => name)`

var reduced = look{"reduced", 1440, 900, "light", "reduce"} // without motion

// TestEveryStorysPictureShowsItsPoint holds for each beat of each story that its picture, at rest, shows what the beat
// says must be seen: on the screen, in the light, large enough, not covered; and, at the last beat of each story, with
// FULL at all, only because of the record behind it. The stations that the beat is about are in the light, nothing
// contradicts itself, and with FULL no text collides with another in any window. What the picture says besides does not
// contradict the beat, and the lanes keep their order from beat to beat, the story's clients first.
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
}

// TestNoTokenStandsThatHasGoneOn plays a beat in no time, so that the change which stands as it begins is not told in
// it, and turns to one in which a queue has been emptied.
func TestNoTokenStandsThatHasGoneOn(t *testing.T) {
	t.Parallel()
	v, all := quiet(t)
	p := openPage(t, "about:blank")
	p.do(t, looks[2].wear(1)) // without motion
	p.navigate(t, v.URL)
	p.until(t, `window.listwatch?.player.head === 1`)
	for i := range all {
		s := &all[i]
		turn := func(beat int) {
			evaluate[bool](t, p, fmt.Sprintf("(%s)(%q, %d, 0, %d)", telling, s.ID, beat-1, s.Recorded[beat-1].To))
		}
		stands := ""
		switch s.ID {
		case "fail-over":
			turn(1)
			evaluate[bool](t, p, fmt.Sprintf("listwatch.player.playTo(%d, { within: 1 })", s.Recorded[1].To))
			stands = "fail-over-a in store"
		case "two-queues":
			turn(3)
			stands = "two-queues-b in fifo"
		default:
			continue
		}
		p.is(t, stands, "what stands in "+s.ID,
			`listwatch.stage.planner.standing.map((t) => t.key.split("/").at(-1) + " in " + t.in).join()`)
	}
}

func (p *page) shows(t *testing.T, s *told, n int, above map[[2]string]bool) {
	t.Helper()
	beat, place := s.Beats[n], s.Recorded[n]
	text, _ := json.Marshal(beat.Text)
	look := fmt.Sprintf("(%s)(%q, %s, window.behind)", seeing, beat.At, text)
	at := fmt.Sprintf("%s, beat %d (%s): %s", s.ID, n+1, beat.Seen, beat.At)
	evaluate[bool](t, p, fmt.Sprintf("(%s)(%q, %d, 0, %d)", telling, s.ID, n, place.To))
	evaluate[bool](t, p, fmt.Sprintf("Boolean(window.behind = listwatch.player.tape.get(%d))", place.Behind))
	problem := evaluate[string](t, p, fmt.Sprintf(`(async () => { // what is on its way there arrives
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
	if wrong := p.says(t, fmt.Sprint(s.ID, " ", n+1)); wrong != nil {
		t.Errorf("%s: besides, %q is not so", at, wrong)
	}
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
