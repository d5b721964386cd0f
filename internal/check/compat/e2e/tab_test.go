//go:build full

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
)

const goMemory = 96 << 20 // cmd/tab's memory limit, in bytes

// site writes the pages of `make site` and the machine that `make tab` has built, and returns the folder.
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
	page := require.Value(os.ReadFile(first))(t)
	text := strings.Replace(string(page), "<body ",
		fmt.Sprintf("<body data-machine=%q ", strings.TrimSpace(string(size))), 1)
	require.NoError(t, os.WriteFile(first, []byte(text), 0o600))
	return dir
}

// served serves a site from a plain web server and returns its address.
func served(t *testing.T, dir string) string {
	t.Helper()
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(server.Close)
	return server.URL
}

// ours makes the machine's Worker the global variable machine. A message with stall blocks the Worker for that many ms,
// and one with collect collects the Worker's garbage.
const ours = `{
	const [Own, Text] = [Worker, Blob];
	const stall = 'addEventListener("message", ({ data }) => { const end = performance.now() + (data?.stall ?? 0);' +
		'while (performance.now() < end); if (data?.collect) gc(); });';
	Blob = class extends Text {
		constructor(parts, how) { super(how?.type === "text/javascript" ? [...parts, stall] : parts, how); }
	};
	Worker = class extends Own { constructor(url) { super(url); globalThis.machine = this; } };
}`

// runs presses the button that runs the machine and waits until the machine's page shows a moving pod.
func (p *page) runs(t *testing.T, base string) {
	t.Helper()
	p.do(t, before(ours), chromedp.Navigate(base+"/index.html"))
	p.until(t, `window.listwatch && $("#first")?.inert === false`)
	p.is(t, "server null", "before the machine runs",
		`document.body.dataset.host + " " + $("[data-run]").closest("[hidden]")`)
	began := time.Now()
	p.click(t, "[data-run]")
	p.arrives(t)
	p.until(t, `listwatch.picture().moving.length > 0`)
	took := time.Since(began)
	t.Logf("from the click to the first pod that moves: %v", took.Round(time.Millisecond))
	p.until(t, `$text('[data-named="etcd"]') === "in memory"`)
}

// arrives waits until the machine's page has replaced the former one. Evaluations fail while that one unloads.
func (p *page) arrives(t *testing.T) {
	t.Helper()
	program.Eventually(t, patience, func() (bool, string) {
		ctx, cancel := context.WithTimeout(p.ctx, patience)
		defer cancel()
		there, err := chromedp.Run(ctx, chromedp.Evaluate[bool](
			`document.body?.dataset.host === "tab" && window.listwatch?.player.mode === "live"`))
		return there && err == nil, fmt.Sprint("no machine: ", err)
	})
}

// TestAMachineRunsInATab uses a machine in a tab, from a web server and from a folder: the tour, the console, hold and
// step. The page from the folder is on a phone for the tour. The page from the web server also plays a story.
func TestAMachineRunsInATab(t *testing.T) {
	t.Parallel()
	dir := site(t)
	for name, base := range map[string]string{"http": served(t, dir), "file": fileURL(dir)} {
		t.Run(name, func(t *testing.T) {
			p := openPage(t, "about:blank")
			p.runs(t, base)
			if name == "file" {
				p.do(t, look{"phone", 390, 844, "light", "no-preference"}.wear(1))
			}
			p.tourInTab(t)
			if name == "http" {
				p.run(t, `listwatch.stage.scenarios.openStory("two-queues", { played: true })`)
				p.rests(t, 1, "rests")
				p.is(t, "true", "the story is the machine's own", `listwatch.stage.source !== null`)
			}
			p.strike(t, "Escape")
			p.until(t, `!document.body.dataset.story && !document.documentElement.dataset.first`)
			p.do(t, looks[0].wear(1))
			p.createsInConsole(t)
			t.Logf("evicted after %d frames", p.evictsConsole(t))
			p.holdsInTab(t)
		})
	}
}

