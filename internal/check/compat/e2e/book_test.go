package e2e

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	printing "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
)

// mini is the state of a chapter's mini-stage.
type mini struct {
	Step, Steps int
	Seq         string // the step's record
	Stage       string // the record that the stage in the frame shows
	Lit         string // the point whose line is lit
	Point       string // the step's point
	Fits        bool   // the drawing is no higher than the frame
}

const readMini = `(() => {
	const mini = $("#mini");
	const items = [...mini.querySelectorAll(".steps li")];
	const now = mini.querySelector(".steps li[aria-current=step]");
	const { contentWindow, contentDocument } = mini.querySelector("iframe") ?? {};
	const there = contentWindow?.location.href.startsWith(new URL(now?.dataset.frame ?? "", location).href + "#");
	const inner = there ? contentDocument.body : null; // null while the frame still shows another recording
	const ground = inner?.querySelector(".ground")?.getBoundingClientRect();
	return {
		Step: items.indexOf(now) + 1, Steps: items.length, Seq: now?.dataset.seq ?? "", Point: now?.dataset.point ?? "",
		Stage: inner?.dataset.seq ?? "",
		Lit: $(".l.lit")?.dataset.point ?? "",
		Fits: ground?.top >= 0 && ground?.bottom <= mini.querySelector("iframe").clientHeight,
	};
})()`

// settled waits until the stage in the frame shows the step's record and holds returns true.
func (p *page) settled(t *testing.T, what string, holds func(m mini) bool) {
	t.Helper()
	program.Eventually(t, patience, func() (bool, string) {
		m := evaluate[mini](t, p, readMini)
		return m.Stage != "" && m.Seq == m.Stage && holds(m), fmt.Sprintf("%s: %+v", what, m)
	})
}

// points lists the points on the chapter's visible source lines for which there is also a step.
const points = `$$("article .l[data-point]").filter((line) => !line.closest("details:not([open])"))
	.map((line) => line.dataset.point).filter((point) => $('.steps li[data-point="' + point + '"]'))`

// TestTheBook reads the book, each part in a page of its own.
func TestTheBook(t *testing.T) {
	t.Parallel()
	sit(t) // the parts do not queue again, so this long test does not end last, alone
	v := startViz(t, "-demo=false", "-controllers=false")
	for _, each := range []struct {
		name string
		read func(t *testing.T, v *viz, p *page)
	}{
		{"a chapter is read beside its stage", chapterIsReadBesideItsStage},
		{"drawings are whole beside the stage", drawingsAreWhole},
		{"every chapter is legible beside its stage", everyChapterIsLegible},
		{"figures fit a phone", figuresFitAPhone},
		{"figures answer the reader's hand", figuresAnswer},
		{"a chapter lists its moments without script", chapterListsItsMoments},
		{"a chapter is printed with its moments", chapterIsPrinted},
		{"the book is searched", bookIsSearched},
		{"the handout is two pages", handoutIsTwoPages},
	} {
		t.Run(each.name, func(t *testing.T) { each.read(t, v, openPage(t, "about:blank")) })
	}
}

// chapterIsReadBesideItsStage scrolls through a chapter. The mini-stage must follow the part in the window.
func chapterIsReadBesideItsStage(t *testing.T, v *viz, p *page) {
	p.do(t, prefers("reduced-motion", "reduce"), chromedp.Navigate(v.URL+"/book/06-cacher")) // no smooth scroll
	settled := func(what string, holds func(m mini) bool) {
		t.Helper()
		p.settled(t, what, func(m mini) bool { return m.Fits && holds(m) })
	}
	settled("at the top", func(m mini) bool { return m.Step == 1 && m.Steps >= 5 })
	points := evaluate[[]string](t, p, points)
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
	link := evaluate[[2]string](t, p, `[$("#mini .whole").getAttribute("href"), `+readMini+`.Seq]`)
	p.do(t, chromedp.Navigate(v.URL+link[0]))
	p.stands(t, "the whole stage at "+link[0], func(m moment) bool {
		return m.Mode == "replay" && fmt.Sprint(m.Seq) == link[1] && !strings.Contains(m.Banner, "not shown here")
	})
}

// drawingsAreWhole checks that laptops show five chapters' drawings without scrolling and in legible letters.
func drawingsAreWhole(t *testing.T, v *viz, p *page) {
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

// lights points the mouse at the words for one queue and focuses the words for another. The stage must light the queue
// and have it in view, and the text must not move. Away from the words, no queue is lit.
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
				const [spot, place] = [lit[0], inner.querySelector(".ground")] // none while it loads
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
	after := evaluate[float64](t, p, `document.documentElement.scrollHeight`)
	assert.True(t, after == height, "the text was %v px high and is %v", height, after)
}

