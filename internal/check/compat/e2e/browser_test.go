package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
)

// page is one tab of the tests' Chromium, with a profile and a window of its own. When the test ends, the page must
// have made requests to loopback only and have logged no error or warning on its console.
type page struct {
	ctx context.Context

	mu         sync.Mutex // guards the fields below
	requests   []string   // URLs
	complaints []string   // errors, warnings and exceptions on the console

	themed int // owned by the test: how many times inEveryTheme has tried one theme only
}

// chromium starts the browser that all tests share. Its context stays open until closeChromium.
var chromium = sync.OnceValues(func() (context.Context, error) {
	allocator, stopAllocator := chromedp.NewExecAllocator(context.Background(), browserOptions()...)
	ctx, stopBrowser := chromedp.NewContext(allocator)
	closeChromium = func() error {
		closing, cancel := context.WithTimeout(ctx, program.HangsAfter)
		defer cancel()
		defer stopAllocator()
		return chromedp.Cancel(closing)
	}
	// The browser runs until this context ends, so the context has no deadline. Only the start has a deadline.
	defer time.AfterFunc(patience, stopBrowser).Stop()
	return ctx, chromedp.Do(ctx)
})

// closeChromium ends the browser if it was started. TestMain calls it after the last test.
var closeChromium = func() error { return nil }

// At most two tests have pages at once: with more pages, the browser would draw frames late. A test takes one seat for
// all its pages. sit and alone send to seats, and their cleanups receive. seated names the tests that have seats.
var (
	seats  = make(chan bool, 2)
	seated sync.Map   // by test name
	frames sync.Mutex // alone locks it before it takes all seats
)

// sit waits for a seat, unless the test has one already, and gives it back when t ends.
func sit(t testing.TB) {
	name, _, _ := strings.Cut(t.Name(), "/")
	if _, has := seated.Load(name); has {
		return
	}
	seats <- true
	seated.Store(name, true)
	t.Cleanup(func() {
		seated.Delete(name)
		<-seats
	})
}

// alone waits until no other page is open and keeps others away until t ends. Tests that look at every frame use it.
func alone(t testing.TB) {
	frames.Lock()
	t.Cleanup(frames.Unlock)
	for range cap(seats) {
		seats <- true
	}
	seated.Store(t.Name(), true)
	t.Cleanup(func() {
		seated.Delete(t.Name())
		for range cap(seats) {
			<-seats
		}
	})
}

// openPage shows url in a page, without the tour that a first visit offers.
func openPage(t testing.TB, url string) *page {
	t.Helper()
	browser, err := chromium()
	require.NoError(t, err, "start Chromium")
	return openPageOf(t, browser, url)
}

// openPageOf shows url in a page of the given browser, without the tour.
func openPageOf(t testing.TB, browser context.Context, url string) *page {
	t.Helper()
	sit(t)
	ctx, closePage := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	p := &page{ctx: ctx}
	t.Cleanup(func() {
		p.verify(t)
		assert.NoError(t, chromedp.Cancel(ctx), "close the page")
		closePage()
	})
	late := time.AfterFunc(patience, closePage)
	err := chromedp.Listen(ctx, p.listen)
	late.Stop()
	require.NoError(t, err, "open a page")
	front := emulation.SetFocusEmulationEnabledParams{Enabled: true} // the page acts as if its window had the focus
	p.do(t, tells(emulation.SetFocusEmulationEnabled, front), chromedp.Navigate(untoured(t, url)))
	return p
}

// tells returns a step that sends the browser a command and ignores the command's result.
func tells[P, R any](command cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, target, command, params)
		return chromedp.Void{}, err
	}
}

// before returns a step after which every new document runs script ahead of its own scripts.
func before(script string) chromedp.Action[chromedp.Void] {
	added := cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: script}
	return tells(cdppage.AddScriptToEvaluateOnNewDocument, added)
}

