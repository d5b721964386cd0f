package e2e

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/takes"
)

// export runs the program with the given flags until it exits. Its exit status must be 0.
func export(t *testing.T, flags ...string) {
	t.Helper()
	cmd, _ := program.VizCommand(t, flags...)
	out, err := cmd.CombinedOutput()
	require.True(t, err == nil, "%v\n%s", err, out)
}

// fileURL returns the file: URL of a path.
func fileURL(file string) string {
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(file)}).String()
}

// TestAnExportNeedsNoProgram reads an export from a folder, and then from a web server below a prefix.
func TestAnExportNeedsNoProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	export(t, "-export", dir)
	p := openPage(t, "about:blank")
	p.do(t, prefers("reduced-motion", "reduce"))
	base := fileURL(dir)
	p.exportedPages(t, dir, base)
	p.do(t, chromedp.Navigate(base+"/index.html?story=slow-watcher&beat=3"))
	p.rests(t, 3, "ready")
	p.strike(t, "ArrowRight")
	assert.EqualSlices(t, nil, p.rests(t, 3, "rests").Found, "contradictions")
	p.exportedTour(t, base)
	p.exportedLeaves(t)
	p.exportedMini(t, base)
	p.exportedSearch(t, base)
	p.stays(t, base)

	server := httptest.NewServer(http.StripPrefix("/a/folder", http.FileServer(http.Dir(dir))))
	defer server.Close()
	base = server.URL + "/a/folder"
	take, _ := takes.Find("ring")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "mine.gz"), take.File(), 0o600))
	p.do(t, chromedp.Navigate(base+"/index.html?take=mine.gz"))
	p.until(t, `window.listwatch?.player.head > 100 && listwatch.player.oldest < listwatch.player.cursor`)
	p.do(t, chromedp.Navigate(base+"/?story=ring-wrap&beat=2"))
	p.rests(t, 2, "ready")
	p.strike(t, "s")
	p.until(t, `$("#notice").textContent.includes("link") && location.href.endsWith("/?story=missed-deletion&beat=2")`)
	p.exportedFrame(t, dir, base)
	p.exportedMini(t, base)
	p.exportedSearch(t, base)
	p.stays(t, base)
}

// stays fails the test if a page has requested an address outside base. Then it clears the list of requests.
func (p *page) stays(t *testing.T, base string) {
	t.Helper()
	p.do(t, chromedp.Navigate("about:blank"))
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, request := range p.requests {
		inItself := request == "about:blank" || strings.HasPrefix(request, "data:font/")
		assert.False(t, !strings.HasPrefix(request, base) && !inItself && !strings.HasSuffix(request, "/favicon.ico"),
			"a page below %s asked for %s", base, request)
	}
	p.requests = []string{"about:blank"}
}

// exportedPages opens one page and one Go source file of each folder, or all of them if FULL is set.
func (p *page) exportedPages(t *testing.T, dir, base string) {
	t.Helper()
	opened := make(map[string]bool)
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		kind := filepath.Dir(name)
		if strings.HasSuffix(name, ".go.html") {
			kind += ".go"
		}
		if err != nil || entry.IsDir() || filepath.Ext(name) != ".html" || opened[kind] && !full {
			return err
		}
		opened[kind] = true
		p.do(t, chromedp.Navigate(base+"/"+name))
		title := evaluate[string](t, p, `document.title && getComputedStyle(document.body).margin === "0px" &&
				globalThis.listwatchWire ? document.title : ""`)
		assert.True(t, strings.Contains(title, "listwatch"), "%s is called %q, or has no style or script", name, title)
		return nil
	})
	require.NoError(t, err)
}

// hurriedTour skips to the end of the tour's current beat, and returns whether the tour is over.
const hurriedTour = `(() => {
	const { dataset, classList } = $("#story");
	if (document.body.dataset.story !== "tour") return false;
	if (dataset.phase !== "busy" && !classList.contains("over")) $("#story-next").click();
	return classList.contains("over");
})()`

// exportedTour skips through the tour. After it, no control that needs the program may be visible.
func (p *page) exportedTour(t *testing.T, base string) {
	t.Helper()
	p.do(t, chromedp.Navigate(base+"/index.html"))
	p.until(t, `$("#first")?.inert === false && window.listwatch?.player.head > 100`)
	p.run(t, `$("#tour-start").click()`)
	p.until(t, hurriedTour)
	shown := evaluate[int](t, p, `$$("[data-program]").filter((el) => el.checkVisibility()).length`)
	assert.True(t, shown == 0, "%d things that need the program are offered", shown)
	p.strike(t, "Escape")
}

