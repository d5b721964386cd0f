package e2e

import (
	"slices"
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
		Names: texts(".scenery text:not(.lane text, .row text)").map((el) => el.textContent),
		Clients: texts(".lane .name").map((el) => el.textContent),
		Question: $("#first h2").textContent, Size: getComputedStyle($("#first h2")).fontSize,
		State: $("#first-state").innerText,
	};
})()`

type first struct {
	Controls, Names, Clients []string
	Question, Size, State    string
}

// onFirst looks at every frame until a named token has been drawn in so many of them, and returns the frames in which
// more than one was, and the names of stations that are drawn although they have no name there.
const onFirst = `((wanted) => new Promise((done) => {
	const { motion, player } = listwatch;
	const [wrong, began] = [[], performance.now()];
	let named = 0;
	const look = () => {
		const names = motion.brush.labels.map(([, , text]) => text);
		if (names.length > 1) wrong.push(names.join(" and "));
		named += names.length;
		if (named < wanted && performance.now() - began < 20000) return requestAnimationFrame(look);
		if (named < wanted) wrong.push(named + " frames show a change that travels");
		const drawn = $$(".station > *")
			.filter((el) => getComputedStyle(el).visibility === "visible" && el.getBBox().width > 0);
		const stations = new Set(drawn.map((el) => el.parentElement.dataset.station));
		done([...wrong, ...[...stations].filter((name) =>
			!["etcd", "ring", "dispatch", "watcher", "indexer", "handler"].includes(name))]);
	};
	look();
}))`

// TestTheFirstViewAsksAQuestionAndHasThreeWaysOn: the tour is tour_test.go's.
func TestTheFirstViewAsksAQuestionAndHasThreeWaysOn(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-demo=false")
	p := openPage(t, "about:blank")
	visit := func() {
		p.do(t, looks[0].wear(1), chromedp.Navigate(v.URL))
		p.until(t, `window.listwatch?.player.head > 0`)
	}
	post(t, v.URL+"/api/v1/namespaces/default/pods", map[string]any{"metadata": map[string]any{"name": "web-1"},
		"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "example.com/c"}}}})
	visit()
	p.until(t, `document.documentElement.dataset.first === "asks"`)
	p.none(t, "beside the one change that travels the first view shows", onFirst+`(20)`)
	seen := evaluate[first](t, p, readFirst)
	names := strings.Join(seen.Names, ", ")
	if names != "API server, etcd, history ring, dispatcher, one lane for each client, your controller, its "+
		"copy, your code" ||
		seen.Size != "32px" || !slices.Contains(seen.Clients, "informer") {
		t.Errorf("the first view names %s, and the clients %s, and asks in %s", names, seen.Clients, seen.Size)
	}
	p.until(t, `$$(".row .key").filter((el) => el.checkVisibility({ visibilityProperty: true })).map((el) =>
		el.textContent).join() === "web-1"`) // in the controller's copy
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
	watch.ExitCode(t, program.HangsAfter)
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
// without a followed pod wrote to one that was deleted long ago.
func TestASliderKeepsItsKeysAndChangesNeedAMark(t *testing.T) {
	t.Parallel()
	_, p := still(t)
	p.press(t, "x")
	p.run(t, `$("#traffic").focus()`)
	p.press(t, kb.Home)
	p.is(t, "live", "Home in a slider leads to", `document.body.dataset.mode`)
	const disabled = `["#change-pod", "#delete-pod"].map((each) => $(each).disabled).join()`
	p.is(t, "true,true", "without a followed pod Change and Delete are disabled", disabled)
	p.pick(t, "#create-pod")
	p.until(t, disabled+
		` === "false,false" && $("#change-pod").textContent === "Change default/a"`)
	p.pick(t, "#delete-pod")
	p.until(t, disabled+` === "true,true"`)
}
