//go:build full

package e2e

import (
	"context"
	"fmt"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// site writes what `make site` does, with the machine that `make tab` has built, and returns the folder.
func site(t *testing.T) string {
	t.Helper()
	dir, built := t.TempDir(), "../../../../bin/tab/"
	export(t, "-export", dir)
	first := filepath.Join(dir, "index.html")
	size, err := os.ReadFile(built + "machine")
	if err == nil {
		err = os.CopyFS(filepath.Join(dir, "machine"), os.DirFS(built+"site"))
	}
	require.NoError(t, err, "make tab builds it")
	page, err := os.ReadFile(first)
	require.NoError(t, err)
	text := strings.Replace(string(page), "<body ",
		fmt.Sprintf("<body data-machine=%q ", strings.TrimSpace(string(size))), 1)
	require.NoError(t, os.WriteFile(first, []byte(text), 0o600))
	return dir
}

// served serves a site as any web server does, and returns its address.
func served(t *testing.T, dir string) string {
	t.Helper()
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(server.Close)
	return server.URL
}

// before runs a script before those of every page that is opened from now on.
func before(script string) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, target, cdppage.AddScriptToEvaluateOnNewDocument,
			cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: script})
		return chromedp.Void{}, err
	}
}

// ours makes the machine's Worker known to the tests, and lets it stand still for so many ms.
const ours = `{
	const [Own, Text] = [Worker, Blob];
	const stall = 'addEventListener("message", ({ data }) => { const end = performance.now() + (data?.stall ?? 0);' +
		'while (performance.now() < end); });';
	Blob = class extends Text {
		constructor(parts, how) { super(how?.type === "text/javascript" ? [...parts, stall] : parts, how); }
	};
	Worker = class extends Own { constructor(url) { super(url); globalThis.machine = this; } };
}`

// runs presses the button that runs the machine, and waits for its page.
func (p *page) runs(t *testing.T, base string) {
	t.Helper()
	p.do(t, before(ours), chromedp.Navigate(base+"/index.html"))
	p.until(t, `window.listwatch && $("#first")?.inert === false`)
	p.is(t, "server null", "before the machine runs",
		`document.body.dataset.host + " " + $("[data-run]").closest("[hidden]")`)
	began := time.Now()
	p.click(t, "[data-run]")
	p.until(t, `document.body?.dataset.host === "tab" && window.listwatch?.player.mode === "live"`)
	p.until(t, `listwatch.picture().moving.length > 0`)
	t.Logf("from the click to the first pod that moves: %v", time.Since(began).Round(time.Millisecond))
}

// asks is a request of the page to the machine in its tab: the answer as JSON.
func asks(method, path, body string) string {
	return fmt.Sprintf(`await (async () => {
		const body = %q;
		const options = body ? { method: %[2]q, body, headers: { "Content-Type": "application/json" } } : {};
		return (await listwatchWire.request(%[3]q, options)).json();
	})()`, body, method, path)
}

// TestAMachineRunsInATab does in a tab, from a web server and from a folder, what the page does with a program: a pod
// of a new name, hold and step. From the server it gives the tour, too, and plays a story.
func TestAMachineRunsInATab(t *testing.T) {
	t.Parallel()
	dir := site(t)
	for name, base := range map[string]string{"http": served(t, dir), "file": fileURL(dir)} {
		t.Run(name, func(t *testing.T) {
			p := openPage(t, "about:blank")
			p.runs(t, base)
			if name == "http" {
				p.tourInTab(t)
				p.run(t, `listwatch.stage.scenarios.openStory("two-queues", { played: true })`)
				p.rests(t, 1, "rests")
				p.is(t, "true", "the story is the machine's own", `listwatch.stage.source !== null`)
			}
			p.strike(t, "Escape")
			p.until(t, `!document.body.dataset.story && !document.documentElement.dataset.first`)
			p.createsInTab(t)
			p.holdsInTab(t)
		})
	}
}

// tourInTab gives the whole tour.
func (p *page) tourInTab(t *testing.T) {
	t.Helper()
	p.click(t, "#tour-start")
	for step := 1; step <= 10; step++ {
		p.stop(t, step)
		if step == 7 {
			p.click(t, "#tour-next")
			p.until(t, `$("#tour-happened").textContent !== ""`)
			p.stop(t, step)
		}
		p.click(t, "#tour-next")
	}
	p.until(t, `document.body.dataset.tour === "end"`)
	p.strike(t, "Escape")
}

// podFromThePage has the page create a pod.
func podFromThePage(name string) string {
	return asks("POST", "/api/v1/namespaces/default/pods", `{"metadata":{"name":"`+name+
		`"},"spec":{"containers":[{"name":"c","image":"example.com/c"}]}}`)
}

// shelved is true when a pod is in the informer's store.
func shelved(name string) string {
	return fmt.Sprintf(`Object.entries(listwatch.state.resources.pods.shelves).some(([name, { rows }]) =>
		name.startsWith("indexer") && rows.some((row) => row.key.endsWith("default/%s")))`, name)
}