// exportedFrame plays a story in a frame of another page. All of it must fit, with the words below the stage.
func (p *page) exportedFrame(t *testing.T, dir, base string) {
	t.Helper()
	const frame = `<link rel="icon" href="data:,">
		<iframe width="640" height="400" src="index.html?story=slow-watcher&embed"></iframe>`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "frame.html"), []byte(frame), 0o600))
	p.do(t, chromedp.Navigate(base+"/frame.html"))
	const at = `frames[0]?.document.body?.dataset.beat === "%d" && frames[0].document.body.dataset.rest === "true"`
	p.until(t, at, 1)
	for beat := 1; beat <= 3; beat++ {
		p.run(t, `frames[0].document.querySelector("#story-next").click()`)
		p.until(t, at, beat)
	}
	p.run(t, `frames[0].document.querySelector("#story-back").click()`)
	p.until(t, at, 2)
	p.none(t, "in a frame", `(({ document: framed, listwatch }) => {
		const [stage, ...words] = ["#stage", "#story-title", "#story-back", "#story-next", "section:not([hidden]) .say"]
			.map((css) => framed.querySelector(css).getBoundingClientRect());
		const { scrollWidth, scrollHeight } = framed.documentElement;
		const covered = words.some((each) => each.top < stage.bottom || each.height === 0);
		return [[scrollWidth > 640 || scrollHeight > 400, "the window scrolls"], [covered, "words not below the stage"],
			[stage.width < 640 || stage.height < 250 || listwatch.picture().texts.length < 10, "a small picture"]]
			.filter(([wrong]) => wrong).map(([, what]) => what);
	})(frames[0])`)
}

// exportedLeaves opens three tabs of the inspector: two that the export contains, and one that needs the program.
func (p *page) exportedLeaves(t *testing.T) {
	t.Helper()
	p.run(t, `listwatch.stage.inspector.inspect({ station: "dispatch", queue: "", subject: "" }, "code")`)
	p.until(t, `$("#leaf figure.decl .l.lit")`)
	p.run(t, `listwatch.stage.inspector.inspect({ station: "dispatch", queue: "", subject: "" }, "state")`)
	p.until(t, `$('#leaf [data-group=station] [data-field=count] td')?.textContent > 0`)
	p.run(t, `listwatch.stage.inspector.inspect({ station: "dispatch", queue: "", subject: "" }, "history")`)
	p.until(t, `$("#leaf").textContent.includes("needs the program")`)
}

// exportedSearch searches for three terms on a book page, and follows two terms' first results. One term has none.
func (p *page) exportedSearch(t *testing.T, base string) {
	t.Helper()
	for _, search := range []struct{ words, leads, there string }{
		{"storeElement", "/book/docs/OLD-NAMES.html#", `$(":target")?.textContent.includes("storeElement")`},
		{"zeppelin", "", ""},
		{"watcher close due to unresponsiveness", "/index.html?story=slow-watcher",
			`document.body?.dataset.story === "slow-watcher"`},
	} {
		p.do(t, chromedp.Navigate(base+"/book/06-cacher.html"))
		p.searched(t, search.words, search.leads)
		if search.leads != "" {
			p.until(t, search.there)
		}
	}
}

// searched types words into the search of a book page, and follows the first result, which must contain leads. If leads
// is "", the search must find nothing.
func (p *page) searched(t *testing.T, words, leads string) {
	t.Helper()
	p.until(t, `$("[data-search]")`)
	p.strike(t, "/")
	p.until(t, `document.activeElement.matches("[data-search]")`)
	p.run(t, `(field => (field.value = %q, field.dispatchEvent(new Event("input"))))($("[data-search]"))`, words)
	if leads == "" {
		p.until(t, `$("#found").checkVisibility() && $("#found").textContent.startsWith("No page")`)
		return
	}
	p.until(t, `$("[data-search-result]")?.href.includes(%q) && found.scrollWidth <= found.clientWidth`, leads)
	// Scripts fail while a page unloads, so the test catches the click and navigates itself.
	p.run(t, `$("[data-search-result]").addEventListener("click", (event) => {
		event.preventDefault();
		globalThis.followed = event.currentTarget.href;
	});
	$("[data-search]").dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }))`)
	p.do(t, chromedp.Navigate(evaluate[string](t, p, `globalThis.followed ?? ""`)))
}

// exportedMini steps through a chapter's mini-stage.
func (p *page) exportedMini(t *testing.T, base string) {
	t.Helper()
	p.do(t, chromedp.Navigate(base+"/book/06-cacher.html"))
	const shows = `(() => {
		const [mini, now] = [$("#mini"), $("#mini .steps li[aria-current]")];
		return mini.dataset.shown === now.dataset.seq && mini.dataset.step === "%d";
	})()`
	p.until(t, shows, 1)
	for step := 2; step <= 3; step++ {
		p.run(t, `$("#mini .on").click()`)
		p.until(t, shows, step)
	}
}
