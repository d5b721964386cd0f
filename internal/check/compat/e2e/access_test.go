package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
)

// TestTheStageIsForEverybody checks one page against the accessibility contract: names for screen readers, keys for
// viewers without a mouse, contrast in every theme, room for large type.
func TestTheStageIsForEverybody(t *testing.T) {
	t.Parallel()
	v := startViz(t)
	v.busy(t, 100)
	p := openPage(t, v.URL)
	p.live(t, v)
	p.strike(t, "k") // turns to the level "all": screen readers do not announce the texts that "boxes" hides
	t.Run("every station and channel has a name", p.namesEveryGlyph)
	t.Run("text and graphics stand out in every theme", p.contrasts)
	p.strike(t, "k")
	t.Run("every panel is legible and reached by keyboard", p.opensPanels)
	t.Run("the keyboard reaches every control", p.walksByKeyboard)
	t.Run("every key of the list is bound once and can be switched off", p.switchesKeysOff)
	t.Run("the presenter's type is large and one station is in the light", p.presents)
	t.Run("narrow windows and zoom lose nothing", p.fits)
	t.Run("a voice does not chatter", p.speaksSlowly)
}

// namesEveryGlyph looks in the accessibility tree for the name of each station and queue. Lanes may appear meanwhile.
func (p *page) namesEveryGlyph(t *testing.T) {
	program.Eventually(t, patience, func() (bool, string) {
		told := p.told(t)
		wanted := evaluate[[]string](t, p, `$$("[data-station], .lane:not(.over) [data-queue], .station > [data-queue]")
			.map((el) => el.getAttribute("aria-label") ?? "nameless " + el.outerHTML.slice(0, 80))`)
		untold := slices.DeleteFunc(slices.Clone(wanted), func(name string) bool {
			what, _, _ := strings.Cut(name, ": ") // the number may have changed between the reads
			return slices.ContainsFunc(told, func(n string) bool {
				return n == name || strings.HasPrefix(n, what+": ")
			})
		})
		return len(wanted) >= 25 && len(untold) == 0, fmt.Sprintf("of %d glyphs, a screen reader gets no name for %q",
			len(wanted), untold)
	})
}

// told returns the names in the accessibility tree.
func (p *page) told(t *testing.T) []string {
	t.Helper()
	var nodes []*accessibility.Node
	p.do(t, func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		answer, err := cdp.Call(ctx, target, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
		if err == nil {
			nodes = answer.Nodes
		}
		return chromedp.Void{}, err
	})
	names := map[string]bool{}
	for _, node := range nodes {
		if !node.Ignored && node.Name != nil {
			names[strings.Trim(string(node.Name.Value), `"`)] = true
		}
	}
	return slices.Collect(maps.Keys(names))
}

// onStage selects the elements on and around the stage that may show text.
const onStage = ".bar *, .scenery text, .sentence *, .time *, .records th, .records td"

