package sandbox

import (
	"testing"
	"testing/synctest"
	"time"

	pipeline "listwatch/chapters/15-pipeline"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
)

// Two pages give their tours, one after the other goes; the second goes in a held world.
func TestTheDemoRestsWhileATourIsOpenAnywhere(t *testing.T) {
	inWorld(t, func(s *Config, _ *pipeline.ClientConfig) { s.Demo = true }, func(t *testing.T, w *world) {
		commits := func(d time.Duration) (n int) {
			synctest.Wait()
			last := w.log.Last()
			time.Sleep(d)
			synctest.Wait()
			records, _ := w.log.Since(nil, last, 1<<16)
			for _, r := range records {
				if r.Point == probe.TxnCommitted && r.Resource == "pods" {
					n++
				}
			}
			return n
		}
		n := commits(time.Minute)
		require.True(t, n >= 8, "in a minute the demo changed pods %d times: it does not run", n)
		first, second := w.Tour(t.Context()), w.Tour(t.Context())
		time.Sleep(10 * time.Minute) // what the demo had begun has run its course
		kept, _, err := w.AddWatcher(t.Context(), WatcherOptions{Resource: "pods"})
		require.NoError(t, err)
		if _, _, err := w.AddWatcher(t.Context(), WatcherOptions{Resource: "pods", Tour: true}); err != nil {
			t.Fatal(err)
		}
		assert.True(t, w.fixedRing("pods") != 0, "while a tour is open the ring may grow")
		first()
		n = commits(time.Minute)
		assert.Equal(t, n, 0, "one tour is open, and the demo changed pods %d times", n)
		assert.Equal(t, len(w.Watchers()), 2, "one tour is open, and of 2 watchers there are")
		w.log.Gate().Hold()
		second()
		w.log.Gate().Release()
		if left := w.Watchers(); len(left) != 1 || left[0].ID != kept {
			t.Errorf("after the last tour the watchers are %+v, want %s alone", left, kept)
		}
		assert.Equal(t, w.fixedRing("pods"), 0, "after the last tour the ring is fixed at")
		n = commits(time.Minute)
		assert.True(t, n >= 8, "in the minute after the last tour the demo changed pods %d times", n)
	})
}
