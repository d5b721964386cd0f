package cacher

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// compacted is a storage's compaction, at the version it holds.
type compacted struct{ atomic.Int64 }

func (c *compacted) CompactRevision() int64 { return c.Load() }

func TestSnapshotsThatTheStorageHasForgottenAreForgottenWithinFifteenSeconds(t *testing.T) {
	run(t, nil, func(f *fixture) {
		f.create("default/a")
		f.update("default/a")
		f.update("default/a")
		synctest.Wait()
		rv := f.watchCache.Snapshot().ResourceVersion
		time.Sleep(time.Minute)
		n := f.watchCache.Snapshot().Snapshots
		require.True(t, n >= 4, "%d snapshots, though nothing was compacted", n)
		f.compaction.Store(int64(rv))
		time.Sleep(compactorPollPeriod + time.Second)
		synctest.Wait()
		n = f.watchCache.Snapshot().Snapshots
		assert.Equal(t, n, 1, "%d snapshots, want the newest only", n)
		exact := storage.ListOptions{ResourceVersion: "2", ResourceVersionMatch: "Exact",
			Predicate: storage.Everything, Recursive: true}
		before := f.raw.lists()
		_ = f.store.GetList(f.ctx, prefix, exact, newPodList())
		assert.Equal(t, f.raw.lists(), before+1, "a forgotten version was not left to the storage")
	})
}