// contrastScript measures the contrast between each visible text that the selector WHAT matches and the colour below
// its middle. It also measures the contrast of graphics with their backgrounds.
const contrastScript = `(() => {
	const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
	const rgba = (colour) => {
		probe.clearRect(0, 0, 1, 1);
		probe.fillStyle = colour;
		probe.fillRect(0, 0, 1, 1);
		return [...probe.getImageData(0, 0, 1, 1).data];
	};
	const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
	const light = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
	const ratio = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
	const below = (el, x, y) => {
		for (const other of document.elementsFromPoint(x, y)) {
			if ((other === el && el.ownerSVGElement) || (other !== el && el.contains(other))) continue;
			if (["CANVAS", "text", "tspan"].includes(other.tagName)) continue;
			const style = getComputedStyle(other);
			const colour = other.ownerSVGElement ? style.fill : style.backgroundColor;
			if (colour === "none" || colour.startsWith("url")) continue;
			const c = rgba(colour);
			if (c[3] === 255) return c;
		}
		return rgba(getComputedStyle(document.body).backgroundColor);
	};
	const poor = [];
	let measured = 0;
	for (const el of $$(WHAT)) {
		const own = [...el.childNodes].some((n) => n.nodeType === 3 && n.nodeValue.trim());
		if (el.closest(".below")) el.scrollIntoView({ block: "nearest", behavior: "instant" });
		const box = el.getBoundingClientRect();
		if (!own || box.width < 2 || !el.checkVisibility({ checkVisibilityCSS: true })) continue;
		const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
		if (x < 0 || y < 0 || x >= innerWidth || y >= innerHeight) continue;
		if (el.closest("dialog") && !document.elementsFromPoint(x, y).includes(el)) continue; // scrolled out of it
		const style = getComputedStyle(el);
		measured++;
		const r = ratio(rgba(el.ownerSVGElement ? style.fill : style.color), below(el, x, y));
		const name = el.textContent.trim().slice(0, 30) + " (" + (el.className.baseVal ?? el.className) + ")";
		if (r < 4.5) poor.push(name + ": " + r.toFixed(2));
	}
	const style = getComputedStyle(document.documentElement);
	const token = (name) => rgba(style.getPropertyValue("--" + name).trim());
	if (style.getPropertyValue("--moving")) {
		for (const name of ["moving", "stored", "delivered", "waiting", "anomaly", "told", "followed"]) {
			for (const ground of ["panel", "panel-client", "frame", "well"]) {
				const r = ratio(token(name), token(ground));
				if (r < 3) poor.push(name + " on " + ground + ": " + r.toFixed(2));
			}
		}
	}
	return { Measured: measured, Poor: poor };
})()`

func (p *page) contrasts(t *testing.T) {
	p.inEveryTheme(t, func(theme string) { p.standsOut(t, theme, onStage, 60) })
	p.strike(t, "v")
	p.until(t, `$$("#spacetime .names text").length > 5`)
	p.inEveryTheme(t, func(theme string) {
		p.standsOut(t, "space-time in "+theme, "#spacetime text, #view", 10)
	})
	p.strike(t, "v")
	p.until(t, `document.body.dataset.view === "loop"`)
}

// inEveryTheme calls do in every theme if FULL is set. Otherwise it calls do in one theme, the next one at each call.
// Then it restores the system's theme.
func (p *page) inEveryTheme(t *testing.T, do func(theme string)) {
	themes := []string{"light", "dark", "contrast"}
	if !full {
		p.themed++
		themes = themes[p.themed%len(themes):][:1]
	}
	for _, theme := range themes {
		p.run(t, `document.documentElement.dataset.theme = %q, listwatch.stage.restyle()`, theme)
		do(theme)
	}
	p.run(t, `delete document.documentElement.dataset.theme, listwatch.stage.restyle()`)
}

// standsOut fails the test if a text that selector chooses has poor contrast, or if fewer than least texts are visible.
func (p *page) standsOut(t *testing.T, where, selector string, least int) {
	t.Helper()
	script := strings.Replace(contrastScript, "WHAT", strconv.Quote(selector), 1)
	program.Eventually(t, patience, func() (bool, string) { // a transition may still run
		found := evaluate[struct {
			Measured int
			Poor     []string
		}](t, p, script)
		return found.Measured >= least && len(found.Poor) == 0, fmt.Sprintf("%s: of %d texts: %s", where,
			found.Measured, strings.Join(found.Poor, "; "))
	})
}

