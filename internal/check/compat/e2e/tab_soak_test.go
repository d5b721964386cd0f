//go:build full && linux

package e2e

import (
	"context"
	"fmt"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/systeminfo"
	"github.com/chromedp/chromedp"
)

const (
	soak        = 10 * time.Minute
	rendererMay = 1.25 // times what it had after the first minute: a leak would be more
)

// TestATabStaysSmall lets the demo run in a tab for ten minutes, then a hundred changes a second for one: the renderer
// has grown little since the first minute, Go's heap keeps to its limit, nothing is lost and no promise broken.
func TestATabStaysSmall(t *testing.T) {
	alone(t)
	p := openPage(t, "about:blank")
	p.runs(t, served(t, site(t)))
	p.strike(t, "Escape")
	p.passes(t, time.Minute)
	first := p.renderer(t)
	p.passes(t, soak-time.Minute)
	last, heap := p.renderer(t), p.heap(t)
	cost := evaluate[frameCost](t, p, `listwatch.cost()`)
	t.Logf("renderer: %d MB after the first minute, %d MB after %v; Go keeps %d MB; frames: %+v", first>>20, last>>20, soak,
		heap>>20, cost.Gap)
	assert.False(t, float64(last) > rendererMay*float64(first) || heap > goMemory, "it has grown")

	written := func() int {
		return evaluate[int](t, p, "(async () => ("+asks("GET", "/viz/knobs", "")+").traffic.written)()")
	}
	before := written()
	p.rate(t, 100)
	p.passes(t, time.Minute)
	t.Logf("%d changes in a minute", written()-before)
	p.rate(t, 0)
	p.until(t, `listwatch.player.mode === "live" && listwatch.player.lag() < 1000`)
	p.is(t, "0 0", "records lost, and promises broken", `await (async () => {
		const { rules } = `+asks("GET", "/viz/rules", "")+`;
		return listwatch.state.lost + " " + rules.filter((each) => each.count > 0).length;
	})()`)
}

var resident = regexp.MustCompile(`VmRSS:\s+(\d+) kB`)

// renderer returns how many bytes the largest renderer has in memory: the page's, its Worker included.
func (p *page) renderer(t *testing.T) (most int) {
	t.Helper()
	p.do(t, func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, target, heapprofiler.CollectGarbage, cdp.Empty{}) // what is garbage does not count
		return chromedp.Void{}, err
	})
	processes, err := chromedp.CallBrowser(p.ctx, systeminfo.GetProcessInfo, cdp.Empty{})
	require.NoError(t, err)
	for _, each := range processes.ProcessInfo {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", int(each.ID)))
		if found := resident.FindSubmatch(status); each.Type == "renderer" && err == nil && found != nil {
			kilobytes, _ := strconv.Atoi(string(found[1])) // digits
			most = max(most, kilobytes<<10)
		}
	}
	return most
}
