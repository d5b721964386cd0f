package cacher

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
)

func TestAWatcherSeesEveryEventAfterItsVersion(t *testing.T) {
	run(t, nil, func(f *fixture) {
		rv := f.create("default/a")
		w := f.watch("", everything(rv))
		f.create("default/b")
		f.update("default/a")
		f.remove("default/b")
		f.is("watch", seen(w), "ADDED default/b 3, MODIFIED default/a 4, DELETED default/b 5")
		w.Stop()
		f.is("stopped", seen(w), "closed")
	})
}

func TestWhereAWatchBegins(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		name, rv string
		initial  *bool
		bookmark bool
		want     string
	}{
		{"no version", "", nil, false, "ADDED default/a 2, ADDED default/b 4"},
		{"any version", "0", nil, false, "ADDED default/a 2, ADDED default/b 4"},
		{"after a version", "2", nil, false, "ADDED default/b 3, MODIFIED default/b 4"},
		{"after the newest", "4", nil, false, ""},
		{"in the future", "100", nil, false, ""},
		{"initial events", "", &yes, false, "ADDED default/a 2, ADDED default/b 4"},
		{"initial events and their end", "", &yes, true, "ADDED default/a 2, ADDED default/b 4, END 4"},
		{"initial events at any version", "0", &yes, true, "ADDED default/a 2, ADDED default/b 4, END 4"},
		{"initial events at least at", "3", &yes, true, "ADDED default/a 2, ADDED default/b 4, END 4"},
		{"no initial events, from now", "", &no, true, ""},
		{"no initial events, from anywhere", "0", &no, true, ""},
		{"no initial events, after", "3", &no, true, "MODIFIED default/b 4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			run(t, nil, func(f *fixture) {
				f.create("default/a")
				f.create("default/b")
				f.update("default/b")
				synctest.Wait()
				opts := everything(c.rv)
				opts.SendInitialEvents = c.initial
				opts.Predicate.AllowWatchBookmarks = c.bookmark
				w := f.watch("", opts)
				f.is("first", seen(w), c.want)
				f.create("default/c")
				want := "ADDED default/c 5"
				if c.rv == "100" {
					want = "" // 5 is not newer than 100
				}
				f.is("then", seen(w), want)
				w.Stop()
			})
		})
	}
}

func TestAWatchThatIsTooOldIsAStreamWithAnError(t *testing.T) {
	small := func(c *Config) { c.RingCapacity = 4 }
	run(t, small, func(f *fixture) {
		f.create("default/a")
		for range 9 {
			f.update("default/a") // up to 11; the ring holds 8 … 11
		}
		synctest.Wait()
		f.is("too old", seen(f.watch("", everything("6"))), "ERROR 410 Expired, closed")
		w := f.watch("", everything("7"))
		f.is("just old enough", seen(w), "MODIFIED default/a 8, MODIFIED default/a 9, MODIFIED default/a 10, "+
			"MODIFIED default/a 11")
	})
}

func TestInitialEventsOfTheFutureAreTooLargeAfterThreeSeconds(t *testing.T) {
	run(t, nil, func(f *fixture) {
		start := time.Now()
		w := f.watch("", watchList(everything("100")))
		assert.Equal(t, time.Since(start), 3*time.Second, "waited")
		f.is("watch", seen(w), "ERROR 504 Timeout, closed")
	})
}

func TestInitialEventsAreAsNewAsTheStorage(t *testing.T) {
	run(t, nil, func(f *fixture) {
		f.create("default/a")
		synctest.Wait()
		f.etcd.Put("/registry/nodes/n1", []byte("{}")) // moves the revision, and no pod
		start := time.Now()
		w := f.watch("", watchList(everything("")))
		waited := time.Since(start)
		assert.True(t, waited <= 2*100*time.Millisecond, "waited %v, more than a progress request", waited)
		f.is("watch", seen(w), "ADDED default/a 2, END 3")
	})
}

func TestASelectorWithNilFieldsSelectsEverything(t *testing.T) {
	run(t, withTrigger, func(f *fixture) {
		w := f.watch("", storage.ListOptions{Recursive: true, ResourceVersion: "1",
			Predicate: storage.SelectionPredicate{IndexFields: []string{"spec.nodeName"}}})
		f.create("default/a")
		f.is("watch", seen(w), "ADDED default/a 2")
	})
}

func TestAWatchEndsWithItsContext(t *testing.T) {
	run(t, nil, func(f *fixture) {
		ctx, cancel := context.WithCancel(f.ctx)
		w, err := f.store.Watch(ctx, prefix, everything("0"))
		require.NoError(t, err)
		cancel()
		f.is("watch", seen(w), "closed")
	})
}

func TestWatchersAreNumberedAndSpeakForThemselves(t *testing.T) {
	run(t, nil, func(f *fixture) {
		first, second := f.watch("", everything("0")), f.watch("", everything("0"))
		f.is("names", []string{probe.Of(first).ID(), probe.Of(second).ID()}, "w1, w2")
		first.Stop()
		synctest.Wait()
		s := f.Snapshot()
		assert.True(t, len(s.Watchers) == 1 && s.Watchers[0].ID == "w2" && s.Watchers[0].InputCap == 10,
			"%+v", s.Watchers)
	})
}

// Writers never pause while watches begin at every moment: each must see everything after its version, once.
func TestNothingIsLostBetweenListAndWatch(t *testing.T) {
	run(t, nil, func(f *fixture) {
		f.create("default/a")
		done := make(chan struct{})
		new(routine.Group).Go(context.Background(), "test.writer", func(context.Context) {
			defer close(done)
			for range 300 {
				f.update("default/a")
				time.Sleep(time.Millisecond)
			}
		})
		for range 10 {
			time.Sleep(7 * time.Millisecond)
			f.checkContinuity()
		}
		<-done
	})
}

// checkContinuity lists, watches from the list, and reads 20 events.
func (f *fixture) checkContinuity() {
	_, rv := f.list("", everything("0"))
	w := f.watch("", everything(rv))
	defer w.Stop()
	next := must(f.versioner.ParseResourceVersion(rv)) + 1
	for range 20 {
		event := <-w.ResultChan()
		require.Equal(f.t, must(f.versioner.ObjectResourceVersion(event.Object)), next, "after %s", rv)
		next++
	}
}