// opensPanels opens six panels, each by Enter on its button. Tab must reach all controls, and Escape close the panel.
func (p *page) opensPanels(t *testing.T) {
	p.strike(t, "k") // turns to the level "all"
	for _, each := range []struct {
		opener, panel string
		texts         int
	}{
		{"#open-stories", "#stories-dialog", 10}, {"#open-knobs", "#knobs", 10}, {"#open-promises", "#promises", 10},
		{"#world-clock", "#world", 10}, {"#add-watcher", "#watcher-dialog", 5}, {"#keys", "#keys-dialog", 15},
	} {
		p.run(t, `$(%q).closest("[popover]")?.showPopover(); $(%[1]q).focus()`, each.opener)
		p.press(t, "\r")
		p.until(t, `$(%q).checkVisibility()`, each.panel)
		p.inEveryTheme(t, func(theme string) { p.standsOut(t, each.panel+" in "+theme, each.panel+" *", each.texts) })
		p.run(t, `window.walked = new Set()`)
		missed := `[...$(%q).querySelectorAll("button, select, input, a[href], [tabindex='0']")]
			.filter((el) => !el.disabled && el.checkVisibility({ checkVisibilityCSS: true }))
			.filter((el) => !walked.has(el.id || el))
			.filter((el) => el.type !== "radio" || !$("input[name=" + el.name + "]:checked"))
			.map((el) => el.outerHTML.slice(0, 100))`
		for range 13 { // usually fewer rounds reach every control
			if len(evaluate[[]string](t, p, fmt.Sprintf(missed, each.panel))) == 0 {
				break
			}
			p.tabs(t, 10)
		}
		p.none(t, each.panel+": Tab never comes to", missed, each.panel)
		p.none(t, each.panel+": without a name", `[...$(%q).querySelectorAll("button, select, input, a[href]")]
				.filter((el) => !(el.getAttribute("aria-label") || el.textContent.trim() || el.labels?.length ||
					el.title))
				.map((el) => el.outerHTML.slice(0, 100))`, each.panel)
		p.run(t, `$(%q + " button").focus()`, each.panel)
		p.press(t, kb.Escape)
		p.until(t, `!$(%q).checkVisibility()`, each.panel)
	}
}

// tabs presses Tab n times, and notes the focused elements in the page.
func (p *page) tabs(t *testing.T, n int) {
	t.Helper()
	for range n {
		p.press(t, kb.Tab)
		p.run(t, `walked.add(document.activeElement).add(document.activeElement.id || document.activeElement)`)
	}
}

// walksByKeyboard presses Tab 120 times, which must reach every visible control, and the stations in the path's order.
func (p *page) walksByKeyboard(t *testing.T) {
	p.run(t, `document.activeElement?.blur(); window.walked = new Set()`)
	p.tabs(t, 120)
	p.none(t, "Tab never comes to", `$$("button, select, input, a[href], [tabindex='0']")
		.filter((el) => !el.disabled && !el.closest("dialog, [hidden], #banner") && !walked.has(el))
		.filter((el) => el.checkVisibility({ checkVisibilityCSS: true }))
		.map((el) => el.outerHTML.slice(0, 100))`)
	order := evaluate[string](t, p, `[...walked].map((el) => el.dataset?.station).filter(Boolean).join(" ")`)
	assert.True(t, strings.Contains(order, "http etcd etcd3 reflector ring store"), "the order by Tab: %q", order)
}

func (p *page) switchesKeysOff(t *testing.T) {
	p.run(t, `document.activeElement?.blur()`)
	const mode = `document.body.dataset.mode`
	p.press(t, "?")
	listed := evaluate[[]string](t, p, `$$("#keys-dialog[open] kbd").map((el) => el.textContent)`)
	const keys = "Space . , > < N P Home End + - Esc F C M D W X R B V S A T ? → ←"
	bound := evaluate[[]string](t, p, `[...listwatch.keys.keys()].map((key) => ({
		" ": "Space", "Shift+ ": "Shift Space",
		Escape: "Esc" })[key] ?? (key.length > 1 ? key : key.toUpperCase()))`)
	for _, key := range append(bound, strings.Fields(keys)...) {
		assert.True(t, slices.Contains(listed, key), "the list of keys lacks %s: %q", key, listed)
	}
	p.click(t, "#keys-dialog input", "#keys-dialog .close")
	p.strike(t, " ")
	p.is(t, "live", "with the keys switched off, Space leads to", mode)
	p.press(t, "?") // the list still opens, so that a viewer can switch the keys on again
	p.click(t, "#keys-dialog input", "#keys-dialog .close")
	p.press(t, "w")
	p.do(t, chromedp.SendKeys(chromedp.CSS("#watcher-dialog input"), "app x"))
	p.is(t, "live", "letters in a field lead to", mode)
	p.run(t, `$("#watcher-dialog").close(); document.activeElement?.blur()`)
	p.press(t, " ")
	p.becomes(t, "frozen", mode)
	p.press(t, " ")
	p.becomes(t, "live", mode)
}

