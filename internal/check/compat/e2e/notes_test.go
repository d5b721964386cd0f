package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// TestTheNotesFollowTheStage opens the speaker's window as a speaker does, and walks through the stations.
func TestTheNotesFollowTheStage(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-demo=false", "-controllers=false")
	p := openPage(t, v.URL)
	p.live(t, v)
	opened := chromedp.WaitNewTarget(p.ctx, func(info *target.Info) bool { return strings.HasSuffix(info.URL, "/viz/notes") })
	p.do(t, chromedp.KeyEvent("q"))
	ctx, closeTab := chromedp.NewContext(p.ctx, chromedp.WithTargetID(<-opened))
	notes := &page{ctx: ctx}
	if err := chromedp.Listen(ctx, notes.listen); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		notes.verify(t)
		closeTab()
	})

	notes.until(t, `document.querySelector("#silent").hidden && document.querySelector("#station").hidden && !document.querySelector("#told").hidden`)
	for _, next := range []struct{ station, title, then string }{{"http", "HTTP handler", "etcd"}, {"etcd", "etcd", "etcd3 watchChan"}} {
		p.do(t, chromedp.KeyEvent("\u0307")) // PageDown, which is what a clicker sends
		p.until(t, fmt.Sprintf(`document.querySelector(".spot .station.lit")?.dataset.station === %q`, next.station))
		notes.until(t, fmt.Sprintf(`document.querySelector("#station-title").textContent === %q && document.querySelector("#next").textContent === "then: %s" &&
			document.querySelector("#leaf").textContent.includes("Why it exists") && document.querySelector("#leaf button") === null`, next.title, next.then))
	}
	p.until(t, `listwatch.player.tape.get(listwatch.player.cursor) !== undefined`)
	p.strike(t, " ")
	p.until(t, `document.body.dataset.mode === "frozen"`)
	said := evaluate[string](t, p, `document.querySelector("#sentence .words").textContent`)
	notes.until(t, fmt.Sprintf(`document.querySelector("#sentence").textContent === %q && document.querySelector("#moment").textContent === "record %d, frozen"`, said, p.moment(t).Seq))
	p.do(t, chromedp.Click(chromedp.CSS("#open-stories")), chromedp.Click(chromedp.CSS(`[data-play="loses-nothing"]`)))
	notes.until(t, `!document.querySelector("#story").hidden && document.querySelector("#story-symptom").textContent.length > 20 && document.querySelector("#story-said").textContent.length > 20`)
	notes.standsOut(t, "the notes", "main *, header *", 10)
	notes.do(t, chromedp.Click("#again"))
	notes.until(t, `/^0:0[0-4]$/.test(document.querySelector("#elapsed").textContent)`)
	p.strike(t, "a")
	notes.until(t, `!document.querySelector("#silent").hidden && document.querySelector("#told").hidden`)
}
