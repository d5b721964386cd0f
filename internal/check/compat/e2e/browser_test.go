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
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
)

// page is one tab of the tests' Chromium, with a profile and a window of its own. When the test ends it must have asked
// loopback only, and have complained of nothing on its console.
type page struct {
	ctx context.Context

	mu         sync.Mutex // guards the fields below
	requests   []string   // URLs
	complaints []string   // errors, warnings and exceptions on the console

	themed int // owned by the test: how often one theme was looked at
}

// chromium starts the browser, for all tests; its context is never done before closeChromium.
var chromium = sync.OnceValues(func() (context.Context, error) {
	allocator, stopAllocator := chromedp.NewExecAllocator(context.Background(), browserOptions()...)
	ctx, stopBrowser := chromedp.NewContext(allocator)
	closeChromium = func() error {
		closing, cancel := context.WithTimeout(ctx, program.HangsAfter)
		defer cancel()
		defer stopAllocator()
		return chromedp.Cancel(closing)
	}
	// Its life is that of this context: no deadline here, but an end to the patience.
	defer time.AfterFunc(patience, stopBrowser).Stop()
	return ctx, chromedp.Do(ctx)
})

// closeChromium ends the browser if it was started. TestMain calls it after the last test.
var closeChromium = func() error { return nil }

// Two pages are open at once at most: more would draw their frames late. A test that opens several of its own has the
// seat of one. seats is sent to by who sits down and received from by who gets up; seated guards against a test that
// waits for itself.
var (
	seats  = make(chan bool, 2)
	seated sync.Map   // by the name of the test
	frames sync.Mutex // held by who wants all seats, before it sits
)

// sit waits for a seat, and gives it back when t ends.
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

// alone waits until no other page is open, and keeps others away until t ends: for what looks at every frame.
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

// openPage shows url in a page, without the tour that a first visit opens.
func openPage(t testing.TB, url string) *page {
	t.Helper()
	sit(t)
	browser, err := chromium()
	require.NoError(t, err, "start Chromium")
	ctx, closePage := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	p := &page{ctx: ctx}
	t.Cleanup(func() {
		p.verify(t)
		assert.NoError(t, chromedp.Cancel(ctx), "close the page")
		closePage()
	})
	late := time.AfterFunc(patience, closePage)
	err = chromedp.Listen(ctx, p.listen)
	late.Stop()
	require.NoError(t, err, "open a page")
	p.do(t, focused, chromedp.Navigate(untoured(t, url)))
	return p
}

// focused lets a page believe that its window is the one in front.
func focused(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
	_, err := cdp.Call(ctx, target, emulation.SetFocusEmulationEnabled,
		emulation.SetFocusEmulationEnabledParams{Enabled: true})
	return chromedp.Void{}, err
}

// pick opens the list in which a button stands, and presses it there.
func (p *page) pick(t *testing.T, button string) {
	t.Helper()
	p.run(t, `$(%q).closest("[popover]").showPopover()`, button)
	p.do(t, chromedp.Click(chromedp.CSS(button)))
}

// untoured returns the address of the stage with the wish for no tour in it, unless it has one; every other address as
// it is.
func untoured(t testing.TB, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	if query := u.Query(); u.Host != "" && strings.Trim(u.Path, "/") == "" && !query.Has("tour") {
		query.Set("tour", "0")
		u.Path, u.RawQuery = "/", query.Encode()
	}
	return u.String()
}

// browserOptions are what a headless Chromium needs in a container, as root, on a machine without GPU. No name but
// loopback's address can be resolved.
func browserOptions() []chromedp.ExecAllocatorOption {
	options := append([]chromedp.ExecAllocatorOption{}, chromedp.DefaultExecAllocatorOptions[:]...)
	options = append(options, chromedp.DisableGPU, chromedp.WindowSize(1600, 1000),
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("js-flags", "--expose-gc"),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
	)
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	return options
}

// listen notes what the tests judge the page by. It runs in the loop that reads the browser's messages.
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
			return // records that leave the log while the page asks for them are part of its list-watch
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

// verify fails the test for everything that the page should not have done.
func (p *page) verify(t testing.TB) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, complaint := range p.complaints {
		t.Errorf("on the console: %s", complaint)
	}
	assert.True(t, len(p.requests) != 0, "the browser made no request: nothing was listened to")
	for _, request := range p.requests {
		assert.True(t, loopback(request), "the page asked %s", request)
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

// eyes are names that every script of these tests may use.
const eyes = `
	globalThis.$ ??= (css) => document.querySelector(css);
	globalThis.$$ ??= (css) => [...document.querySelectorAll(css)];
	globalThis.$text ??= (css) => $(css)?.textContent ?? "";
	globalThis.$frames ??= async (n) => { while (n-- > 0) await new Promise(requestAnimationFrame); };
	globalThis.$picture ??= () => listwatch.picture({ texts: false });
`

// evaluate returns the value of a JavaScript expression in the page; of a promise, what it is fulfilled with.
func evaluate[T any](t testing.TB, p *page, expression string) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](eyes+expression, chromedp.EvalAwaitPromise))
	require.NoError(t, err, "evaluate %.200s", expression)
	return value
}

// run runs statements in the page, which may await something.
func (p *page) run(t testing.TB, statements string, args ...any) {
	t.Helper()
	evaluate[bool](t, p, "(async () => {"+script(statements, args)+"})().then(() => true)")
}

// script puts values into a script.
func script(format string, args []any) string {
	if len(args) == 0 {
		return format
	}
	return fmt.Sprintf(format, args...)
}

// is fails the test unless an expression has a value as text.
func (p *page) is(t testing.TB, want, what, expression string, args ...any) {
	t.Helper()
	assert.Equal(t, want, evaluate[string](t, p, "(async () => String("+script(expression, args)+"))()"), what)
}

// becomes waits until an expression has a value as text.
func (p *page) becomes(t testing.TB, want, expression string, args ...any) {
	t.Helper()
	expression = script(expression, args)
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

// none fails the test for each thing that a script has found.
func (p *page) none(t testing.TB, what, expression string, args ...any) {
	t.Helper()
	if found := evaluate[[]string](t, p, script(expression, args)); len(found) > 0 {
		t.Errorf("%s: %d: %s", what, len(found), strings.Join(found[:min(len(found), 10)], "; "))
	}
}

// click clicks one element after the other, each when it is there.
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

// strike is a key with nothing focused that would take it.
func (p *page) strike(t testing.TB, key string) {
	t.Helper()
	p.run(t, `document.activeElement?.blur?.();
		document.body.dispatchEvent(new KeyboardEvent("keydown", { key: %q, bubbles: true, cancelable: true }))`, key)
}

// prefers makes the browser say what its user prefers.
func prefers(what, value string) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-" + what, Value: value}}})
		return chromedp.Void{}, err
	}
}

// navigate leaves for another address, as openPage does.
func (p *page) navigate(t *testing.T, url string) {
	t.Helper()
	p.do(t, chromedp.Navigate(untoured(t, url)))
}