func (p *page) presents(t *testing.T) {
	p.do(t, looks[0].wear(1))
	p.press(t, "a")
	p.until(t, `document.documentElement.dataset.presenter === "on"`)
	p.none(t, "of the whole loop is cut", `(() => {
		const place = $(".ground").getBoundingClientRect();
		const low = place.bottom > $("#sentence").getBoundingClientRect().top;
		const inside = (b) => b.left >= place.left && b.right <= place.right && b.top >= place.top &&
			b.bottom <= place.bottom;
		return $$(".station > .hit").filter((el) => low || !inside(el.getBoundingClientRect()))
			.map((el) => el.parentElement.dataset.station);
	})()`)
	const small = `(() => {
		const scale = $(".scenery").getScreenCTM().a;
		const size = (el) => parseFloat(getComputedStyle(el).fontSize) * (el.ownerSVGElement ? scale : 1);
		return $$(".bar *, .sentence *, .time *, .scenery text")
			.filter((el) => el.checkVisibility({ checkVisibilityCSS: true }) && el.getBoundingClientRect().width > 0)
			.filter((el) => [...el.childNodes].some((n) => n.nodeType === 3 && n.nodeValue.trim()))
			.filter((el) => size(el) < 17.95).map((el) => el.textContent.slice(0, 30) + " in " + size(el)).join();
	})()`
	p.becomes(t, "", small)
	const lit = `$$(".dimmed .station.bright").length`
	p.press(t, kb.PageDown) // presentation clickers send PageDown
	p.is(t, "1", "stations in the light", lit)
	p.becomes(t, "", small) // the lit station may still be moving
	p.press(t, "a")
	p.is(t, "0", "after the presentation, stations in the light", lit)
}

// fits sets windows from 4K down to 640x360, which is 1280x720 at 200 % zoom, and a narrow one. Nothing may stick out.
func (p *page) fits(t *testing.T) {
	for _, size := range [][2]int64{{3840, 2160}, {1920, 1080}, {1280, 720}, {1024, 768}, {640, 360}, {320, 640}} {
		p.do(t, look{"", size[0], size[1], "light", "no-preference"}.wear(1))
		p.none(t, fmt.Sprint(size, " is wider than the window"),
			`$$("body, header, main, .bar > *, .ground, .sentence, .time, .time > *, .records")
				.map((el) => [el, el.checkVisibility() ? el.getBoundingClientRect().right : 0])
				.filter(([, right]) => right > document.documentElement.clientWidth + 1)
				.map(([el, right]) => el.tagName + "." + el.className + " ends at " + right)
				.concat(document.documentElement.scrollWidth > innerWidth ? ["the page"] : [])`)
		if size[0] >= 1280 {
			const fits = `document.documentElement.scrollHeight <= innerHeight + 1`
			p.is(t, "true", fmt.Sprint(size, " is high enough"), fits)
		}
	}
	p.do(t, tells(emulation.ClearDeviceMetricsOverride, cdp.Empty{}))
}

// speaksSlowly checks that the live regions wait 2 s between sentences, by a clock that advances only with each frame.
func (p *page) speaksSlowly(t *testing.T) {
	p.run(t, `window.spoken = [];
		const note = new MutationObserver(() => window.spoken.push(document.timeline.currentTime));
		const all = { childList: true, characterData: true, subtree: true };
		for (const el of $$("#spoken, #alarm")) note.observe(el, all);`)
	p.until(t, `window.spoken.length >= 3`)
	for i, gap := range evaluate[[]float64](t, p, `window.spoken.slice(1).map((at, i) => at - window.spoken[i])`) {
		assert.True(t, gap >= 1900, "sentence %d came %.0f ms after the one before, want 2 s", i+1, gap)
	}
	p.none(t, "speak for themselves", `$$("main [aria-live], main [role=status], main [role=alert]")
		.filter((el) => !el.parentElement.closest("[hidden]")).map((el) => el.id)`) // hidden regions are silent
}