// tourInTab goes through the whole tour, which the machine in the tab must play.
func (p *page) tourInTab(t *testing.T) {
	t.Helper()
	p.click(t, "#tour-start")
	p.until(t, hurriedTour)
	p.until(t, `/machine/.test($text("#story-state"))`)
	p.click(t, "#story-leave") // on a phone, too, the button is not covered
	p.until(t, `!document.body.dataset.story`)
}

// holdsInTab holds the world, steps by a key, and releases the world.
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

// TestATabHasALife hides a tab, stalls its machine, tries to leave, saves, opens another tab, and restarts the machine.
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
	assert.True(t, quiet == 0, "a hidden tab was sent %d messages in three seconds", quiet)
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
	p.run(t, `other.close(), await listwatch.openRecording(saved)`)
	p.until(t, `document.body.dataset.mode === "replay"`)

	t.Log("it died, says why, and has a button")
	p.run(t, `machine.postMessage(null)`)
	p.until(t, `$("#run").checkVisibility() && $text("#run").includes("has ended")`)
	p.mu.Lock()
	p.complaints = nil // Go logs an error when it exits
	p.mu.Unlock()
	p.click(t, "#run button")
	p.arrives(t)
	p.until(t, `$("#run").hidden`)
}

// TestAReaderInATabThatReadsNothingIsEvicted opens a watch from the page and leaves the response unread. The page must
// receive exactly the bytes that it has granted, the server must close the watch, and Go must keep to its memory limit.
func TestAReaderInATabThatReadsNothingIsEvicted(t *testing.T) {
	t.Parallel()
	p := openPage(t, "about:blank")
	p.runs(t, served(t, site(t)))
	p.strike(t, "Escape")
	p.run(t, `globalThis.came = 0;
		let mine = 0;
		const post = machine.postMessage.bind(machine);
		machine.postMessage = (message, moved) => {
			if (message.url?.endsWith("?watch=true")) mine = message.id;
			post(message, moved);
		};
		machine.addEventListener("message", ({ data }) => { if (data.id === mine) came += data.body?.length ?? 0; });
		globalThis.unread = await listwatchWire.request("/api/v1/namespaces/default/pods?watch=true", {});`)
	p.rate(t, 100)
	p.evicts(t)
	p.passes(t, time.Minute)
	p.rate(t, 0)
	const granted = 16 << 10
	if came, heap := evaluate[int](t, p, `came`), p.heap(t); came != granted || heap > goMemory {
		t.Errorf("the page was sent %d bytes, and granted %d; Go keeps %d", came, granted, heap)
	}
}

// passes waits for d by the page's timers.
func (p *page) passes(t *testing.T, d time.Duration) {
	t.Helper()
	for once := time.Duration(0); d > 0; d -= once {
		once = min(d, 30*time.Second) // within the patience of one call
		p.run(t, `await new Promise((done) => setTimeout(done, %d))`, once.Milliseconds())
	}
}

// heap returns an estimate of Go's heap in the tab, in bytes: four fifths of its size at the next garbage collection.
func (p *page) heap(t *testing.T) int {
	t.Helper()
	return evaluate[int](t, p, `(async () => {
		const text = await (await listwatchWire.request("/metrics", {})).text();
		return Number(text.match(/^go_memstats_next_gc_bytes (.*)$/m)[1]) / 5 * 4 | 0;
	})()`)
}

// TestWithoutAMachineThereAreRecordings opens the page in browsers that cannot run the machine. The page gives the
// reason and shows recordings from its files.
func TestWithoutAMachineThereAreRecordings(t *testing.T) {
	t.Parallel()
	base := served(t, site(t))
	for script, says := range map[string]string{
		"delete globalThis.Worker": "Worker is not defined",
		"globalThis.Worker = class { constructor() { throw new Error('not today') } }": "not today",
	} {
		p := openPage(t, "about:blank")
		p.do(t, before(script), chromedp.Navigate(base+"/index.html?run&tour=0"))
		p.until(t, `$text("#banner p").includes(%q) && $text("#banner p").includes("recordings")`, says)
		p.until(t, `listwatch.player.head > 100 && !listwatch.stage.source`)
	}
}
