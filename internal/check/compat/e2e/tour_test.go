package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/observe/probe"
)

// early lists the stations that show their names before the tour has reached them.
const early = `$$(".station:not(.reached)").map((el) => el.querySelector(".title"))
	.filter((el) => el.checkVisibility({ visibilityProperty: true })).map((el) => el.textContent)`

// source matches the page's words on the tour's source: the machine's run or, only if a watcher was full, a recording.
const source = `/^from (the machine's run, just now|a recording\. .*: got \d+ (WatcherForced|DispatchBlocked),.*)$/`

// TestTheTourLeadsOneChangeByKeyboard walks through the whole tour, which a running program plays. The stage must name
// no station before its beat. internal/play tests that the demo pauses, and that the tour's changes are undone.
func TestTheTourLeadsOneChangeByKeyboard(t *testing.T) {
	t.Parallel()
	v := startViz(t)
	p := openPage(t, "about:blank")
	p.do(t, looks[0].wear(1), chromedp.Navigate(v.URL)) // a first visit, which offers the tour
	p.until(t, `document.documentElement.dataset.first === "asks" && document.activeElement.id === "tour-start"`)
	p.press(t, kb.Enter)
	for beat := 1; beat <= 12; beat++ {
		if beat == 6 {
			p.rests(t, beat, "ready")
			p.press(t, "2") // the right guess is: no, the others do not wait
		}
		at := p.rests(t, beat, "rests")
		assert.True(t, at.Story == "tour" && at.Beats == "12" && len(at.Found) == 0, "beat %d: %+v", beat, at)
		p.none(t, fmt.Sprintf("beat %d: named too early", beat), early)
		p.none(t, "what the tour is told from", `[$text("#story-state")].filter((text) => !`+source+`.test(text))`)
		p.press(t, kb.ArrowRight)
	}
	p.is(t, "right", "the guess", `$("#story section[data-beat='6']").dataset.verdict`)
	p.is(t, "true", "at the end all stations are named",
		`$$(".station").every((el) => el.classList.contains("reached"))`)
	p.press(t, kb.Escape)
	p.until(t, `!document.body.dataset.story && listwatch.player.mode === "live"`)
}

// TestTheSecondVisitorIsToldTheTourFromTheRecording opens the tour twice. The machine plays one story at a time, so the
// second page must replay the recording and give the reason.
func TestTheSecondVisitorIsToldTheTourFromTheRecording(t *testing.T) {
	t.Parallel()
	v := startViz(t)
	first, second := openPage(t, v.URL+"/?tour=1"), openPage(t, v.URL+"/?tour=1")
	for _, p := range []*page{first, second} {
		p.until(t, `$("#first")?.inert === false`)
	}
	first.run(t, `$("#tour-start").click()`)
	v.played(t)
	second.run(t, `$("#tour-start").click()`)
	second.rests(t, 1, "rests")
	state := evaluate[string](t, second, `$text("#story-state")`)
	assert.True(t, strings.HasPrefix(state, "from a recording. ") && strings.Contains(state, "the story tour"),
		"the second visitor reads: %s", state)
	second.mu.Lock()
	second.complaints = slices.DeleteFunc(second.complaints, func(text string) bool {
		return strings.Contains(text, "409 (Conflict)") // the browser logs the machine's refusal
	})
	second.mu.Unlock()
	first.rests(t, 1, "rests")
	first.is(t, "from the machine's run, just now", "what the first visitor is told from", `$text("#story-state")`)
}

// played waits until the program has begun a story.
func (v *viz) played(t *testing.T) {
	t.Helper()
	program.Eventually(t, patience, func() (bool, string) {
		var log struct{ Records []probe.Record }
		v.Get(t, "/viz/records?point=KnobTurned&name=story", &log)
		return len(log.Records) > 0, "no story has begun"
	})
}