// pick opens the menu that contains a button and clicks the button.
func (p *page) pick(t *testing.T, button string) {
	t.Helper()
	p.run(t, `$(%q).closest("[popover]").showPopover()`, button)
	p.do(t, chromedp.Click(chromedp.CSS(button)))
}

// untoured adds tour=0 to an address of the stage that has no tour parameter. Other addresses stay as they are.
func untoured(t testing.TB, address string) string {
	t.Helper()
	u := require.Value(url.Parse(address))(t)
	if query := u.Query(); u.Host != "" && strings.Trim(u.Path, "/") == "" && !query.Has("tour") {
		query.Set("tour", "0")
		u.Path, u.RawQuery = "/", query.Encode()
	}
	return u.String()
}

// browserOptions returns options for a headless Chromium that also runs without a GPU and as root. This Chromium
// reaches no host but 127.0.0.1.
func browserOptions() []chromedp.ExecAllocatorOption {
	options := append([]chromedp.ExecAllocatorOption{}, chromedp.DefaultExecAllocatorOptions[:]...)
	options = append(options, chromedp.DisableGPU, chromedp.WindowSize(1600, 1000),
		chromedp.Flag("js-flags", "--expose-gc"), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-quic", true), chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
	)
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	return options
}

// listen collects requests and complaints. The loop that reads the browser's messages calls it.
func (p *page) listen(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch event := event.(type) {
	case *network.EventRequestWillBeSent:
		p.requests = append(p.requests, event.Request.URL)
	case *network.EventWebSocketCreated:
		p.requests = append(p.requests, event.URL)
	case *runtime.EventExceptionThrown:
		p.complaints = append(p.complaints, "exception: "+exceptionText(event.ExceptionDetails))
	case *log.EventEntryAdded:
		if gone := strings.Contains(event.Entry.Text, "410 (Gone)") && strings.Contains(event.Entry.URL,
			"/viz/"); gone {
			return // a record that the page requests may have left the log
		}
		if event.Entry.Level == log.EntryLevelError || event.Entry.Level == log.EntryLevelWarning {
			p.complaints = append(p.complaints, fmt.Sprintf("%s: %s %s", event.Entry.Level, event.Entry.Text,
				event.Entry.URL))
		}
	case *runtime.EventConsoleAPICalled:
		if event.Type == runtime.ConsoleAPICalledTypeError || event.Type == runtime.ConsoleAPICalledTypeWarning ||
			event.Type == runtime.ConsoleAPICalledTypeAssert {
			text := string(event.Type) + ":"
			for _, arg := range event.Args {
				text += " " + string(arg.Value) + arg.Description
			}
			p.complaints = append(p.complaints, text)
		}
	}
}

func exceptionText(details *runtime.ExceptionDetails) string {
	if details.Exception != nil {
		return details.Exception.Description
	}
	return details.Text
}

// verify fails the test for complaints on the console, for requests beyond loopback, and if there was no request.
func (p *page) verify(t testing.TB) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	assert.EqualSlices(t, nil, p.complaints, "on the console")
	assert.True(t, len(p.requests) != 0, "the browser made no request, or the test did not see it")
	for _, request := range p.requests {
		assert.True(t, loopback(request), "the page requested %s", request)
	}
}

// loopback reports whether a request stays on this machine.
func loopback(request string) bool {
	u, err := url.Parse(request)
	if err != nil {
		return false
	}
	if u.Scheme == "data" || u.Scheme == "blob" || u.Scheme == "about" || u.Scheme == "file" {
		return true
	}
	addr, err := netip.ParseAddr(u.Hostname())
	return err == nil && addr.IsLoopback()
}

// do runs steps in the page.
func (p *page) do(t testing.TB, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	require.NoError(t, chromedp.Do(ctx, steps...))
}