// hover moves an element to the middle of the window, and the mouse to the element.
func hover(t *testing.T, p *page, selector string) {
	t.Helper()
	at := evaluate[[2]float64](t, p, fmt.Sprintf(`(() => {
		const el = $('%s');
		el.scrollIntoView({ block: "center", behavior: "instant" });
		const box = el.getBoundingClientRect();
		return [box.left + 4, box.top + box.height / 2];
	})()`, selector))
	p.do(t, tells(input.DispatchMouseEvent, input.DispatchMouseEventParams{
		Type: input.DispatchMouseEventTypeMouseMoved, X: at[0], Y: at[1]}))
}

// everyChapterIsLegible opens every chapter, alternately in light and dark, and reads to the end. It measures the
// contrast in six chapters, or all with FULL. openPage checks that consoles stay empty and no request leaves loopback.
func everyChapterIsLegible(t *testing.T, v *viz, p *page) {
	p.do(t, chromedp.Navigate(v.URL+"/book/"))
	chapters := evaluate[[]string](t, p, `[...new Set($$('a[href^="/book/"]').map((a) => a.getAttribute("href"))
			.filter((h) => /^\/book\/\d\d-[a-z0-9]+$/.test(h)))]`)
	require.True(t, len(chapters) == 15, "the contents lead to %q", chapters)
	for i, chapter := range chapters {
		p.do(t, prefers("color-scheme", []string{"light", "dark"}[i%2]), chromedp.Navigate(v.URL+chapter))
		p.settled(t, chapter, func(m mini) bool { return m.Step >= 1 && m.Steps >= 3 })
		p.becomes(t, fmt.Sprint(i%2 == 1), `getComputedStyle(document.body).backgroundColor.match(/\d+/g)
				.reduce((sum, c) => sum + Number(c), 0) < 3 * 128`)
		for _, part := range []string{"0", "0.4", "1"} { // these show the top, a lit line, and a list of files
			p.run(t, `window.scrollTo({ top: document.documentElement.scrollHeight * %s, behavior: "instant" })`, part)
			if full || i%5 < 2 {
				p.standsOut(t, chapter+" at "+part, "main *, nav *, .mini *", 5)
			}
		}
		// The steps are in the recording's order, so the last line of the text may belong to the first step.
		last := evaluate[string](t, p, points+`.at(-1) ?? ""`)
		p.settled(t, chapter, func(m mini) bool { return m.Step > 1 || last != "" && m.Point == last })
		wide := evaluate[int](t, p, `document.documentElement.scrollWidth - innerWidth`)
		assert.True(t, wide == 0, "%s is %d px wider than the window", chapter, wide)
	}
}

// figuresFitAPhone opens every chapter on a phone: no figure is cut or above the title, and the mini-stage is closed at
// its key moment. In six chapters, or all with FULL, the test then steps back in a window of 358 px. Each step must
// show the whole station in letters of at least 9 px.
func figuresFitAPhone(t *testing.T, v *viz, p *page) {
	p.do(t, look{"phone", 390, 844, "light", "reduce"}.wear(1), chromedp.Navigate(v.URL+"/book/"))
	const cut = `$$("figure, .drawn, .drawn svg, .loop svg, .mini .frame").filter((el) => el.checkVisibility())
		.filter((el) => el.getBoundingClientRect().right > innerWidth || el.scrollWidth > el.clientWidth + 1 ||
			el.getBoundingClientRect().top < $("h1").getBoundingClientRect().bottom)
			.map((el) => el.outerHTML.slice(0, 80))`
	p.none(t, "contents", cut)
	chapters := evaluate[[]string](t, p, `$$(".part ol a").map((a) => a.getAttribute("href"))`)
	for i, chapter := range chapters {
		p.do(t, look{"phone", 390, 844, "light", "reduce"}.wear(1), chromedp.Navigate(v.URL+chapter))
		p.until(t, `$("#mini .steps [aria-current]")?.matches(".key") && !$("#mini iframe")`)
		p.none(t, chapter, cut)
		if !full && i%5 > 1 {
			continue
		}
		p.do(t, look{"narrow", 358, 844, "light", "reduce"}.wear(1))
		for step := evaluate[mini](t, p, readMini).Step; step > 1; step-- {
			p.run(t, `$("#mini .back").click()`)
			p.settled(t, fmt.Sprint(chapter, " after ", step), func(m mini) bool { return m.Step == step-1 })
			p.is(t, "0", "a button scrolls the mini-stage away, by", `scrollY`)
			p.none(t, fmt.Sprint(chapter, " at step ", step-1), illegible)
		}
	}
}

