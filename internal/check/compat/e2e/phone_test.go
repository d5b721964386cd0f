package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// stacked returns the stage's faults in a narrow window: cut or overlapping boxes, scrolling, small texts, lost tokens.
const stacked = `(() => {
	const { scene } = listwatch.stage;
	const wrong = [];
	const boxes = [...scene.stations].map(([name, el]) => [name, el.querySelector(".hit").getBoundingClientRect()]);
	for (const [name, box] of boxes) {
		if (box.left < 0 || box.right > innerWidth) wrong.push(name + " is cut");
		for (const [other, theirs] of boxes) {
			if (name < other && box.left < theirs.right && theirs.left < box.right && box.top < theirs.bottom - 1 &&
				theirs.top < box.bottom - 1) wrong.push(name + " stands on " + other);
		}
	}
	const ground = $(".ground");
	if (ground.scrollWidth > ground.clientWidth ||
		document.documentElement.scrollWidth > innerWidth) wrong.push("it scrolls sideways");
	const scale = scene.root.getScreenCTM().a;
	for (const el of scene.root.querySelectorAll("text:not(.fine)")) {
		const size = parseFloat(getComputedStyle(el).fontSize) * scale;
		if (el.textContent && size < 12) wrong.push(el.textContent + " is written in " + size + " px");
	}
	for (const [name, spot] of Object.entries(scene.geometry.anchors)) {
		const station = { decode: "etcd3", "etcd3-out": "etcd3", "incoming-out": "incoming" }[name] ?? name;
		if (["visitor", "wire"].includes(station)) continue;
		const [x, y] = scene.place(spot);
		const { X, Y, W, H } = scene.boxOf(station);
		if (x < X || x > X + W || y < Y || y > Y + H) wrong.push("a token at " + name + " is drawn beside " + station);
	}
	return wrong;
})()`

// untouchable lists visible controls, outside dialogs and the records, with a side below 40 px: too small for a finger.
const untouchable = `$$("button, select, a.button, a.main, .bar a")
	.filter((el) => el.checkVisibility({ opacityProperty: true, visibilityProperty: true }) &&
		!el.closest(".records, dialog"))
	.map((el) => [el, el.getBoundingClientRect()]).filter(([, box]) => box.width < 39.5 || box.height < 39.5)
	.map(([el, box]) => (el.id || el.className ||
		el.textContent) + " is " + Math.round(box.width) + " by " + Math.round(box.height))`

// tap clicks the middle of a control, which must be in sight and not covered.
func (p *page) tap(t *testing.T, selector string) {
	t.Helper()
	found := evaluate[struct {
		X, Y float64
		Over string
	}](t, p, fmt.Sprintf(`(() => {
		const el = $(%q);
		const box = el.getBoundingClientRect();
		const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
		const top = document.elementFromPoint(x, y);
		return { x, y, over: el.contains(top) ? "" : top?.outerHTML.slice(0, 80) ?? "outside of the window" };
	})()`, selector))
	require.True(t, found.Over == "", "%s cannot be touched: %s", selector, found.Over)
	p.do(t, chromedp.MouseClickXY(found.X, found.Y))
}

// inSight returns an expression that is true if the names of the stations are in sight above the element over. A name
// does not count if it cannot fit into the window together with the topmost name.
func inSight(stations, over string) string {
	return fmt.Sprintf(`(() => {
		const titles = $$(%q).map((el) => el.querySelector(".title").getBoundingClientRect());
		const edge = $(%q).getBoundingClientRect().top;
		const top = Math.min(...titles.map((box) => box.top));
		return titles.length > 0 && top >= 0 && titles.every((box) => box.bottom <= edge || box.bottom - top > edge);
	})()`, stations, over)
}

// TestTheStageIsStackedOnAPhone plays a story and the tour in a narrow window, by clicks on uncovered controls.
func TestTheStageIsStackedOnAPhone(t *testing.T) {
	t.Parallel()
	v, _ := quiet(t)
	p := openPage(t, "about:blank")
	p.do(t, look{"phone", 390, 844, "light", "reduce"}.wear(1), chromedp.Navigate(v.URL+"/?take=busy"))
	p.until(t, `window.listwatch?.player.recording && listwatch.player.head > 0 && $$("#watchers .lane").length > 0`)
	check := func(where string) {
		t.Helper()
		p.rest(t)
		for what, script := range map[string]string{"stage": stacked, "controls": untouchable} {
			wrong := evaluate[[]string](t, p, script)
			assert.True(t, len(wrong) == 0, "%s, %s: %s", where, what, strings.Join(wrong, "; "))
		}
	}
	check("the boxes")
	p.tap(t, "#open-menu")
	p.tap(t, "#detail")
	p.until(t, `document.body.dataset.detail === "all"`)
	check("all")

	evaluate[bool](t, p, `listwatch.stage.scenarios.openStory("missed-deletion"), true`)
	p.rests(t, 1, "ready")
	for beat := 1; beat <= 4; beat++ {
		p.tap(t, "#story-next")
		if beat == 4 {
			p.rests(t, beat, "ready")
			p.tap(t, "#story section:not([hidden]) .answers button:last-child")
		}
		p.rests(t, beat, "rests")
		p.until(t, inSight(".station.bright", "#story"))
	}
	check("a story")
	p.tap(t, "#story-leave")
	p.until(t, `!document.body.dataset.story`)

	p.do(t, chromedp.Navigate(v.URL+"/?take=story-tour&tour=1"))
	p.until(t, `$("#first")?.inert === false && window.listwatch?.player.recording`)
	p.none(t, "the first view", untouchable)
	p.tap(t, "#tour-start")
	for beat := 1; beat <= 12; beat++ {
		if beat == 6 {
			p.rests(t, beat, "ready")
			p.tap(t, "#story section:not([hidden]) .answers button:last-child")
		}
		p.rests(t, beat, "rests")
		p.until(t, inSight(".station.bright", "#story"))
		check(fmt.Sprint("the tour, beat ", beat))
		if beat < 12 {
			p.tap(t, "#story-next")
		}
	}
	p.tap(t, "#story-leave")
	p.until(t, `!document.body.dataset.story`)

	p.do(t, looks[0].wear(1)) // the phone becomes a large landscape window
	p.until(t, `!$("#stage").classList.contains("tall")`)
	p.rest(t)
	moved := evaluate[int](t, p, `$$(".scenery > .station[transform]").length`)
	assert.True(t, moved == 0, "on the wide stage %d stations stand where they stood on the tall one", moved)
}
