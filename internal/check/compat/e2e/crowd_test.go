package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/eventually"
	"listwatch/internal/check/require"
)

// watches opens a watch of pods under the given User-Agent and returns its stream.
func (v *viz) watches(t *testing.T, client *http.Client, agent, query string) io.ReadCloser {
	t.Helper()
	r := require.Value(http.NewRequestWithContext(t.Context(), "GET", v.URL+"/api/v1/pods?watch=1&"+query, nil))(t)
	r.Header.Set("User-Agent", agent)
	answer := require.Value(client.Do(r))(t)
	require.Equal(t, http.StatusOK, answer.StatusCode, agent)
	return answer.Body
}

// TestAThousandClientsAreDots connects a thousand clients, one of which does not read, and counts their dots.
func TestAThousandClientsAreDots(t *testing.T) {
	const many = 1000
	v := startViz(t, "-demo=false", "-controllers=false") // the controllers would change the pods again
	p := openPage(t, v.URL)
	p.live(t, v)
	one := &http.Client{Transport: &http.Transport{ // a small buffer soon fills when nothing reads
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			if err == nil {
				err = conn.(*net.TCPConn).SetReadBuffer(4096)
			}
			return conn, err
		}}}
	var readers sync.WaitGroup
	var open []io.Closer
	t.Cleanup(func() {
		for _, body := range open {
			assert.NoError(t, body.Close())
		}
		readers.Wait()
	})
	for i := range many - 1 {
		body := v.watches(t, http.DefaultClient, "reader", fmt.Sprintf("fieldSelector=spec.nodeName%%3Dnode-%d", i))
		open = append(open, body)
		readers.Go(func() { _, _ = io.Copy(io.Discard, body) }) // ends when body is closed
	}
	open = append(open, v.watches(t, one, "deaf", ""))
	before := evaluate[int](t, p, `$picture().crowd.n`)
	p.until(t, `$picture().crowd.waiting === 0 && listwatch.player.behind() === 0 && $picture().crowd.n >= %d`, many)
	n := evaluate[int](t, p, `$picture().crowd.n`)
	assert.True(t, n >= before && n < many+10, "%d dots", n)
	p.is(t, "true", "most clients have no lane in the document", `$$("[data-watcher]").length <= 32`)
	p.is(t, fmt.Sprintf("%d clients: all keep up", n), "the strip says", `$text("[data-text='crowd.says']")`)
	for _, dot := range []string{`.find(([, { texts }]) => texts.WireOpened?.agent === "deaf")`, `[500]`} {
		p.run(t, `({ scene } = listwatch.stage);
			Object.assign(scene, { front: scene.crowd.dots`+dot+`[0], stale: true })`)
		p.until(t, `listwatch.state.resources.pods.subjects[scene.front].counts.WatcherLookedAt === 1`)
	}

	logged := func(query string) bool { // the page may show the record later
		var told struct{ Records []json.RawMessage }
		v.Get(t, "/viz/records?resource=pods&point="+query, &told)
		return len(told.Records) > 0
	}
	wide := strings.Repeat("·", 20_000)
	until := func(point string) { // creates pods no faster than the informer reads, or the server would evict it, too
		for i := 0; i < 400 && !logged(point); i++ {
			name := fmt.Sprintf("%s-%d", strings.ToLower(point), i)
			pod := fmt.Sprintf(`{"metadata":{"name":%q,"annotations":{"x":%q}},"spec":{"containers":`+
				`[{"name":"c","image":"c"}]}}`, name, wide)
			answer := require.Value(http.Post(v.URL+"/api/v1/namespaces/default/pods", "application/json",
				strings.NewReader(pod)))(t)
			require.NoError(t, answer.Body.Close())
			require.Equal(t, http.StatusCreated, answer.StatusCode)
			eventually.Holds(t, name, func() bool { return logged("IndexerUpdated&key=default/" + name) })
		}
		require.True(t, logged(point), point)
	}
	p.run(t, `globalThis.red = 0;
		const look = () => { red = Math.max(red, $picture().crowd.closed); requestAnimationFrame(look); };
		look();`)
	until("ResultBlocked")
	p.until(t, `$picture().crowd.full === 1`)
	p.is(t, fmt.Sprintf("1 full · %d go on, ≤ 0.1 s late", n-1), "it says to those who listen",
		`$("#crowd").getAttribute("aria-label")`)
	p.run(t, `const { x, y, width, height } = $("#crowd .full").getBoundingClientRect();
		$("#crowd .wall").dispatchEvent(new MouseEvent("click",
			{ bubbles: true, clientX: x + width / 2, clientY: y + height / 2 }));`)
	p.until(t, `$$("#watchers .lane:not(.over) > .name").some((el) => el.textContent.startsWith("deaf"))`)
	until("WatcherForced")
	p.until(t, `red === 1 && $picture().crowd.n === %d`, n-1)
	p.until(t, `$picture().crowd.full === 0`) // a client that reads may have been full for a moment
	const evicted = `$$("#watchers .lane.closed:not(.over)").map((el) => [".name", ".has"].map((css) =>
		el.querySelector(css).textContent).join(": ")).join()`
	p.is(t, "true", "the lane of the evicted client is still there", `/^deaf[^:]*: evicted, \d/.test(`+evicted+`)`)
	p.is(t, fmt.Sprintf("1 closed · %d go on, ≤ 0.1 s late", n-1), "the strip says",
		`$text("[data-text='crowd.says']")`)
	p.run(t, `$("#crowd").dispatchEvent(new MouseEvent("click", { bubbles: true })), await $frames(2)`)
	p.is(t, "1", "the lanes and dots of evicted clients", `$$("#watchers .lane.closed").length`)
	p.run(t, `$("[data-station=ring]").dispatchEvent(new MouseEvent("click", { bubbles: true })), await $frames(2)`)
	p.is(t, "0 0 ", "they are gone after a click elsewhere, and the strip's text has its own width",
		`[$$("#watchers .lane.closed").length, $picture().crowd.closed,
			$("[data-text='crowd.says']").getAttribute("textLength")].join(" ")`)
}
