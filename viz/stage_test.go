package viz

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
	"listwatch/viz/frame"
)

// lively returns a page whose log has records of both halves. texts is the key or the text in each of them.
func lively(texts string) *UI {
	log, pods := newLog()
	ui := show(log)
	reports := []func(){
		func() { pods.Subject("etcd3-1").Text(probe.WatchChanOpened, texts, "/registry/pods/", 5) },
		func() { pods.Subject("cacher").Event(probe.RingAppend, "ADDED", texts, 6, 3, 7, 100, 4) },
		func() { pods.Subject("w1").Text(probe.WatcherAdded, texts, texts, 5, 10) },
		func() { pods.Subject("w1").Text(probe.WireOpened, texts, "", 0) },
		func() { pods.Subject("w1").Event(probe.InputSent, "ADDED", texts, 6, 1, 10) },
		func() { pods.Subject("l1").At(probe.ListenerAdded, texts, 0) },
		func() { pods.Subject("l1").Event(probe.PendingPushed, "ADDED", texts, 6, 2, 1024) },
		func() { pods.Subject("scheduler").At(probe.WorkAdded, texts, 0, 1, 0) },
	}
	for _, report := range reports {
		report()
	}
	return ui
}

func TestThePageCarriesEveryNameOfTheContract(t *testing.T) {
	page := ask(lively("default/a"), "GET", "/", "").Body.String()
	own, theirs := strings.Index(page, `data-side="client"`), strings.Index(page, `data-side="server"`)
	for _, station := range probe.Stations {
		name := fmt.Sprintf(`data-station="%s"`, station)
		want := 1
		if station == probe.Reflector { // each half has a reflector, and the client's comes first
			want = 2
			first, last := strings.Index(page, name), strings.LastIndex(page, name)
			assert.True(t, own < first && first < theirs && theirs < last, "the server's reflector is not on its side")
		}
		assert.Equal(t, want, strings.Count(page, name), "station %s: found", station)
	}
	for _, queue := range []string{"etcd3-incoming", "etcd3-result", "incoming", "input", "result", "add", "pending",
		"next", "fifo", "workqueue"} {
		want := fmt.Sprintf(`data-queue="%s" data-len="0" data-cap="0"`, queue)
		assert.True(t, strings.Contains(page, want), "queue %s: no %s", queue, want)
	}
	for _, want := range []string{`data-start="0"`, `data-end="0"`, `data-capacity="0"`, `data-oldest-rv="0"`,
		`data-newest-rv="0"`, `data-seq="0"`, `data-mode="live"`} {
		assert.True(t, strings.Contains(page, want), "no %s", want)
	}
	watchers, rest, _ := strings.Cut(page[strings.Index(page, ` data-watcher>`):], ` data-listener>`)
	for _, queue := range []string{"input", "result"} {
		assert.True(t, strings.Contains(watchers, `data-queue="`+queue+`"`),
			"queue %s does not stand inside its watcher", queue)
	}
	for _, queue := range []string{"add", "pending", "next"} {
		assert.True(t, strings.Contains(rest, `data-queue="`+queue+`"`),
			"queue %s does not stand inside its listener", queue)
	}
}

// TestAShelfWithRoomIsNamed expects UI.Run to make a store report its objects only while the picture has room.
func TestAShelfWithRoomIsNamed(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		log, p := newLog()
		cache := p.Resource("pods").Subject("cacher")
		pictures := NewPictures(log, nil, func(resource, subject string, limit int) {
			assert.True(t, resource == "pods" && subject == "cacher" && limit == fold.MaxRows,
				"asked for %s of %s, %d", subject, resource, limit)
			cache.At(probe.StoreHolds, "/registry/pods/default/a", 1, 2)
			cache.At(probe.StoreHolds, "/registry/pods/default/b", 2, 2)
		})
		ui := New(pictures, frame.New(log, pictures), nil)
		bubble.Go(t, "test.ui", ui.Run)
		cache.At(probe.CacheReplaced, "", 5, 0, 0, 100, 1000)
		time.Sleep(time.Minute)
		require.Equal(t, 1, log.Last(), "of a thousand objects there are names")
		cache.Event(probe.StoreUpdate, "DELETED", "/registry/pods/default/c", 6, 2)
		time.Sleep(time.Minute)
		synctest.Wait()
		_, state := snapshotOf(t, ui)
		shelf := state.Resources["pods"].Shelves["store/cacher"]
		assert.True(t, shelf.N == 2 && len(shelf.Rows) == 2 && log.Last() == 4,
			"after %d records: got %+v, want two objects by name, told once", log.Last(), shelf)
	})
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// leaf returns one leaf of the inspector, and requires that it is HTML.
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
			for _, tab := range []string{"what", "state", "code", "blocked", "history"} {
				page := leaf(t, ui, fmt.Sprintf("%s/%s%s", station, tab, queue))
				assert.True(t, strings.Contains(page, `<article class="leaf `+tab+`"`) &&
					!strings.Contains(page, `data-title=""`), "%s%s %s: %.300s", station, queue, tab, page)
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
			probe.WatcherLookedAt, probe.CrowdLookedAt:
			continue // reported outside chapters: by the sandbox, the program and probe
		}
		info := point.Info()
		page := leaf(t, ui, fmt.Sprintf("%s/code?point=%s", info.Station, info.Name))
		assert.Equal(t, 1, strings.Count(page, " lit\""), point)
		match := lit.FindStringSubmatch(page)
		assert.True(t, match != nil && (match[2] == "" || match[2] == info.Name &&
			strings.Contains(match[3], info.Name)), "%s: lit is %.200q", point, match)
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
		for _, tab := range []string{"what", "state", "code", "blocked", "history"} {
			page := leaf(t, ui, fmt.Sprintf("%s/%s?subject=%%22%%3E%%3Cimg%%3E", station, tab)) + leaf(t, ui,
				fmt.Sprintf("%s/%s", station, tab))
			for _, bad := range []string{"<script", "<img"} {
				assert.False(t, strings.Contains(page, bad), "%s %s: contains %s", station, tab, bad)
			}
		}
	}
}