// illegible lists the texts in the frame that are smaller than 9 px, and the step's station if it is cut.
const illegible = `(async () => {
	const { contentDocument: inner, contentWindow: { getComputedStyle } } = $("#mini iframe");
	const at = '[data-station="' + $("#mini [aria-current] .station").textContent + '"]';
	const place = inner.querySelector(".ground").getBoundingClientRect();
	const meets = ({ left, right, top, bottom }) =>
		left < place.right && right > place.left && top < place.bottom && bottom > place.top;
	for (let still = 0, was = ""; still < 3; ) { // until the camera has come to rest
		await new Promise(requestAnimationFrame);
		const view = inner.querySelector(".ground svg").getAttribute("viewBox");
		[still, was] = [view === was ? still + 1 : 0, view];
	}
	const small = [...inner.querySelectorAll(".ground text")].filter((el) =>
		el.checkVisibility({ visibilityProperty: true }) && meets(el.getBoundingClientRect()) &&
		parseFloat(getComputedStyle(el).fontSize) * el.getScreenCTM().a < 9).map((el) => el.textContent);
	const box = inner.querySelector(at).getBoundingClientRect();
	const whole = box.left >= place.left - 1 && box.right <= place.right + 1 && box.top >= place.top - 1
		&& box.bottom <= place.bottom + 1;
	return whole ? small : [at + " is cut", ...small];
})()`

// figuresAnswer presses an arrow key on the sliders of two drawings. The drawings' texts must change.
func figuresAnswer(t *testing.T, v *viz, p *page) {
	for chapter, says := range map[string][3]string{
		"04-watchcache": {"From 7 or older: 410.", kb.ArrowLeft, "From 10 or older: 410."},
		"06-cacher":     {"Stopped: 1 of 3. Evicted: 1.", kb.ArrowRight, "Stopped: 2 of 3. Evicted: 2."},
	} {
		p.do(t, chromedp.Navigate(v.URL+"/book/"+chapter))
		shows := func(want string) {
			p.until(t, `$(".hand input")?.ariaValueText.includes(%q) && $$(".drawn:has(+ .hand) text")
				.some((el) => !el.closest("[display]") && el.textContent.startsWith(%q))`, want, want)
		}
		shows(says[0])
		p.run(t, `$(".hand input").focus()`)
		p.press(t, says[1])
		shows(says[2])
	}
}

// chapterListsItsMoments opens a chapter with scripts switched off. The page must list moments and hide its buttons.
func chapterListsItsMoments(t *testing.T, v *viz, p *page) {
	without := emulation.SetScriptExecutionDisabledParams{Value: true}
	p.do(t, tells(emulation.SetScriptExecutionDisabled, without), chromedp.Navigate(v.URL+"/book/06-cacher"))
	shown := evaluate[bool](t, p, `!$("#mini iframe") && $("#mini .hands").hidden
		&& $$("#mini .steps li").filter((li) => li.checkVisibility()).length > 4`)
	assert.True(t, shown, "without script no moments are listed, or there are buttons that do nothing")
}

// chapterIsPrinted expects black on white, the moments as a list, no controls, and nothing beyond the paper's edge.
func chapterIsPrinted(t *testing.T, v *viz, p *page) {
	p.do(t, chromedp.Navigate(v.URL+"/book/06-cacher"))
	p.settled(t, "the mini-stage is not there yet", func(mini) bool { return true })
	// Width and Height are the printable area of A4 at 96 px per inch. The reader's screen is dark.
	p.do(t, tells(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: 665, Height: 1009,
		DeviceScaleFactor: 1}), tells(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print",
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}}))
	p.standsOut(t, "on paper", "main *, .mini *", 10)
	p.none(t, "on paper no reader can press", `$$("button, input, select, iframe, .bar")
		.filter((el) => el.checkVisibility()).map((el) => el.outerHTML.slice(0, 80))`)
	ground := evaluate[string](t, p, `getComputedStyle(document.body).backgroundColor`)
	listed := evaluate[int](t, p, `$$("#mini .steps li").filter((li) => li.checkVisibility()).length`)
	wide := evaluate[int](t, p, `document.documentElement.scrollWidth - innerWidth`)
	assert.False(t, ground != "rgb(255, 255, 255)" || listed < 5 || wide > 0,
		"the paper is %s, with %d moments, and %d px lie beyond the edge", ground, listed, wide)
}

// bookIsSearched uses only keys to get from a page of the book to the explanation of an error message.
func bookIsSearched(t *testing.T, v *viz, p *page) {
	p.do(t, chromedp.Navigate(v.URL+"/book/06-cacher"))
	p.searched(t, "apiserver_terminated_watchers_total", "SYMPTOMS#the-client-is-evicted") // some rows are long
	p.searched(t, "too large resource version", "/book/too-large-resource-version")
	p.until(t, `$("h1")?.textContent.includes("Too large resource version")`)
}

// handoutIsTwoPages checks that the handout, printed on A4, has two pages.
func handoutIsTwoPages(t *testing.T, v *viz, p *page) {
	p.do(t, chromedp.Navigate(v.URL+"/book/docs/HANDOUT"))
	var pdf []byte
	p.do(t, func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		css := true
		a4 := printing.PrintToPDFParams{PaperWidth: 8.27, PaperHeight: 11.69, PreferCSSPageSize: &css}
		printed, err := cdp.Call(ctx, target, printing.PrintToPDF, a4)
		if err == nil {
			pdf = printed.Data
		}
		return chromedp.Void{}, err
	})
	n := bytes.Count(pdf, []byte("/Type /Page\n"))
	assert.True(t, n == 2, "%d pages, want 2", n)
}
