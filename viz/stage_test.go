package viz

import (
	"context"
	"fmt"
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

// lively returns a page on which everything there can be is there.
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
	for _, station := range probe.Stations {
		assert.Equal(t, 1, strings.Count(page, fmt.Sprintf(`data-station="%s"`, station)), "station %s: found", station)
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
		assert.True(t, strings.Contains(rest, `data-queue="`+queue+`"`), "queue %s does not stand inside its listener", queue)
	}
}

func TestThePageHoldsNoScriptAndNoStyleOfItsOwn(t *testing.T) {
	page := ask(lively("default/a"), "GET", "/", "").Body.String()
	assert.Equal(t, "", regexp.MustCompile(`<script[^>]*>[^<]+`).FindString(page), "inline script")
	assert.Equal(t, "", regexp.MustCompile(`<style|\sstyle=|\son[a-z]+=|javascript:`).FindString(page),
		"inline style or handler")
	assert.Equal(t, "", regexp.MustCompile(`(src|href)="(https?:)?//[^"]*"`).FindString(page),
		"something is fetched from elsewhere")
}

func TestEveryAssetThePageAsksForIsThere(t *testing.T) {
	ui := lively("default/a")
	page := ask(ui, "GET", "/", "").Body.String()
	asked := regexp.MustCompile(`"(/viz/assets/[^"]+)"`).FindAllStringSubmatch(page, -1)
	require.True(t, len(asked) >= 4, "the page asks for %d assets, want its style, its scripts and its icon",
		len(asked))
	for _, match := range asked {
		got := ask(ui, "GET", match[1], "").Code
		assert.True(t, got == 200, "%s: got %d", match[1], got)
	}
}

// TestAShelfWithRoomIsNamed: as long as the picture has room for names that it does not know, the store is asked for
// them.
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
		ctx, cancel := context.WithCancel(t.Context())
		defer func() {
			cancel()
			synctest.Wait()
		}()
		go ui.Run(ctx)
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
