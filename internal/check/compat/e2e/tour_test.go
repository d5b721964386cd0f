package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
)

// early are the stations that are named before a beat of the tour was about them.
const early = `$$(".station:not(.reached)").map((el) => el.querySelector(".title"))
	.filter((el) => el.checkVisibility({ visibilityProperty: true })).map((el) => el.textContent)`

// TestTheTourLeadsOneChangeByKeyboard walks through the whole tour on a running program, which plays it. The stage
// names no station before its beat. What the tour has changed is undone.
func TestTheTourLeadsOneChangeByKeyboard(t *testing.T) {
	t.Parallel()
	v := startViz(t)
	p := openPage(t, "about:blank")
	p.do(t, looks[0].wear(1), chromedp.Navigate(v.URL)) // the first visit, as it is
	p.until(t, `document.documentElement.dataset.first === "asks" && document.activeElement.id === "tour-start"`)
	p.press(t, kb.Enter)
	for beat := 1; beat <= 11; beat++ {
		if beat == 7 {
			p.rests(t, beat, "ready")
			p.press(t, "2") // no: the others do not wait
		}
		at := p.rests(t, beat, "rests")
		assert.True(t, at.Story == "tour" && at.Beats == "11" && len(at.Found) == 0, "beat %d: %+v", beat, at)
		p.none(t, fmt.Sprintf("beat %d: named too early", beat), early)
		p.is(t, "from the machine's run, just now", "what the tour is told from", `$text("#story-state")`)
		p.press(t, kb.ArrowRight)
	}
	p.is(t, "right", "the guess", `$("#story section[data-beat='7']").dataset.verdict`)
	p.is(t, "true", "at the end all stations are named", `$$(".station").every((el) => el.classList.contains("reached"))`)
	v.rested(t)
	p.press(t, kb.Escape)
	p.until(t, `!document.body.dataset.story && listwatch.player.mode === "live"`)
	p.navigate(t, v.URL)
	p.until(t, `!$("#last-time").hidden`)
	p.click(t, "#last-time")
	p.rests(t, 11, "ready")
}

// TestTheSecondVisitorIsToldTheTourFromTheRecording: the machine plays one story at a time, and the page says so.
func TestTheSecondVisitorIsToldTheTourFromTheRecording(t *testing.T) {
	t.Parallel()
	v := startViz(t)
	first, second := openPage(t, v.URL+"/?tour=1"), openPage(t, v.URL+"/?tour=1")
	for _, p := range []*page{first, second} {
		p.until(t, `$("#first")?.inert === false`)
	}
	first.run(t, `$("#tour-start").click()`)
	v.played(t, 1)
	second.run(t, `$("#tour-start").click()`)
	second.rests(t, 1, "rests")
	state := evaluate[string](t, second, `$text("#story-state")`)
	assert.True(t, strings.HasPrefix(state, "from a recording. ") && strings.Contains(state, "the story tour"),
		"the second visitor reads: %s", state)
	second.mu.Lock()
	second.complaints = slices.DeleteFunc(second.complaints, func(text string) bool {
		return strings.Contains(text, "409 (Conflict)") // the browser notes that the machine has refused
	})
	second.mu.Unlock()
	first.rests(t, 1, "rests")
	first.is(t, "from the machine's run, just now", "what the first visitor is told from", `$text("#story-state")`)
}

// played waits until stories have begun, or ended, so many times, and returns all records of that, and of requests.
func (v *viz) played(t *testing.T, turns int) (records []probe.Record) {
	t.Helper()
	story := probe.Query{Points: []probe.Point{probe.KnobTurned},
		Fields: map[probe.Field]string{probe.FieldName: "story"}}
	program.Eventually(t, patience, func() (bool, string) {
		var log struct{ Records []probe.Record }
		v.Get(t, "/viz/records?from=1&to=60000&point=KnobTurned,RequestReceived", &log)
		records = log.Records
		n := 0
		for i := range records {
			if story.Matches(&records[i]) {
				n++
			}
		}
		return n >= turns, fmt.Sprintf("%d beginnings and ends of stories", n)
	})
	return records
}

// rested holds the demo to its rest while the tour was played, and the tour to its undo.
func (v *viz) rested(t *testing.T) {
	t.Helper()
	writes := probe.Query{Points: []probe.Point{probe.RequestReceived}, Fields: map[probe.Field]string{
		probe.FieldAgent: "listwatch-demo", probe.FieldMethod: "POST|PATCH"}}
	playing, during := false, []string{}
	for _, r := range v.played(t, 2) {
		switch {
		case r.Point == probe.KnobTurned && r.Field(probe.FieldName) == "story":
			playing = r.Field(probe.FieldValue) == "true"
		case playing && writes.Matches(&r):
			during = append(during, r.Field(probe.FieldPath))
		}
	}
	require.True(t, len(during) <= 1, "while the tour is played: %q", during) // one may be under way as it begins
	var left []struct{ ID string }
	v.Get(t, "/viz/watchers", &left)
	assert.True(t, len(left) == 0, "the tour leaves %d watchers", len(left))
	response, err := http.Get(v.URL + "/api/v1/namespaces/default/pods/my-pod")
	require.NoError(t, err)
	if response.Body.Close(); response.StatusCode != http.StatusNotFound {
		t.Errorf("the tour leaves its pod: %s", response.Status)
	}
	var knobs struct {
		Rings []struct {
			Resource string
			Fixed    int
		}
	}
	v.Get(t, "/viz/knobs", &knobs)
	for _, ring := range knobs.Rings {
		assert.Equal(t, 0, ring.Fixed, "the tour leaves the ring of "+ring.Resource+" fixed at")
	}
}
