package viz

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
)

// TestAShelfWithRoomIsNamed: as long as the picture has room for names that it does not know, the store is asked for
// them.
func TestAShelfWithRoomIsNamed(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		log, p := newLog()
		cache := p.Resource("pods").Subject("cacher")
		ui := New(Config{Log: log, Recount: func(resource, subject string, limit int) {
			assert.True(t, resource == "pods" && subject == "cacher" && limit == fold.MaxRows,
				"asked for %s of %s, %d", subject, resource, limit)
			cache.At(probe.StoreHolds, "/registry/pods/default/a", 1, 2)
			cache.At(probe.StoreHolds, "/registry/pods/default/b", 2, 2)
		}})
		ctx, cancel := context.WithCancel(t.Context())
		defer func() {
			cancel()
			synctest.Wait()
		}()
		go ui.Run(ctx)
		cache.At(probe.CacheReplaced, "", 5, 0, 0, 100, 1000)
		time.Sleep(time.Minute)
		last := log.Last()
		require.Equal(t, last, 1, "of a thousand objects there are names: %d records", last)
		cache.Event(probe.StoreUpdate, "DELETED", "/registry/pods/default/c", 6, 2)
		time.Sleep(time.Minute)
		synctest.Wait()
		_, state := snapshotOf(t, ui)
		if shelf := state.Resources["pods"].Shelves["store/cacher"]; shelf.N != 2 || len(shelf.Rows) != 2 ||
			log.Last() != 4 {
			t.Errorf("after %d records: got %+v, want two objects by name, told once", log.Last(), shelf)
		}
	})
}
