package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
)

const (
	benchRate     = 10000 // changes a second that are asked for
	benchWatchers = 50    // each for the pods of one node, as kubelets watch
	benchLasts    = 5 * time.Second
)

// BenchmarkPageUnderLoad measures the page in headless Chromium while ten thousand changes a second are asked for and
// fifty watchers watch: of the last frames the time from one to the next and what the script took, how many in a
// hundred of all came late, how many changes a second the pipeline made with the page open, and without one, and what a
// change cost the program. On few cores the browser's drawing takes from the pipeline's time, though not from its work:
// the last number is that of the feed.
func BenchmarkPageUnderLoad(b *testing.B) {
	b.Run("page", func(b *testing.B) { benchLoad(b, true) })
	b.Run("no page", func(b *testing.B) { benchLoad(b, false) })
}

// frameCost is what the page says of its last frames, in milliseconds.
type frameCost struct {
	Frames, Late int
	Gap, Script  quantiles
}

type quantiles struct{ P50, P95, Max float64 }

func benchLoad(b *testing.B, open bool) {
	v := startViz(b)
	url := v.URL
	for n := range benchWatchers {
		post(b, url+"/viz/watchers", map[string]any{"fieldSelector": fmt.Sprintf("spec.nodeName=load-%d", n),
			"bookmarks": true})
	}
	var p *page
	if open {
		p = openPage(b, url)
	}
	post(b, url+"/viz/knobs", map[string]any{"name": "traffic.rate", "value": fmt.Sprint(benchRate)})
	// Until what grows has grown: rings, channels, and what a page keeps of the past.
	program.Eventually(b, program.HangsAfter, func() (bool, string) {
		n := written(b, v)
		return n >= benchRate, fmt.Sprint(n, " changes")
	})
	b.ResetTimer()
	before, cpu, began := written(b, v), cpuSeconds(b, url), time.Now()
	for b.Loop() {
		time.Sleep(benchLasts)
	}
	took := time.Since(began)
	changes := float64(written(b, v) - before)
	b.ReportMetric(changes/took.Seconds(), "changes/s")
	b.ReportMetric((cpuSeconds(b, url)-cpu)*1e6/changes, "cpu-µs/change")
	if !open {
		return
	}
	m := evaluate[frameCost](b, p, `listwatch.cost()`)
	b.ReportMetric(100*float64(m.Late)/float64(m.Frames), "%late/frame")
	for what, took := range map[string]quantiles{"frame": m.Gap, "script": m.Script} {
		b.ReportMetric(took.P50, "p50-ms/"+what)
		b.ReportMetric(took.P95, "p95-ms/"+what)
		b.ReportMetric(took.Max, "max-ms/"+what)
	}
}

func written(b *testing.B, v *viz) uint64 {
	b.Helper()
	var state struct{ Traffic struct{ Written uint64 } }
	v.Get(b, "/viz/knobs", &state)
	return state.Traffic.Written
}

// cpuSeconds is how long the program has computed.
func cpuSeconds(b *testing.B, url string) float64 {
	b.Helper()
	response, err := http.Get(url + "/metrics")
	require.NoError(b, err)
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "process_cpu_seconds_total "); ok {
			seconds, err := strconv.ParseFloat(text, 64)
			require.NoError(b, err)
			return seconds
		}
	}
	b.Fatal("no process_cpu_seconds_total")
	return 0
}

func post(b testing.TB, url string, body any) {
	b.Helper()
	data, err := json.Marshal(body)
	require.NoError(b, err)
	response, err := http.Post(url, "application/json", bytes.NewReader(data))
	require.NoError(b, err)
	defer response.Body.Close()
	require.True(b, response.StatusCode < 300, "POST %s %s: %s", url, data, response.Status)
}