// eyes defines JavaScript helpers. evaluate puts it before each expression.
const eyes = `
	globalThis.$ ??= (css) => document.querySelector(css);
	globalThis.$$ ??= (css) => [...document.querySelectorAll(css)];
	globalThis.$text ??= (css) => $(css)?.textContent ?? "";
	globalThis.$frames ??= async (n) => { while (n-- > 0) await new Promise(requestAnimationFrame); };
	globalThis.$picture ??= () => listwatch.picture({ texts: false });
	globalThis.$meet ??= (a, b) => { // whether two texts overlap by more than 3 px and a fifth of the smaller height
		const between = Math.max(3, Math.min(a.h, b.h) / 5);
		const across = a.x < b.x + b.w - 1 && b.x < a.x + a.w - 1;
		return across && a.y < b.y + b.h - between && b.y < a.y + a.h - between;
	};
`

// evaluate returns the value of a JavaScript expression in the page. It awaits promises.
func evaluate[T any](t testing.TB, p *page, expression string) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](eyes+expression, chromedp.EvalAwaitPromise))
	require.NoError(t, err, "evaluate %.200s", expression)
	return value
}

// run runs statements in the page. They may use await.
func (p *page) run(t testing.TB, statements string, args ...any) {
	t.Helper()
	evaluate[bool](t, p, "(async () => {"+script(statements, args)+"})().then(() => true)")
}

// script formats args into a script.
func script(format string, args []any) string {
	if len(args) == 0 {
		return format
	}
	return fmt.Sprintf(format, args...)
}

// is fails the test unless the expression's value, as text, equals want.
func (p *page) is(t testing.TB, want, what, expression string, args ...any) {
	t.Helper()
	assert.Equal(t, want, evaluate[string](t, p, "(async () => String("+script(expression, args)+"))()"), what)
}

// becomes waits until the expression's value, as text, equals want.
func (p *page) becomes(t testing.TB, want, expression string) {
	t.Helper()
	program.Eventually(t, patience, func() (bool, string) {
		got := evaluate[string](t, p, "String("+expression+")")
		return got == want, fmt.Sprintf("%s is %q, want %q", expression, got, want)
	})
}

// until waits until an expression is true.
func (p *page) until(t testing.TB, expression string, args ...any) {
	t.Helper()
	expression = script(expression, args)
	program.Eventually(t, patience, func() (bool, string) {
		if evaluate[bool](t, p, "Boolean("+expression+")") {
			return true, ""
		}
		return false, expression + "\ninspector: " + evaluate[string](t, p,
			`$("#inspector:not([hidden])")?.innerText.slice(0, 1500) ?? "closed"`)
	})
}

// none fails the test unless the expression's value is an empty list.
func (p *page) none(t testing.TB, what, expression string, args ...any) {
	t.Helper()
	found := evaluate[[]string](t, p, script(expression, args))
	assert.True(t, len(found) == 0, "%s: %d: %s", what, len(found), strings.Join(found[:min(len(found), 10)], "; "))
}

// click clicks the elements one after the other, waiting for each to appear.
func (p *page) click(t testing.TB, selectors ...string) {
	t.Helper()
	for _, selector := range selectors {
		p.do(t, chromedp.Click(chromedp.CSS(selector)))
	}
}

// press sends one key to the page.
func (p *page) press(t testing.TB, key string) {
	t.Helper()
	p.do(t, chromedp.KeyEvent(key))
}

// strike sends the page a key while no element has the focus.
func (p *page) strike(t testing.TB, key string) {
	t.Helper()
	p.run(t, `document.activeElement?.blur?.();
		document.body.dispatchEvent(new KeyboardEvent("keydown", { key: %q, bubbles: true, cancelable: true }))`, key)
}

// prefers returns a step that sets the media feature prefers-<what>.
func prefers(what, value string) chromedp.Action[chromedp.Void] {
	return tells(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-" + what, Value: value}}})
}

// navigate goes to another address, without the tour, as openPage does.
func (p *page) navigate(t *testing.T, url string) {
	t.Helper()
	p.do(t, chromedp.Navigate(untoured(t, url)))
}
