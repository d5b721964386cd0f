package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
)

// mini is what a chapter's mini-stage says of itself.
type mini struct {
	Step, Steps int
	Seq         string // of the step
	Stage       string // the record at which the stage in the frame stands
	Lit         string // the point whose line is lit
	Point       string // of the step
	Fits        bool   // the drawing's ground is no higher than the frame
}

const readMini = `(() => {
	const mini = $("#mini");
	const items = [...mini.querySelectorAll(".steps li")];
	const now = mini.querySelector(".steps li[aria-current=step]");
	const inner = mini.querySelector("iframe")?.contentDocument?.body;
	const ground = inner?.querySelector(".ground")?.getBoundingClientRect();
	return {
		Step: items.indexOf(now) + 1, Steps: items.length, Seq: now?.dataset.seq ?? "", Point: now?.dataset.point ?? "",
		Stage: inner?.dataset.seq ?? "",
		Lit: $(".l.lit")?.dataset.point ?? "",
		Fits: ground?.top >= 0 && ground?.bottom <= mini.querySelector("iframe").clientHeight,
	};
})()`

// lastPoint is the point that the last line of the text reports, of those that have a step.
const lastPoint = `$$("article .l[data-point]").filter((line) => !line.closest("details:not([open])"))
	.map((line) => line.dataset.point).filter((point) => $('.steps li[data-point="' + point + '"]')).at(-1) ?? ""`

// startBook starts a program and has its book rendered, which takes what it takes.
func startBook(t *testing.T, flags ...string) *viz {
	t.Helper()
	v := startViz(t, flags...)
	answer, err := http.Get(v.URL + "/book/")
	require.NoError(t, err)
	answer.Body.Close()
	return v
}

// TestAChapterIsReadBesideItsStage scrolls through a chapter: the part that is read selects the moment that is shown.
func TestAChapterIsReadBesideItsStage(t *testing.T) {
	t.Parallel()
	v := startBook(t, "-demo=false", "-controllers=false")
	p := openPage(t, "about:blank")
	p.do(t, prefers("reduced-motion", "reduce"), chromedp.Navigate(v.URL+"/book/06-cacher")) // it scrolls at once
	settled := func(what string, holds func(m mini) bool) {
		t.Helper()
		program.Eventually(t, patience, func() (bool, string) {
			m := evaluate[mini](t, p, readMini)
			return m.Seq == m.Stage && m.Fits && holds(m), fmt.Sprintf("%s: %+v", what, m)
		})
	}
	settled("at the top", func(m mini) bool { return m.Step == 1 && m.Steps >= 5 })
	points := evaluate[[]string](t, p,
		`$$("article .l[data-point]").filter((line) => !line.closest("details:not([open])"))
		.map((line) => line.dataset.point).filter((point) => $('.steps li[data-point="' + point + '"]'))`)
	require.True(t, len(points) >= 3, "the chapter shows lines of %q only", points)
	for _, point := range []string{points[1], points[len(points)-1], points[0]} {
		p.run(t, `$('article .l[data-point="%s"]').scrollIntoView({ block: "center", behavior: "instant" })`, point)
		settled("reading "+point, func(m mini) bool { return m.Point == point && m.Lit == point })
	}
	before := evaluate[mini](t, p, readMini)
	p.click(t, "#mini .on")
	settled("next", func(m mini) bool { return m.Step == before.Step+1 })
	p.click(t, "#mini .back")
	settled("back", func(m mini) bool { return m.Step == before.Step })
	lights(t, p, "input", "incoming")
	link := evaluate[string](t, p, `$("#mini .whole").getAttribute("href")`)
	p.do(t, chromedp.Navigate(v.URL+link))
	program.Eventually(t, patience, func() (bool, string) {
		m := p.moment(t)
		return m.Mode == "replay" && fmt.Sprint(m.Seq) == before.Seq && !strings.Contains(m.Banner, "not shown here"),
			fmt.Sprintf("the whole stage at %s: %+v", link, m)
	})
}

// TestDrawingsAreWholeBesideTheStage holds that a laptop shows each drawing without scrolling, in letters that can be
// read.
func TestDrawingsAreWholeBesideTheStage(t *testing.T) {
	t.Parallel()
	v := startBook(t, "-demo=false", "-controllers=false")
	p := openPage(t, "about:blank")
	for _, chapter := range []string{"02-etcd3", "04-watchcache", "06-cacher", "10-deltafifo", "12-processor"} {
		p.do(t, chromedp.Navigate(v.URL+"/book/"+chapter))
		for _, width := range []int64{1024, 1200, 1280, 1376, 1440} {
			p.do(t, look{"", width, 800, "light", "reduce"}.wear(1))
			bad := evaluate[[]string](t, p, `$$(".drawn, .drawing, article > .session").flatMap((el) => {
				const svg = el.querySelector("svg");
				const letters = svg ? 15 * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 12;
				return el.scrollWidth > el.clientWidth || letters < 12 ?
					[(el.ariaLabel ?? el.textContent).slice(0, 40) + " " + el.scrollWidth + " " + letters] : [];
			})`)
			assert.True(t, len(bad) == 0, "%s at %d: %q", chapter, width, bad)
		}
	}
}

