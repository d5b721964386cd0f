//go:build full && linux

package e2e

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/memory"
	"github.com/chromedp/cdproto/systeminfo"
	"github.com/chromedp/chromedp"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

const (
	soak = 10 * time.Minute
	// fills is the maximum number of bytes by which the renderer may grow after the demo's first minute, about a
	// fortieth of its size. The log and the page's tape fill in six minutes, with 5 MB in Go's heap and 1.3 MB in the
	// page's. V8 keeps 3 to 9 MB more. Today we see 14 MB in all, so the test fails: 5 MB was once enough. Readings
	// differ by 2 MB from one minute to the next.
	fills = 10 << 20
)

// TestATabStaysSmall runs the demo in a tab for ten minutes, then a hundred changes a second for one minute. The
// renderer may grow by fills at most, the page must show its oldest moment, Go's heap must keep to goMemory, and the
// log must lose no record and break no rule.
func TestATabStaysSmall(t *testing.T) {
	alone(t)
	p := openPage(t, "about:blank")
	p.runs(t, served(t, site(t)))
	p.strike(t, "Escape")
	p.passes(t, time.Minute)
	head := func() int { return evaluate[int](t, p, `listwatch.player.head`) }
	first, since := p.renderer(t), head()
	p.passes(t, soak-time.Minute)
	last, records, heap := p.renderer(t), head()-since, p.heap(t)
	t.Logf("renderer: %.1f MB after the first minute, %.1f MB after %v and %d records; Go keeps %d MB",
		float64(first)/(1<<20), float64(last)/(1<<20), soak, records, heap>>20)
	assert.False(t, last > first+fills || heap > goMemory, "it has grown")
	p.is(t, "true true", "the oldest moment is not the first, and can be seen",
		`(listwatch.player.oldest > 0) + " " + await listwatch.player.seek(listwatch.player.oldest)`)
	p.run(t, `listwatch.player.live()`)

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

// renderer returns the resident memory, in bytes, of the largest renderer process, which has the page and its Worker.
// It takes five readings, each after a garbage collection of both, and returns the smallest.
func (p *page) renderer(t *testing.T) int {
	t.Helper()
	least := math.MaxInt
	for range 5 {
		p.run(t, `machine.postMessage({ id: 0, kind: "", collect: true })`)
		p.do(t, func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
			_, err := cdp.Call(ctx, target, heapprofiler.CollectGarbage, cdp.Empty{})
			_, err2 := cdp.Call(ctx, target, memory.SimulatePressureNotification,
				memory.SimulatePressureNotificationParams{Level: memory.PressureLevelCritical})
			return chromedp.Void{}, errors.Join(err, err2)
		})
		p.passes(t, time.Second)
		processes := require.Value(chromedp.CallBrowser(p.ctx, systeminfo.GetProcessInfo, cdp.Empty{}))(t)
		most := 0
		for _, each := range processes.ProcessInfo {
			status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", int(each.ID)))
			if found := resident.FindSubmatch(status); each.Type == "renderer" && err == nil && found != nil {
				kilobytes, _ := strconv.Atoi(string(found[1])) // the pattern matches digits only
				most = max(most, kilobytes<<10)
			}
		}
		least = min(least, most)
	}
	return least
}
