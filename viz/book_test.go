package viz

import (
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/play/lab"
	"listwatch/viz/frame"
)

func TestTheShelfListsEveryLab(t *testing.T) {
	log, _ := newLog()
	page := ask(show(log), "GET", "/", "").Body.String()
	for _, each := range lab.All() {
		assert.True(t, strings.Contains(page, "go run ./cmd/lab start "+each.ID+"<"), "%s is not on the shelf", each.ID)
	}
	assert.False(t, strings.Contains(page, `id="lab"`), "the page names a lab though the program runs in no working copy")
}

func TestThePageOfAWorkingCopyNamesItsLabAndItsPromise(t *testing.T) {
	for id, promise := range map[string]string{
		"neighbours": "", "wrong-type": "Promise 5:", "build-pop": "<code>pop</code> always takes what comes in",
	} {
		here := require.Value(lab.ByID(id))(t)
		log, _ := newLog()
		ui := show(log, func(p *frame.Page) { p.Promises.Lab = &here })
		page := ask(ui, "GET", "/", "").Body.String()
		bar, _, _ := strings.Cut(page[max(0, strings.Index(page, `id="lab"`)):], "</p>")
		assert.True(t, !strings.Contains(bar, "`"), "%s: the bar shows backticks: %s", id, bar)
		for _, want := range []string{"Lab " + id, here.Goal[strings.LastIndex(here.Goal, "`")+1:],
			"go run ./cmd/lab check " + id, promise} {
			assert.True(t, strings.Contains(page, want), "%s: the page does not say %s", id, want)
		}
		assert.Equal(t, here.Rule > 0, strings.Contains(page, `id="lab-state"`),
			"%s is about promise %d; the page says otherwise", id, here.Rule)
		figure := ask(ui, "GET", "/?figure", "").Body.String()
		assert.False(t, strings.Contains(figure, `id="lab"`), "%s: a chapter's figure names the lab", id)
	}
}
