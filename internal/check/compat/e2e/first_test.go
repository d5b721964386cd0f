package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"listwatch/internal/check/assert"
)

// readFirst reads the first view: its controls, the names of stations and clients, and the question with its font size.
const readFirst = `(() => {
	const shown = (el) => el.checkVisibility({ visibilityProperty: true });
	const texts = (selector) => $$(selector).filter((el) => el.textContent && shown(el));
	return {
		Controls: texts("button, select, input, a").map((el) => el.id || el.textContent),
		Names: texts(".scenery text:not(.lane text, .row text)").map((el) => el.textContent),
		Clients: texts(".lane .name").map((el) => el.textContent),
		Question: $("#first h2").textContent, Size: getComputedStyle($("#first h2")).fontSize,
	};
})()`

type first struct {
	Controls, Names, Clients []string
	Question, Size           string
}

// onFirst looks at every frame until the wanted number of names has been drawn on tokens, or for 20 s. It returns the
// faults: frames with several names, too few names, and drawn stations that do not belong in the first view.
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
		const drawn = $$(".station > :not(.hit)")
			.filter((el) => getComputedStyle(el).visibility === "visible" && el.getBBox().width > 0);
		const stations = new Set(drawn.map((el) => el.parentElement.dataset.station));
		done([...wrong, ...[...stations].filter((name) =>
			!["etcd", "ring", "dispatch", "watcher", "indexer", "processor", "handler"].includes(name))]);
	};
	look();
}))`

// TestTheFirstViewAsksAQuestionAndHasThreeWaysOn checks the first view's texts and controls, and leaves the view by a
// new pod, by Escape and by a story. tour_test.go tests the tour.
func TestTheFirstViewAsksAQuestionAndHasThreeWaysOn(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-demo=false")
	p := openPage(t, "about:blank")
	visit := func() {
		p.do(t, looks[0].wear(1), chromedp.Navigate(v.URL))
		p.until(t, `window.listwatch?.player.head > 0`)
	}
	v.createPod(t, "web-1")
	visit()
	p.until(t, `document.documentElement.dataset.first === "asks"`)
	p.none(t, "beside the one change that travels the first view shows", onFirst+`(20)`)
	seen := evaluate[first](t, p, readFirst)
	names := strings.Join(seen.Names, ", ")
	const first = "API server, your controller, other clients, your copy, your code, etcd, history ring"
	if !strings.HasPrefix(names, first) || seen.Size != "32px" || !slices.Contains(seen.Clients, "scheduler") {
		t.Errorf("the first view names %s, and the clients %s, and asks in %s", names, seen.Clients, seen.Size)
	}
	p.until(t, `$picture().shelves.some(({ station, rows }) => station === "indexer"
		&& rows[0]?.key === "default/web-1")`)
	for _, word := range []string{"Kubernetes", "controller", "change"} {
		assert.True(t, strings.Contains(seen.Question, word), "the question lacks %q: %s", word, seen.Question)
	}
	got := strings.Join(seen.Controls, ", ")
	assert.True(t, got == "tour-start, first-create, Copy, watch closed, 410 Gone, 409 Conflict, first-leave",
		"the first view has the controls %s", got)

	p.is(t, "kubectl -s "+v.URL+" run hello --image=example.com/hello", "the command to copy",
		`$("#first .command code").textContent`)
	p.click(t, "#first-create")
	p.until(t, `!document.documentElement.dataset.first && $picture().own?.key === "default/a"`)
	visit()
	p.run(t, `localStorage.clear()`)
	visit()
	p.until(t, `document.documentElement.dataset.first === "asks"`)
	kubectlFor(t, v).Run(t, "run", "hello", "--image=example.com/hello")
	p.until(t, `!document.documentElement.dataset.first && $picture().own?.key === "default/hello"`)
	p.run(t, `localStorage.clear()`)
	visit()
	p.until(t, `document.documentElement.dataset.first === "asks"`)
	p.press(t, kb.Escape)
	p.until(t, `!document.documentElement.dataset.first`)

	visit()
	assert.False(t, evaluate[bool](t, p, `"first" in document.documentElement.dataset`),
		"the first view comes again after it was left")
	p.navigate(t, v.URL+"/?tour=1")
	p.until(t, `$("#first")?.inert === false`)
	p.click(t, `[data-first-story="slow-watcher"]`)
	p.until(t, `!document.documentElement.dataset.first && document.body.dataset.story === "slow-watcher"`)
}