// lights points at words that mean a queue of the stage, and moves the focus to others: the queue they mean is lit, in
// sight, and nothing moves in the text. Away from them, nothing is lit.
func lights(t *testing.T, p *page, pointed, focused string) {
	t.Helper()
	lit := func(want, where string) {
		t.Helper()
		program.Eventually(t, patience, func() (bool, string) {
			got := evaluate[struct {
				Lit  string
				Seen bool
			}](t, p, `(() => {
				const inner = $("#mini iframe").contentDocument;
				const lit = [...inner.querySelectorAll(".named")];
				const [spot, place] = [lit[0], inner.querySelector(".ground")] // while it loads there is none
					.map((el) => el?.getBoundingClientRect());
				return { Lit: [...new Set(lit.map((el) => el.dataset.queue))].join(), Seen: lit.length === 0 ||
					spot.left >= place.left && spot.right <= place.right };
			})()`)
			return got.Lit == want && got.Seen, fmt.Sprintf("%s: %+v, want %q", where, got, want)
		})
	}
	words := func(part string) string { return fmt.Sprintf(`article [data-part="%s"]`, part) }
	height := evaluate[float64](t, p, `document.documentElement.scrollHeight`)
	hover(t, p, words(pointed))
	lit(pointed, "pointed at")
	hover(t, p, "h1")
	lit("", "pointed away")
	evaluate[bool](t, p, `($('`+words(focused)+`[tabindex]').focus(), true)`)
	lit(focused, "focused")
	p.run(t, `document.activeElement.blur()`)
	lit("", "focus gone")
	if after := evaluate[float64](t, p, `document.documentElement.scrollHeight`); after != height {
		t.Errorf("the text was %v px high and is %v", height, after)
	}
}

// hover brings an element to the middle of the window and moves the mouse there.
func hover(t *testing.T, p *page, selector string) {
	t.Helper()
	at := evaluate[[2]float64](t, p, fmt.Sprintf(`(() => {
		const el = $('%s');
		el.scrollIntoView({ block: "center", behavior: "instant" });
		const box = el.getBoundingClientRect();
		return [box.left + 4, box.top + box.height / 2];
	})()`, selector))
	p.do(t, func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, target, input.DispatchMouseEvent, input.DispatchMouseEventParams{
			Type: input.DispatchMouseEventTypeMouseMoved, X: at[0], Y: at[1]})
		return chromedp.Void{}, err
	})
}

// TestEveryChapterIsLegibleBesideItsStage opens all of them, in light and dark by turns, and reads to the end; it
// measures the contrast in six of them, in all with FULL. openPage sees to it that their consoles are empty and that
// nothing is asked elsewhere.
func TestEveryChapterIsLegibleBesideItsStage(t *testing.T) {
	t.Parallel()
	v := startBook(t, "-demo=false", "-controllers=false")
	p := openPage(t, v.URL+"/book/")
	chapters := evaluate[[]string](t, p,
		`[...new Set($$('a[href^="/book/"]').map((a) => a.getAttribute("href"))
			.filter((h) => /^\/book\/\d\d-[a-z0-9]+$/.test(h)))]`)
	require.True(t, len(chapters) == 15, "the contents lead to %q", chapters)
	for i, chapter := range chapters {
		p.do(t, prefers("color-scheme", []string{"light", "dark"}[i%2]), chromedp.Navigate(v.URL+chapter))
		settled := func(holds func(m mini) bool) {
			t.Helper()
			program.Eventually(t, patience, func() (bool, string) {
				m := evaluate[mini](t, p, readMini)
				return m.Stage != "" && m.Seq == m.Stage && holds(m), fmt.Sprintf("%s: %+v", chapter, m)
			})
		}
		settled(func(m mini) bool { return m.Step >= 1 && m.Steps >= 3 })
		p.becomes(t, fmt.Sprint(i%2 == 1),
			`getComputedStyle(document.body).backgroundColor.match(/\d+/g)
				.reduce((sum, c) => sum + Number(c), 0) < 3 * 128`)
		for _, part := range []string{"0", "0.4", "1"} { // the top, a line that is lit, a list of files
			p.run(t, `window.scrollTo({ top: document.documentElement.scrollHeight * %s, behavior: "instant" })`, part)
			if full || i%5 < 2 {
				p.standsOut(t, chapter+" at "+part, "main *, nav *, .mini *", 5)
			}
		}
		// The steps are in the order of the recording: the last line of the text may tell of the first.
		last := evaluate[string](t, p, lastPoint)
		settled(func(m mini) bool { return m.Step > 1 || last != "" && m.Point == last })
		if wide := evaluate[int](t, p, `document.documentElement.scrollWidth - innerWidth`); wide > 0 {
			t.Errorf("%s is %d px wider than the window", chapter, wide)
		}
	}
	// On a phone the mini-stage is above the text. Until a button opens it, the key moment is named.
	p.do(t, look{"phone", 390, 844, "light", "reduce"}.wear(1), chromedp.Navigate(v.URL+"/book/06-cacher"))
	p.until(t, `$("#mini .steps [aria-current]")?.matches(".key") && !$("#mini iframe")`)
	key := evaluate[mini](t, p, readMini).Step
	p.run(t, `$("#mini .back").click()`)
	program.Eventually(t, patience, func() (bool, string) {
		m := evaluate[mini](t, p, readMini)
		return m.Stage != "" && m.Seq == m.Stage && m.Step == key-1, fmt.Sprintf("on a phone: %+v, after %d", m, key)
	})
	p.is(t, "0", "on a phone a button scrolls the mini-stage away, by", `scrollY`)
}

