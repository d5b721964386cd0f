package sandbox

import (
	"testing"
	"testing/synctest"
	"time"

	pipeline "listwatch/chapters/15-pipeline"
	"listwatch/internal/observe/rules"
)

func TestNoRuleIsBrokenOnTheWholeWay(t *testing.T) {
	for _, fifo := range []string{"real", "delta"} {
		t.Run(fifo, func(t *testing.T) {
			inWorld(t, func(s *Config, c *pipeline.ClientConfig) { s.Demo, c.FIFO = true, fifo }, func(t *testing.T,
				w *world) {
				for range 3 {
					if _, _, err := w.AddWatcher(t.Context(), WatcherOptions{Resource: "pods",
						Bookmarks: true}); err != nil {
						t.Fatal(err)
					}
				}
				w.patch(t)
				checker, seq := rules.New(), uint64(0)
				for range 10 {
					time.Sleep(20 * time.Second)
					synctest.Wait()
					records, ok := w.log.Since(nil, seq, 1<<16)
					if !ok || len(records) == 0 {
						t.Fatal("the log has moved on, or nothing happened")
					}
					seq += uint64(len(records))
					for _, breach := range checker.Apply(records) {
						t.Error(breach)
					}
				}
			})
		})
	}
}
