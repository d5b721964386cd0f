package e2e

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
)

// readFirst is what the first view shows: its controls, what is written on the stage, and how large the question is.
const readFirst = `(() => {
	const shown = (el) => el.checkVisibility({ visibilityProperty: true });
	const texts = (selector) => $$(selector).filter((el) => el.textContent && shown(el));
	return {
		Controls: texts("button, select, input, a").map((el) => el.id || el.textContent),
		Names: texts(".scenery text").map((el) => el.textContent).filter((text) => !/^\d+$/.test(text)),
		Question: $("#first h2").textContent, Size: getComputedStyle($("#first h2")).fontSize,
		State: $("#first-state").innerText,
	};
})()`

type first struct {
	Controls, Names       []string
	Question, Size, State string
}

// TestTheFirstViewAsksAQuestionAndHasThreeWaysOn: the tour is tour_test.go's.
func TestTheFirstViewAsksAQuestionAndHasThreeWaysOn(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-demo=false")
	p := openPage(t, "about:blank")
	visit := func() {
		p.do(t, looks[0].wear(1), chromedp.Navigate(v.URL))
		p.until(t, `window.listwatch?.player.head > 0`)
	}
	visit()
	p.until(t, `document.documentElement.dataset.first === "asks"`)
	seen := evaluate[first](t, p, readFirst)
	names := strings.Join(seen.Names, ", ")
	if names != "etcd, history ring, dispatcher, one lane for each client, your controller" || seen.Size != "32px" {
		t.Errorf("the first view names %s, and asks in %s", names, seen.Size)
	}
	for _, word := range []string{"Kubernetes", "controller", "change"} {
		assert.True(t, strings.Contains(seen.Question, word), "the question lacks %q: %s", word, seen.Question)
	}
	if got := strings.Join(seen.Controls, ", "); got != "tour-start, first-kubectl, watch closed, 410 Gone, 409 "+
		"Conflict, first-leave" {
		t.Errorf("the first view has the controls %s", got)
	}

	p.click(t, "#first-kubectl")
	p.until(t, `$("#first-state").innerText.startsWith("The page waits")`)
	// A minute ago the commands were shown.
	p.run(t, `const button = $("#first-kubectl");
		const { now } = performance;
		button.click();
		performance.now = () => now.call(performance) - 61000;
		button.click();
		delete performance.now;`)
	p.until(t, `$("#first-state").innerText.includes("readyz")`)
	watch := program.Start(t, kubectlFor(t, v).Command("get", "pods", "-w"))
	p.until(t, `$("#first-state").innerText.startsWith("Your watch is here")`)
	watch.Interrupt(t)
	watch.ExitCode(t, program.EndsWithin)
	p.press(t, kb.Escape)
	p.until(t, `!document.documentElement.dataset.first`)

	visit()
	assert.False(t, evaluate[bool](t, p, `"first" in document.documentElement.dataset`),
		"the first view comes again after it was left")
	p.navigate(t, v.URL+"/?tour=1")
	p.until(t, `$("#first")?.inert === false`)
	p.click(t, `[data-first-story="slow-watcher"]`)
	p.until(t, `!document.documentElement.dataset.first && document.body.dataset.story === "slow-watcher"`)
	p.until(t, `localStorage.getItem("last-time") !== null`)
	visit()
	p.click(t, "#last-time")
	p.until(t, `document.body.dataset.story === "slow-watcher"`)
}

// TestASliderKeepsItsKeysAndChangesNeedAMark: Home in a slider moved the page to the start of the log, and Change
// without a marked pod wrote to one that was deleted long ago.
func TestASliderKeepsItsKeysAndChangesNeedAMark(t *testing.T) {
	t.Parallel()
	_, p := still(t)
	p.press(t, "x")
	p.run(t, `$("#traffic").focus()`)
	p.press(t, kb.Home)
	p.is(t, "live", "Home in a slider leads to", `document.body.dataset.mode`)
	const disabled = `["#change-pod", "#delete-pod"].map((each) => $(each).disabled).join()`
	p.is(t, "true,true", "without a marked pod Change and Delete are disabled", disabled)
	p.pick(t, "#create-pod")
	p.until(t, disabled+
		` === "false,false" && $("#change-pod").textContent === "Change default/a"`)
	p.pick(t, "#delete-pod")
	p.until(t, disabled+` === "true,true"`)
}
