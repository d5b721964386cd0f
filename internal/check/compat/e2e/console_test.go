package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"listwatch/internal/check/compat/program"
)

// TestTheConsoleShowsWhatTheWireCarries has the console create a pod, watch, stop reading, and be evicted.
func TestTheConsoleShowsWhatTheWireCarries(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-demo=false", "-flight=off")
	p := openPage(t, v.URL)
	p.live(t, v)
	p.createsInConsole(t)
	t.Logf("evicted after %d frames", p.evictsConsole(t))

	p.run(t, `$("[data-console] textarea").value = "hello"; $("[data-console]").requestSubmit()`)
	p.until(t, `$text("#console-refused").includes("want a method and a path")`)
	p.run(t, `console.error("an error", 42); setTimeout(() => { throw new Error("thrown later") }, 0)`)
	program.Eventually(t, patience, func() (bool, string) { // the browser reports errors with a delay
		p.mu.Lock()
		defer p.mu.Unlock()
		said := strings.Join(p.complaints, "\n")
		if strings.Contains(said, "status of 400") && strings.Contains(said, "an error") &&
			strings.Contains(said, "thrown later") {
			p.complaints = nil
		}
		return p.complaints == nil, "the harness noticed only:\n" + said
	})
}

// asked sends a request from the console and waits until the response has the given status.
func (p *page) asked(t *testing.T, request, status string) {
	t.Helper()
	p.run(t, `$("[data-console] textarea").value = %q; $("#console-head").hidden = true;
		$("[data-console]").requestSubmit()`, request)
	p.until(t, `!$("#console-head").hidden && $text("#console-head").startsWith("HTTP/1.1 %s")`, status)
}

// createsInConsole follows a new pod, and creates it with the console's prepared request of "kubectl run". The response
// must name the pod, and the pod must appear on the stage, in the table and in the informer's store.
func (p *page) createsInConsole(t *testing.T) {
	t.Helper()
	p.pick(t, "#open-console")
	p.until(t, `$("[data-console]").checkVisibility()`)
	name := fmt.Sprintf("pod-%x", rand.Uint32())
	p.run(t, `globalThis.seen = { stage: false, table: false };
		const key = "default/%[1]s";
		const look = () => {
			seen.stage ||= $picture().drawn.some((each) => each.key === key);
			seen.table ||= $text("#records").includes("%[1]s");
			if (!seen.stage || !seen.table) requestAnimationFrame(look);
		};
		look();
		listwatch.follow.set(key);`, name)
	request := evaluate[string](t, p, `[...$("#console-ready").options]
		.find((each) => each.label.includes("run")).value`)
	p.asked(t, strings.ReplaceAll(request, "hello", name), "201 Created")
	p.until(t, `$("[data-console-output]").childElementCount === 1
		&& $text("[data-console-output]").includes("%s")`, name)
	p.until(t, `seen.stage && seen.table`)
	p.until(t, shelved(name))
}

// evictsConsole watches pods in the console, stops reading until the server has closed the watch, reads the rest, and
// returns the number of frames. The page must show the reason.
func (p *page) evictsConsole(t *testing.T) int {
	t.Helper()
	p.asked(t, `GET /api/v1/namespaces/default/pods?watch=true`, "200 OK")
	p.until(t, `$$("[data-watcher]").some((el) => el.textContent.includes($text("#console-state").split(":")[0]))`)
	p.run(t, `globalThis.told = "";
		const sentence = $(".sentence");
		new MutationObserver(() => (told += sentence.textContent)).observe(sentence,
			{ subtree: true, childList: true, characterData: true });`)
	p.click(t, "#console-stall")
	p.until(t, `$("#console-stall").getAttribute("aria-pressed") === "true"`)
	p.rate(t, 50)
	p.evicts(t)
	p.rate(t, 0)
	p.click(t, "#console-stall")
	p.until(t, `$text("#console-state").includes("the server has ended its answer")`)
	p.until(t, `told.includes("does not keep up and is closed")`)
	return evaluate[int](t, p, `Number($text("#console-state").match(/(\d+) piece/)[1])`)
}

// evicts waits until the server has closed a watcher that did not keep up.
func (p *page) evicts(t *testing.T) {
	t.Helper()
	program.Eventually(t, patience, func() (bool, string) {
		n := evaluate[int](t, p, "(async () => ("+asks("GET", "/viz/records?point=WatcherForced",
			"")+").records?.length ?? 0)()")
		return n > 0, "no watcher was closed"
	})
}

// rate sets the traffic to n changes a second.
func (p *page) rate(t *testing.T, n int) {
	t.Helper()
	p.run(t, asks("POST", "/viz/knobs", fmt.Sprintf(`{"name":"traffic.rate","value":"%d"}`, n)))
}

// asks returns a script that sends the program, or the machine in the tab, a request and returns the response's JSON.
func asks(method, path, body string) string {
	return fmt.Sprintf(`await (async () => {
		const body = %q;
		const options = body ? { method: %[2]q, body, headers: { "Content-Type": "application/json" } } : {};
		return (await (globalThis.listwatchWire?.request ?? fetch)(%[3]q, options)).json();
	})()`, body, method, path)
}

// shelved returns an expression that is true when a pod is in the informer's store.
func shelved(name string) string {
	return fmt.Sprintf(`Object.entries(listwatch.state.resources.pods.shelves).some(([name, { rows }]) =>
		name.startsWith("indexer") && rows.some((row) => row.key.endsWith("default/%s")))`, name)
}