// createsInTab creates a pod and finds it in the informer's store, on the stage and in the table.
func (p *page) createsInTab(t *testing.T) {
	t.Helper()
	name := fmt.Sprintf("pod-%x", rand.Uint32())
	p.run(t, `globalThis.seen = { stage: false, table: false };
		const key = "default/%[1]s";
		const look = () => {
			seen.stage ||= $picture().drawn.some((each) => each.key === key);
			seen.table ||= $text("#records").includes("%[1]s");
			if (!seen.stage || !seen.table) requestAnimationFrame(look);
		};
		look();
		listwatch.follow.set(key);
		`+podFromThePage(name), name)
	p.until(t, `seen.stage && seen.table`)
	p.until(t, shelved(name))
}

// holdsInTab holds the world, and moves it on by a key.
func (p *page) holdsInTab(t *testing.T) {
	t.Helper()
	p.run(t, asks("POST", "/viz/hold", `{"do":"hold","unattended":"10m"}`))
	p.until(t, `document.body.dataset.mode === "held"`)
	p.run(t, `listwatch.follow.clear(), $("#create-pod").click()`)
	p.until(t, `$picture().held.length > 0`)
	head := evaluate[int](t, p, `listwatch.player.head`)
	p.strike(t, "h")
	p.until(t, `listwatch.player.head > %d && document.body.dataset.mode === "held"`, head)
	p.run(t, asks("POST", "/viz/hold", `{"do":"release"}`))
	p.until(t, `document.body.dataset.mode === "live"`)
}

// TestATabHasALife: what a tab says and does where a program of its own need not.
func TestATabHasALife(t *testing.T) {
	t.Parallel()
	base := served(t, site(t))
	p := openPage(t, "about:blank")
	p.runs(t, base)
	p.strike(t, "Escape")

	t.Log("hidden, it is sent nothing until it asks again")
	quiet := evaluate[int](t, p, `(async () => {
		const turn = (hidden) => {
			Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
			document.dispatchEvent(new Event("visibilitychange"));
		};
		const pause = (ms) => new Promise((done) => setTimeout(done, ms));
		turn(true);
		await pause(500);
		let heard = 0;
		machine.addEventListener("message", () => heard++);
		await pause(3000);
		setTimeout(turn, 0, false);
		return heard;
	})()`)
	assert.True(t, quiet <= 0, "a hidden tab was sent %d messages in three seconds", quiet)
	head := evaluate[int](t, p, `listwatch.player.head`)
	p.until(t, `listwatch.player.mode === "live" && listwatch.player.head > %d`, head)

	t.Log("it stood still, and says for how long")
	p.run(t, `machine.postMessage({ id: 0, kind: "", stall: 2500 })`)
	p.until(t, `/stopped|stood/.test($text("#banner p"))`)

	t.Log("it asks before it goes, and offers the recording")
	p.is(t, "true", "a reload is asked about", `(() => {
		const going = new Event("beforeunload", { cancelable: true });
		dispatchEvent(going);
		return going.defaultPrevented;
	})()`)
	p.until(t, `$text("#banner p").includes("Save a recording")`)
	p.run(t, `const { createObjectURL } = URL;
		URL.createObjectURL = (file) => { globalThis.saved = file; return createObjectURL.call(URL, file); };`)
	p.pick(t, "#keep")
	p.until(t, `globalThis.saved?.size > 1000`)

	t.Log("another tab is another world")
	p.run(t, `globalThis.other = open("?run&tour=0")`)
	p.until(t, `other.document.body?.dataset.host === "tab" && other.listwatch?.player.mode === "live"`)
	p.until(t, `[document, other.document].every((each) =>
		each.querySelector("#banner p").textContent.includes("a world of its own"))`)
	p.run(t, `other.close(), await listwatch.openRecording(saved)`)
	p.until(t, `document.body.dataset.mode === "replay"`)

	t.Log("it died, says why, and has a button")
	p.run(t, `machine.postMessage(null)`)
	p.until(t, `$("#run").checkVisibility() && $text("#run").includes("has ended")`)
	p.mu.Lock()
	p.complaints = nil // Go's own word on its end
	p.mu.Unlock()
	p.click(t, "#run button")
	p.until(t, `window.listwatch?.player.mode === "live" && document.body.dataset.host === "tab" && $("#run").hidden`)
}

// TestWithoutAMachineThereAreRecordings: a browser that cannot run it is told so, and shown what the files have.
func TestWithoutAMachineThereAreRecordings(t *testing.T) {
	t.Parallel()
	base := served(t, site(t))
	for script, says := range map[string]string{
		"delete globalThis.WebAssembly": "no WebAssembly", "delete globalThis.Worker": "no Worker",
		"globalThis.Worker = class { constructor() { throw new Error('not today') } }": "not today",
	} {
		p := openPage(t, "about:blank")
		p.do(t, before(script), chromedp.Navigate(base+"/index.html?run&tour=0"))
		p.until(t, `$text("#banner p").includes(%q) && $text("#banner p").includes("recordings")`, says)
		p.until(t, `listwatch.player.head > 100 && !listwatch.stage.source`)
	}
}
