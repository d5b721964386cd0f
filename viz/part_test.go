package viz

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
)

// leaf asks for one leaf of the inspector.
func leaf(t *testing.T, ui *UI, path string) string {
	t.Helper()
	answer := ask(ui, "GET", "/viz/part/"+path, "")
	require.Equal(t, http.StatusOK, answer.Code, "%s: got %d: %s", path, answer.Code, answer.Body)
	assert.Equal(t, "text/html; charset=utf-8", answer.Header().Get("Content-Type"), "%s: Content-Type", path)
	return answer.Body.String()
}

func TestEveryStationAndQueueCanBeLookedInto(t *testing.T) {
	ui := lively("default/a")
	for _, station := range probe.Stations {
		queues := map[string]bool{"": true}
		for _, point := range probe.Points() {
			if info := point.Info(); info.Station == station && info.Queue != "" {
				queues["?queue="+info.Queue] = true
			}
		}
		for queue := range queues {
			for _, tab := range []string{"what", "state", "code", "blocked", "history", "bytes"} {
				page := leaf(t, ui, fmt.Sprintf("%s/%s%s", station, tab, queue))
				assert.True(t, strings.Contains(page, `<article class="leaf `+tab+`"`) && !strings.Contains(page, `data-title=""`),
					"%s%s %s: %.300s", station, queue, tab, page)
			}
		}
	}
}

func TestTheCodeLeafLightsTheLineThatReports(t *testing.T) {
	ui := lively("default/a")
	lit := regexp.MustCompile(
		`<span class="l told lit" data-n="(\d+)" data-point="(\w+)"><span class="hits" data-hits="\w+"></span>(.*?)` +
			`</span><span class="l|<span class="l told lit" data-n="(\d+)"`)
	for _, point := range probe.Points() {
		switch point {
		case probe.KnobTurned, probe.CommandEnded, probe.EtcdLookedAt, probe.EtcdFailed, probe.ProgramStopped,
			probe.WatcherSummed:
			continue // the sandbox, the program and probe report them, which are no chapters
		}
		info := point.Info()
		page := leaf(t, ui, fmt.Sprintf("%s/code?point=%s", info.Station, info.Name))
		assert.Equal(t, 1, strings.Count(page, " lit\""), point)
		match := lit.FindStringSubmatch(page)
		assert.True(t, match != nil && (match[2] == "" || match[2] == info.Name &&
			strings.Contains(match[3], info.Name)),
			"%s: lit is %.200q", point, match)
		assert.True(t, strings.Contains(page, "break chapters/"), "%s: no command for the debugger", point)
	}
	page := leaf(t, ui, "ring/code")
	assert.True(t, strings.Contains(page, " lit\"") && strings.Contains(page, `data-point="RingAppend"`),
		"without a point the first declaration is shown: %s", page)
}

func TestTheHistoryEndsAtTheRecordItIsAskedFor(t *testing.T) {
	ui := lively("default/a")
	page := leaf(t, ui, "watcher/history?at=4")
	assert.True(t, strings.Contains(page, `data-seq="3"`) && !strings.Contains(page, `data-seq="5"`),
		"the history at 4 is %s", page)
	page = leaf(t, ui, "watcher/history?q=ENTERS")
	assert.True(t, strings.Count(page, "<li") == 1 && strings.Contains(page, "enters the input of default"),
		"searched for enters: %s", page)
}

func TestWhatIsNotThereCannotBeLookedInto(t *testing.T) {
	ui := lively("default/a")
	for path, want := range map[string]int{
		"nowhere/what": 404, "ring/nothing": 404, "ring/state?queue=input": 404, "ring/state?at=x": 400,
		"ring/state?log=other": 410,
	} {
		assert.Equal(t, want, ask(ui, "GET", "/viz/part/"+path, "").Code, path)
	}
}

func TestWhatOthersWroteIsTextInTheInspector(t *testing.T) {
	ui := lively(`"><script>alert(1)</script><img src=x onerror=alert(2)>'`)
	for _, station := range probe.Stations {
		for _, tab := range []string{"what", "state", "code", "blocked", "history", "bytes"} {
			page := leaf(t, ui, fmt.Sprintf("%s/%s?q=&subject=%%22%%3E%%3Cimg%%3E", station, tab)) + leaf(t, ui,
				fmt.Sprintf("%s/%s", station, tab))
			for _, bad := range []string{"<script", "<img"} {
				assert.False(t, strings.Contains(page, bad), "%s %s: contains %s", station, tab, bad)
			}
		}
	}
}
