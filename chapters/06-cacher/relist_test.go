package cacher

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/check/assert"
	"listwatch/internal/observe/probe"
)

// rewinding is a storage whose next event, once armed, carries a version of the past.
type rewinding struct {
	storage.Interface
	armed atomic.Bool
}

func (r *rewinding) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	w, err := r.Interface.Watch(ctx, key, opts)
	if err != nil {
		return nil, err
	}
	return watch.Filter(w, func(event watch.Event) (watch.Event, bool) {
		if event.Type == watch.Added && r.armed.CompareAndSwap(true, false) {
			pod := event.Object.(*corev1.Pod).DeepCopy()
			pod.ResourceVersion = "1"
			event.Object = pod
		}
		return event, true
	}), nil
}

// A storage that goes back in time breaks what every replay counts on. The cache gives up what it has and lists again;
// the process, which holds every other cache too, goes on.
func TestAnEventOfThePastEndsTheCacheAndItListsAgain(t *testing.T) {
	back := &rewinding{}
	run(t, func(c *Config) { back.Interface = c.Storage; c.Storage = back }, func(f *fixture) {
		w := f.watch("", everything(f.create("default/a")))
		synctest.Wait()
		back.armed.Store(true)
		f.create("default/b")
		synctest.Wait()
		assert.False(t, f.Ready(), "the cache is ready, with an event of the past in its ring")
		time.Sleep(2 * startCachingPeriod)
		synctest.Wait()
		f.is("the watcher", seen(w), "closed")
		if snapshot := f.Cacher.Snapshot(); !snapshot.Ready || snapshot.Cache.Objects != 2 {
			t.Errorf("ready %v with %d objects, want both again", snapshot.Ready, snapshot.Cache.Objects)
		}
		said := ""
		records, _ := f.log.Since(nil, 1, logSize)
		for _, r := range records {
			if r.Point == probe.ReflectorWatchEnded {
				said += r.Text
			}
		}
		assert.True(t, strings.Contains(said, "ADDED of /registry/pods/default/b at 1 after"),
			"the log says of the end: %q", said)
	})
}
