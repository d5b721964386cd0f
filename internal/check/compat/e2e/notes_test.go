package e2e

import (
	"bytes"
	"context"
	"listwatch/internal/check/require"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	printing "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// TestTheNotesFollowTheStage opens the speaker's window as a speaker does, and walks through the stations.
func TestTheNotesFollowTheStage(t *testing.T) {
	t.Parallel()
	_, p := still(t)
	opened := chromedp.WaitNewTarget(p.ctx, func(info *target.Info) bool {
		return strings.HasSuffix(info.URL,
			"/viz/notes")
	})
	p.press(t, "q")
	ctx, closeTab := chromedp.NewContext(p.ctx, chromedp.WithTargetID(<-opened))
	notes := &page{ctx: ctx}
	require.NoError(t, chromedp.Listen(ctx, notes.listen))
	t.Cleanup(func() {
		notes.verify(t)
		closeTab()
	})

	notes.until(t, `$("#silent").hidden && $("#station").hidden && !$("#told").hidden`)
	for _, next := range []struct{ station, title, then string }{{"http", "HTTP handler", "etcd"}, {"etcd", "etcd",
		"etcd3 watchChan"}} {
		p.press(t, "\u0307") // PageDown, which is what a clicker sends
		p.until(t, `$(".spot .station.lit")?.dataset.station === %q`, next.station)
		notes.until(t, `$("#station-title").textContent === %q && $("#next").textContent === "then: %s" &&
			$("#leaf").textContent.includes("Why it exists") && $("#leaf button") === null`, next.title, next.then)
	}
	p.until(t, `listwatch.player.tape.get(listwatch.player.cursor) !== undefined`)
	p.strike(t, " ")
	p.until(t, `document.body.dataset.mode === "frozen"`)
	said := evaluate[string](t, p, `$("#sentence .words").textContent`)
	notes.until(t, `$("#sentence").textContent === %q &&
		$("#moment").textContent === "record %d, frozen"`, said, p.moment(t).Seq)
	p.click(t, "#open-stories", `[data-play="loses-nothing"]`)
	notes.until(t,
		`!$("#story").hidden && $("#story-symptom").textContent.length > 20 &&
			$("#story-said").textContent.length > 20`)
	notes.standsOut(t, "the notes", "main *, header *", 10)
	notes.do(t, chromedp.Click("#again"))
	notes.until(t, `/^0:0[0-4]$/.test($("#elapsed").textContent)`)
	notes.until(t, `$("#plan [open] summary").textContent === "0:00 Welcome 5 minutes left"`)
	notes.run(t, `performance.now = ((now) => () => now() + 50 * 60e3)(performance.now.bind(performance))`)
	notes.until(t,
		`$("#plan [open] summary").textContent === "0:30 Versions, lists and watches 10 minutes left"
		&& $$("#plan [open] li").length === 4 && $("#plan [open]").textContent.includes("If late")`)
	p.strike(t, "a")
	notes.until(t, `!$("#silent").hidden && $("#told").hidden`)
}

// TestTheHandoutIsTwoPages prints it as an attendee's browser does, on A4.
func TestTheHandoutIsTwoPages(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-demo=false", "-controllers=false")
	p := openPage(t, v.URL+"/book/docs/HANDOUT")
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
	if n := bytes.Count(pdf, []byte("/Type /Page\n")); n != 2 {
		t.Errorf("%d pages, want 2", n)
	}
}