// TestAChapterListsItsMomentsWithoutScript switches scripts off.
func TestAChapterListsItsMomentsWithoutScript(t *testing.T) {
	t.Parallel()
	v := startBook(t, "-demo=false", "-controllers=false")
	p := openPage(t, "about:blank")
	p.do(t, func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, target, emulation.SetScriptExecutionDisabled,
			emulation.SetScriptExecutionDisabledParams{Value: true})
		return chromedp.Void{}, err
	}, chromedp.Navigate(v.URL+"/book/06-cacher"))
	shown := evaluate[bool](t, p,
		`!$("#mini iframe") && $("#mini .hands").hidden
		&& $$("#mini .steps li").filter((li) => li.checkVisibility()).length > 4`)
	if !shown {
		t.Error("without script no moments are listed, or there are buttons that do nothing")
	}
}

// TestAChapterIsPrintedWithItsMoments puts a chapter on paper: black on white whatever the screen is, the moments as a
// list, nothing to press, and nothing beyond the edge.
func TestAChapterIsPrintedWithItsMoments(t *testing.T) {
	t.Parallel()
	v := startBook(t, "-demo=false", "-controllers=false")
	p := openPage(t, v.URL+"/book/06-cacher")
	program.Eventually(t, patience, func() (bool, string) {
		m := evaluate[mini](t, p, readMini)
		return m.Stage != "" && m.Seq == m.Stage, fmt.Sprintf("the mini-stage is not there yet: %+v", m)
	})
	p.do(t, onPaper)
	p.standsOut(t, "on paper", "main *, .mini *", 10)
	p.none(t, "on paper no reader can press", `$$("button, input, select, iframe, .bar")
		.filter((el) => el.checkVisibility()).map((el) => el.outerHTML.slice(0, 80))`)
	ground := evaluate[string](t, p, `getComputedStyle(document.body).backgroundColor`)
	listed := evaluate[int](t, p, `$$("#mini .steps li").filter((li) => li.checkVisibility()).length`)
	wide := evaluate[int](t, p, `document.documentElement.scrollWidth - innerWidth`)
	assert.False(t, ground != "rgb(255, 255, 255)" || listed < 5 || wide > 0,
		"the paper is %s, with %d moments, and %d px lie beyond the edge", ground, listed, wide)
}

// onPaper makes the page one that is printed on A4, by a reader whose screen is dark.
func onPaper(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
	// A4 within its margins, at 96 a inch
	sheet := emulation.SetDeviceMetricsOverrideParams{Width: 665, Height: 1009, DeviceScaleFactor: 1}
	if _, err := cdp.Call(ctx, target, emulation.SetDeviceMetricsOverride, sheet); err != nil {
		return chromedp.Void{}, err
	}
	paper := emulation.SetEmulatedMediaParams{Media: "print", Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: "dark"}}}
	_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, paper)
	return chromedp.Void{}, err
}

// TestTheBookIsSearched goes from a page of the running book to what an error message means, by keys.
func TestTheBookIsSearched(t *testing.T) {
	t.Parallel()
	v := startBook(t, "-demo=false", "-controllers=false")
	p := openPage(t, v.URL+"/book/06-cacher")
	p.searched(t, "too large resource version", "/book/too-large-resource-version")
	p.until(t, `$("h1")?.textContent.includes("Too large resource version")`)
}
