//go:build full

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
)

// firefox is a tab of Firefox, driven over WebDriver BiDi. One goroutine uses it.
type firefox struct {
	wire       *websocket.Conn
	commands   int
	tab        string
	complaints []string // errors on the console
}

// bidi is a message from Firefox. Responses have an ID, events have a Method.
type bidi struct {
	ID             int
	Method         string
	Error, Message string
	Result         struct {
		Contexts         []struct{ Context string }
		Type             string
		Result           struct{ Value any }
		ExceptionDetails struct{ Text string }
	}
	Params struct{ Level, Text string }
}

var listening = regexp.MustCompile(`WebDriver BiDi listening on (ws://\S+)`)

// openFirefox starts a Firefox with a profile of its own, for as long as the test runs.
func openFirefox(t *testing.T) *firefox {
	t.Helper()
	cmd := exec.Command("firefox-esr", "--headless", "--no-remote", "--profile", t.TempDir(), "--width", "1600",
		"--height", "1000", "--remote-debugging-port", "0")
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	p := program.Start(t, cmd)
	var address []string
	program.Eventually(t, patience, func() (bool, string) {
		address = listening.FindStringSubmatch(p.Stderr.String())
		return address != nil, p.Stderr.String()
	})
	wire, _, err := websocket.DefaultDialer.DialContext(t.Context(), address[1]+"/session", nil)
	require.NoError(t, err)
	t.Cleanup(func() { wire.Close() })
	f := &firefox{wire: wire}
	f.call(t, "session.new", map[string]any{"capabilities": map[string]any{}})
	f.call(t, "session.subscribe", map[string]any{"events": []string{"log.entryAdded"}})
	f.tab = f.call(t, "browsingContext.getTree", map[string]any{}).Result.Contexts[0].Context
	return f
}

// call sends a command and returns its response. It collects the console errors that arrive meanwhile.
func (f *firefox) call(t *testing.T, method string, params map[string]any) bidi {
	t.Helper()
	f.commands++
	err := f.wire.WriteJSON(map[string]any{"id": f.commands, "method": method, "params": params})
	for err == nil {
		var m bidi
		_ = f.wire.SetReadDeadline(time.Now().Add(patience))
		if err = f.wire.ReadJSON(&m); err != nil {
			break
		}
		if m.Method == "log.entryAdded" && m.Params.Level == "error" {
			f.complaints = append(f.complaints, m.Params.Text)
		}
		if m.Method == "" && m.ID == f.commands {
			require.True(t, m.Error == "", "%s: %s: %s", method, m.Error, m.Message)
			return m
		}
	}
	t.Fatalf("%s: %v", method, err)
	return bidi{}
}

// navigate goes to an address and waits until the page has loaded.
func (f *firefox) navigate(t *testing.T, url string) {
	t.Helper()
	f.call(t, "browsingContext.navigate", map[string]any{"context": f.tab, "url": url, "wait": "complete"})
}

// run runs statements in the page and returns their result, converted to a string, as JSON.
func (f *firefox) run(t *testing.T, statements string) string {
	t.Helper()
	m := f.call(t, "script.evaluate", map[string]any{
		"expression": "(async () => {" + eyes + statements + "})().then(String)", "awaitPromise": true,
		"target": map[string]any{"context": f.tab}})
	require.True(t, m.Result.Type == "success", "run %.200s: %s", statements, m.Result.ExceptionDetails.Text)
	text, _ := json.Marshal(m.Result.Result.Value)
	return string(text)
}

// until waits until an expression is true.
func (f *firefox) until(t *testing.T, expression string) {
	t.Helper()
	program.Eventually(t, 3*patience, func() (bool, string) {
		return f.run(t, "return Boolean("+expression+")") == `"true"`, expression
	})
}

// TestFirefoxShowsItToo opens the stage, the tour, a story, a chapter and the machine in a tab in Firefox.
func TestFirefoxShowsItToo(t *testing.T) {
	t.Parallel()
	v := startViz(t)
	base := served(t, site(t))
	sit(t)
	f := openFirefox(t)
	const moves = `window.listwatch?.player.mode === "live" && $picture().moving.length > 0`
	f.navigate(t, v.URL+"/?tour=0")
	f.until(t, moves)

	f.navigate(t, v.URL+"/?tour=1")
	f.until(t, `$("#first")?.inert === false`)
	f.run(t, `$("#tour-start").click()`)
	f.until(t, hurriedTour)

	f.navigate(t, v.URL+"/?story=ring-wrap&beat=2")
	const rests = `document.body.dataset.rest === "true" && $("#story").dataset.phase === %q`
	f.until(t, fmt.Sprintf(rests, "ready"))
	f.run(t, `document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }))`)
	f.until(t, fmt.Sprintf(rests, "rests"))

	f.navigate(t, v.URL+"/book/06-cacher")
	f.until(t, `$("#mini")?.dataset.shown`)

	f.navigate(t, base+"/index.html")
	f.until(t, `window.listwatch && $("#first")?.inert === false`)
	began := time.Now()
	f.run(t, `$("[data-run]").click()`)
	f.until(t, `document.body?.dataset.host === "tab" && `+moves)
	t.Logf("from the click to the first pod that moves: %v", time.Since(began).Round(time.Millisecond))
	f.run(t, `$("#open-console").click();
		$("[data-console] textarea").value = $("#console-ready [value^=POST]").value.replaceAll("hello", "fox");
		$("[data-console]").requestSubmit();`)
	f.until(t, `$text("#console-head").startsWith("HTTP/1.1 201")`)
	f.until(t, shelved("fox"))
	assert.EqualSlices(t, nil, f.complaints, "on the console")
}
