package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"listwatch/internal/check/compat/program"
)

// TestTheStageIsForEverybody walks one page through the accessibility contract: names for who listens, keys for who has
// no mouse, contrast in every theme, room for large type.
func TestTheStageIsForEverybody(t *testing.T) {
	t.Parallel()
	v := startViz(t)
	v.busy(t, 100)
	p := openPage(t, v.URL)
	p.live(t, v)
	t.Run("every station and channel has a name", p.namesEveryGlyph)
	t.Run("text and graphics stand out in every theme", p.contrasts)
	t.Run("every panel is legible and reached by keyboard", p.opensPanels)
	t.Run("the keyboard reaches every control", p.walksByKeyboard)
	t.Run("every key of the list is bound once and can be switched off", p.switchesKeysOff)
	t.Run("the presenter's type is large and one station is in the light", p.presents)
	t.Run("narrow windows and zoom lose nothing", p.fits)
	t.Run("a voice does not chatter", p.speaksSlowly)
	t.Run("the table has the stage's cursor", p.tableHasTheCursor)
}

// namesEveryGlyph reads the accessibility tree, as a screen reader does. A lane may come between the two looks.
func (p *page) namesEveryGlyph(t *testing.T) {
	program.Eventually(t, patience, func() (bool, string) {
		told := p.told(t)
		wanted := evaluate[[]string](t, p,
			`[...document.querySelectorAll("[data-station], .lane:not(.over) [data-queue], .station > [data-queue]")]
			.map((el) => el.getAttribute("aria-label") ?? "nameless " + el.outerHTML.slice(0, 80))`)
		untold := slices.DeleteFunc(slices.Clone(wanted), func(name string) bool {
			what, _, _ := strings.Cut(name, ": ") // the number behind may have changed since
			return slices.ContainsFunc(told, func(n string) bool {
				return n == name || strings.HasPrefix(n, what+
					": ")
			})
		})
		return len(wanted) >= 25 && len(untold) == 0, fmt.Sprintf("of %d glyphs a screen reader is not told of %q",
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

// onStage are the elements of the stage that say something.
const onStage = ".bar *, .scenery text, .sentence *, .time *, .records th, .records td"

// contrastScript measures what is drawn: every text of the elements WHAT against what is painted below its middle, and
// the colours that graphics are made of against what they lie on.
const contrastScript = `(() => {
	const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
	const rgba = (colour) => { probe.clearRect(0, 0, 1, 1); probe.fillStyle = colour; probe.fillRect(0, 0, 1, 1); return [...probe.getImageData(0, 0, 1, 1).data]; };
	const light = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
		.reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
	const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((m, n) => n - m); return (x + 0.05) / (y + 0.05); };
	const below = (el, x, y) => {
		for (const other of document.elementsFromPoint(x, y)) {
			if ((other === el && el.ownerSVGElement) || (other !== el && el.contains(other)) || other.tagName === "CANVAS") continue;
			const style = getComputedStyle(other);
			const colour = other.ownerSVGElement ? style.fill : style.backgroundColor;
			if (colour === "none" || colour.startsWith("url") || other.tagName === "text" || other.tagName === "tspan") continue;
			const c = rgba(colour);
			if (c[3] === 255) return c;
		}
		return rgba(getComputedStyle(document.body).backgroundColor);
	};
	const poor = [];
	let measured = 0;
	for (const el of document.querySelectorAll(WHAT)) {
		const own = [...el.childNodes].some((n) => n.nodeType === 3 && n.nodeValue.trim());
		const box = el.getBoundingClientRect();
		if (!own || !box.width || box.width < 2 || !el.checkVisibility({ checkVisibilityCSS: true })) continue;
		const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
		if (x < 0 || y < 0 || x >= innerWidth || y >= innerHeight) continue;
		const style = getComputedStyle(el);
		const colour = rgba(el.ownerSVGElement ? style.fill : style.color);
		measured++;
		const r = ratio(colour, below(el, x, y));
		if (r < 4.5) poor.push(el.textContent.trim().slice(0, 30) + " (" + (el.className.baseVal ?? el.className) + "): " + r.toFixed(2));
	}
	const style = getComputedStyle(document.documentElement);
	const token = (name) => rgba(style.getPropertyValue(name).trim());
	if (style.getPropertyValue("--moving")) for (const name of ["--moving", "--stored", "--delivered", "--waiting", "--anomaly", "--told", "--followed"]) {
		for (const ground of ["--panel", "--panel-client", "--frame", "--well"]) {
			const r = ratio(token(name), token(ground));
			if (r < 3) poor.push(name + " on " + ground + ": " + r.toFixed(2));
		}
	}
	return { Measured: measured, Poor: poor };
})()`

func (p *page) contrasts(t *testing.T) {
	p.inEveryTheme(t, func(theme string) { p.standsOut(t, theme, onStage, 60) })
	p.strike(t, "v")
	p.until(t, `document.querySelectorAll("#spacetime .names tspan").length > 5`)
	p.inEveryTheme(t, func(theme string) {
		p.standsOut(t, "space-time in "+theme, "#spacetime text, #spacetime tspan, #view", 10)
	})
	p.strike(t, "v")
	p.until(t, `document.body.dataset.view === "loop"`)
}

// inEveryTheme does something in each with FULL, otherwise in one of them, by turns. It leaves the page as the system
// has it.
func (p *page) inEveryTheme(t *testing.T, do func(theme string)) {
	themes := []string{"light", "dark", "contrast"}
	if os.Getenv("FULL") == "" {
		p.themed++
		themes = themes[p.themed%len(themes):][:1]
	}
	for _, theme := range themes {
		evaluate[bool](t, p, fmt.Sprintf(
			`(document.documentElement.dataset.theme = %q, window.listwatch.stage.restyle(), true)`, theme))
		do(theme)
	}
	evaluate[bool](t, p, `(delete document.documentElement.dataset.theme, window.listwatch.stage.restyle(), true)`)
}

// standsOut measures the contrast of the elements that a selector chooses; there must be so many texts in sight at
// least.
func (p *page) standsOut(t *testing.T, where, selector string, least int) {
	t.Helper()
	script := strings.Replace(contrastScript, "WHAT", strconv.Quote(selector), 1)
	program.Eventually(t, patience, func() (bool, string) { // a transition may be on its way
		found := evaluate[struct {
			Measured int
			Poor     []string
		}](t, p, script)
		return found.Measured >= least && len(found.Poor) == 0, fmt.Sprintf("%s: of %d texts: %s", where,
			found.Measured, strings.Join(found.Poor, "; "))
	})
}

// opensPanels opens everything that can be opened by a button of the bar, as a viewer without a mouse does, and walks
// through it.
func (p *page) opensPanels(t *testing.T) {
	panels := []struct {
		opener, panel string
		texts         int
	}{
		{"#open-stories", "#stories-dialog", 10},
		{"#open-knobs", "#knobs", 10},
		{"#open-promises", "#promises", 10},
		{"#world-clock", "#world", 10},
		{"#add-watcher", "#watcher-dialog", 5},
		{"#keys", "#keys-dialog", 15},
	}
	for _, each := range panels {
		evaluate[bool](t, p, fmt.Sprintf(
			`(document.querySelector(%q).closest("[popover]")?.showPopover(), document.querySelector(%[1]q).focus(), true)`, each.opener))
		p.press(t, "\r")
		p.until(t, fmt.Sprintf(`document.querySelector(%q).checkVisibility()`, each.panel))
		p.inEveryTheme(t, func(theme string) { p.standsOut(t, each.panel+" in "+theme, each.panel+" *", each.texts) })
		evaluate[bool](t, p, `(window.walked = new Set(), true)`)
		missed := []string{"all of it"}
		for walked := 0; walked < 130 && len(missed) > 0; walked += 10 { // often all has been met long before
			for range 10 {
				p.press(t, "\t")
				evaluate[bool](t, p, `(window.walked.add(document.activeElement), true)`)
			}
			missed = evaluate[[]string](t, p,
				fmt.Sprintf(
					`[...document.querySelector(%q).querySelectorAll("button, select, input, a[href], [tabindex='0']")]
				.filter((el) => !el.disabled && el.checkVisibility({ checkVisibilityCSS: true }) && !window.walked.has(el))
				.filter((el) => el.type !== "radio" || !document.querySelector("input[name=" + el.name + "]:checked"))
				.map((el) => el.outerHTML.slice(0, 100))`, each.panel))
		}
		if len(missed) > 0 {
			t.Errorf("%s: Tab never comes to %s", each.panel, strings.Join(missed, "\n"))
		}
		nameless := evaluate[[]string](t, p,
			fmt.Sprintf(`[...document.querySelector(%q).querySelectorAll("button, select, input, a[href]")]
			.filter((el) => !(el.getAttribute("aria-label") || el.textContent.trim() || el.labels?.length || el.title)).map((el) => el.outerHTML.slice(0, 100))`, each.panel))
		if len(nameless) > 0 {
			t.Errorf("%s: without a name: %s", each.panel, strings.Join(nameless, "\n"))
		}
		evaluate[bool](t, p, fmt.Sprintf(`(document.querySelector(%q + " button").focus(), true)`, each.panel))
		p.do(t, chromedp.KeyEvent("\u001b"))
		p.until(t, fmt.Sprintf(`!document.querySelector(%q).checkVisibility()`, each.panel))
	}
}

// walksByKeyboard presses Tab until the focus is back where it was.
func (p *page) walksByKeyboard(t *testing.T) {
	evaluate[bool](t, p, `(document.activeElement?.blur(), window.walked = new Set(), true)`)
	const mark = `(() => {
		const el = document.activeElement;
		if (el === document.body) return true;
		window.walked.add(el);
		return true;
	})()`
	for range 120 {
		p.do(t, chromedp.KeyEvent("\t"))
		evaluate[bool](t, p, mark)
	}
	missed := evaluate[[]string](t, p, `[...document.querySelectorAll("button, select, input, a[href], [tabindex='0']")]
		.filter((el) => !el.disabled && !el.closest("dialog, [hidden], #cause, #banner") && el.checkVisibility({ checkVisibilityCSS: true }) && !window.walked.has(el))
		.map((el) => el.outerHTML.slice(0, 100))`) // what comes by itself may have come since
	if len(missed) > 0 {
		t.Errorf("Tab never comes to %s", strings.Join(missed, "\n"))
	}
	order := evaluate[[]string](t, p,
		`[...window.walked].filter((el) => el.dataset.station).map((el) => el.dataset.station)`)
	if want := []string{"http", "etcd", "etcd3", "ring", "store"}; !containsRun(order, want) {
		t.Errorf("Tab walks the stations as %q, want them in the order of the path", order)
	}
}

func containsRun(list, run []string) bool {
	for i := range list {
		if len(list) >= i+len(run) && slices.Equal(list[i:i+len(run)], run) {
			return true
		}
	}
	return false
}

// press sends one key to the page.
func (p *page) press(t *testing.T, key string) {
	t.Helper()
	p.do(t, chromedp.KeyEvent(key))
}

func (p *page) switchesKeysOff(t *testing.T) {
	evaluate[bool](t, p, `(document.activeElement?.blur(), true)`)
	mode := func() string { return p.moment(t).Mode }
	p.press(t, "?")
	listed := evaluate[[]string](t, p,
		`[...document.querySelectorAll("#keys-dialog[open] kbd")].map((el) => el.textContent)`)
	for _, key := range []string{"Space", ".", ",", ">", "<", "]", "[", "N", "P", "Home", "End", "+", "-", "1", "Esc",
		"F", "C", "M", "D", "W", "X", "R", "B", "V", "L", "E", "S", "/", "A", "T", "?", "→", "←"} {
		if !slices.Contains(listed, key) {
			t.Errorf("the list of keys lacks %s: %q", key, listed)
		}
	}
	p.do(t, chromedp.Click(chromedp.CSS("#keys-dialog input")), chromedp.Click(chromedp.CSS("#keys-dialog .close")))
	evaluate[bool](t, p, `(document.activeElement?.blur(), true)`)
	p.press(t, " ")
	if got := mode(); got != "live" {
		t.Errorf("with the keys switched off, Space led to %q", got)
	}
	p.press(t, "?") // still opens the list: how else to switch them on
	p.do(t, chromedp.Click(chromedp.CSS("#keys-dialog input")), chromedp.Click(chromedp.CSS("#keys-dialog .close")))
	p.press(t, "/")
	p.do(t, chromedp.SendKeys(chromedp.CSS("#find-dialog input"), "fifo c"))
	if got := mode(); got != "live" {
		t.Errorf("letters in a field led to %q", got)
	}
	evaluate[bool](t, p, `(document.querySelector("#find-dialog").close(), document.activeElement?.blur(), true)`)
	p.press(t, " ")
	program.Eventually(t, patience, func() (bool, string) { return mode() == "frozen", mode() })
	p.press(t, " ")
	program.Eventually(t, patience, func() (bool, string) { return mode() == "live", mode() })
}

func (p *page) presents(t *testing.T) {
	p.do(t, looks[0].wear(1))
	p.press(t, "a")
	p.until(t, `document.documentElement.dataset.presenter === "on"`)
	if cut := evaluate[[]string](t, p, `[...document.querySelectorAll(".station > .hit")].filter((el) => {
		const [box, place] = [el.getBoundingClientRect(), document.querySelector(".ground").getBoundingClientRect()];
		return box.left < place.left || box.right > place.right || box.top < place.top || box.bottom > place.bottom || place.bottom > document.querySelector("#sentence").getBoundingClientRect().top;
	}).map((el) => el.parentElement.dataset.station)`); len(cut) > 0 {
		t.Errorf("of the whole loop %q is cut", cut)
	}
	p.do(t, chromedp.KeyEvent("\u0307")) // PageDown, which is what a clicker sends
	lit := func() []string {
		return evaluate[[]string](t, p,
			`[...document.querySelectorAll(".spot .station.lit")].map((el) => el.dataset.station)`)
	}
	if got := lit(); len(got) != 1 {
		t.Errorf("in the light: %q, want one station", got)
	}
	const small = `(() => {
		const scale = document.querySelector(".scenery").getScreenCTM().a;
		return [...document.querySelectorAll(".bar *, .sentence *, .time *, .scenery text")]
			.filter((el) => el.checkVisibility({ checkVisibilityCSS: true }) && (!el.ownerSVGElement || el.closest(".bright")) && el.getBoundingClientRect().width > 0 && [...el.childNodes].some((n) => n.nodeType === 3 && n.nodeValue.trim()))
			.filter((el) => parseFloat(getComputedStyle(el).fontSize) * (el.ownerSVGElement ? scale : 1) < 17.95)
			.map((el) => el.textContent.slice(0, 30) + " " + parseFloat(getComputedStyle(el).fontSize) * (el.ownerSVGElement ? scale : 1) + " " + document.querySelector("#stage").dataset.zoom);
	})()`
	program.Eventually(t, patience, func() (bool, string) { // the station in the light is on its way
		found := evaluate[[]string](t, p, small)
		return len(found) == 0, fmt.Sprintf("smaller than 18 px: %q", found)
	})
	p.press(t, "a")
	if got := lit(); len(got) != 0 {
		t.Errorf("after the presentation, in the light: %q", got)
	}
}

// fits opens windows from 4K down to 1280x720 at 200 % zoom, which leaves 640x360.
func (p *page) fits(t *testing.T) {
	for _, size := range [][2]int64{{3840, 2160}, {1920, 1080}, {1280, 720}, {1024, 768}, {640, 360}, {320, 640}} {
		p.do(t, func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
			_, err := cdp.Call(ctx, target, emulation.SetDeviceMetricsOverride,
				emulation.SetDeviceMetricsOverrideParams{Width: size[0], Height: size[1], DeviceScaleFactor: 1})
			return chromedp.Void{}, err
		})
		wide := evaluate[[]string](t, p,
			`[...document.querySelectorAll("body, header, main, .bar > *, .ground, .sentence, .time, .time > *, .records")]
			.filter((el) => el.checkVisibility() && el.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
			.map((el) => el.tagName + "." + el.className + " ends at " + el.getBoundingClientRect().right)
			.concat(document.documentElement.scrollWidth > innerWidth ? ["the page is " + document.documentElement.scrollWidth] : [])`)
		if len(wide) > 0 {
			t.Errorf("%dx%d: wider than the window: %s", size[0], size[1], strings.Join(wide, "; "))
		}
		if size[0] < 1280 {
			continue
		}
		tall := evaluate[float64](t, p, `document.documentElement.scrollHeight - innerHeight`)
		if tall > 1 {
			t.Errorf("%dx%d: the page is %v px higher than the window", size[0], size[1], tall)
		}
	}
	p.do(t, func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, target, emulation.ClearDeviceMetricsOverride, cdp.Empty{})
		return chromedp.Void{}, err
	})
}

// speaksSlowly notes when the live regions change, by the clock that the page goes by: it stands within a frame.
func (p *page) speaksSlowly(t *testing.T) {
	evaluate[bool](t, p, `(() => {
		window.spoken = [];
		for (const id of ["spoken", "alarm"]) {
			const el = document.getElementById(id);
			new MutationObserver(() => window.spoken.push(document.timeline.currentTime)).observe(el, { childList: true, characterData: true, subtree: true });
		}
		return true;
	})()`)
	program.Eventually(t, 3*program.EndsWithin, func() (bool, string) {
		n := evaluate[int](t, p, `window.spoken.length`)
		return n >= 4, fmt.Sprint(n, " sentences spoken")
	})
	for i, gap := range evaluate[[]float64](t, p, `window.spoken.slice(1).map((at, i) => at - window.spoken[i])`) {
		if gap < 1900 {
			t.Errorf("sentence %d came %.0f ms after the one before, want 2 s", i+1, gap)
		}
	}
	// what is hidden is silent
	chatty := evaluate[[]string](t, p,
		`[...document.querySelectorAll("main [aria-live], main [role=status], main [role=alert]")].filter((el) => !el.parentElement.closest("[hidden]")).map((el) => el.id)`)
	if len(chatty) > 0 {
		t.Errorf("%q speak for themselves", chatty)
	}
}

func (p *page) tableHasTheCursor(t *testing.T) {
	p.do(t, chromedp.Click(chromedp.CSS("#freeze")))
	p.press(t, "u")
	evaluate[bool](t, p, `(document.querySelector("section.records").focus(), true)`)
	before := p.moment(t).Seq
	for range 3 {
		p.do(t, chromedp.KeyEvent("\u0301")) // down: older
	}
	at := func() string {
		return evaluate[string](t, p, `document.querySelector("#records tr[aria-current]")?.dataset.seq ?? "none"`)
	}
	program.Eventually(t, patience, func() (bool, string) {
		m := p.moment(t)
		return m.Seq == before-3 && at() == fmt.Sprint(m.Seq),
			fmt.Sprintf("frozen at %d, now at %d, the table's row is %s", before, m.Seq, at())
	})
	p.do(t, chromedp.Click(chromedp.CSS("#live")))
}

// TestAPageOpenedInSilenceShowsWhatWas opens a page on a log in which nothing happens any more.
func TestAPageOpenedInSilenceShowsWhatWas(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-demo=false", "-controllers=false")
	v.busy(t, 100)
	p := openPage(t, v.URL)
	program.Eventually(t, patience, func() (bool, string) {
		rows := evaluate[int](t, p, `document.querySelector("#records").rows.length`)
		words := evaluate[string](t, p, `document.querySelector("#sentence").textContent`)
		return rows >= 20 && !strings.Contains(words, "Nothing has happened"), fmt.Sprint(rows, " rows; ", words)
	})
}
