package cacher

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	storage "listwatch/chapters/01-storage"
	etcd3 "listwatch/chapters/02-etcd3"
	watchcache "listwatch/chapters/04-watchcache"
	cachewatcher "listwatch/chapters/05-cachewatcher"
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

func TestAnEventFindsTheWatchersOfEachScopeOnce(t *testing.T) {
	scopes := []namespacedName{{"default", "a"}, {"default", ""}, {"", "a"}, {}, {"default", "b"}, {"other", ""},
		{"other", "a"}}
	for name, test := range map[string]struct {
		key        string
		namespaced bool
		want       []namespacedName
	}{
		"namespaced": {"/registry/pods/default/a", true, []namespacedName{{"default", "a"}, {"default", ""},
			{"", "a"}, {}}},
		"cluster-scoped": {"/registry/pods/a", false, []namespacedName{{"", "a"}, {}}},
		"without a name": {"/registry/pods/default/", true, []namespacedName{{"default", ""}, {}}},
		"without either": {"/registry/pods/", true, []namespacedName{{}}},
	} {
		t.Run(name, func(t *testing.T) {
			c := &Cacher{config: Config{ResourcePrefix: "/registry/pods", Namespaced: test.namespaced},
				watchers: newIndexedWatchers()}
			scopeOfWatcher := map[*cachewatcher.CacheWatcher]namespacedName{}
			for _, scope := range scopes {
				w := cachewatcher.New(cachewatcher.Config{})
				scopeOfWatcher[w] = scope
				c.watchers.addLocked(&watchRequest{watcher: w, scope: scope})
			}
			c.pickWatchersLocked(&watchcache.Event{Key: test.key})
			var got []namespacedName
			for _, w := range c.watchersBuffer {
				got = append(got, scopeOfWatcher[w])
			}
			assert.EqualSlices(t, got, test.want)
		})
	}
}

// answer returns what a client is told: "400 BadRequest", or, of a watch, "ok, 410 Expired", or "ok".
func answer(err error) string {
	if err == nil {
		return "ok"
	}
	s := apierrors.APIStatus(nil)
	if interpreted := storage.InterpretError(err, "list", corev1.Resource("pods"), "a"); interpreted != nil {
		s, _ = interpreted.(apierrors.APIStatus)
	}
	if s == nil {
		return "no status: " + err.Error()
	}
	return fmt.Sprint(s.Status().Code, " ", s.Status().Reason)
}

// Whatever a client sends, it is told what is wrong with it, by the status that upstream has for it or a better one,
// which is declared; and afterwards everything goes on. The storage is a real etcd: the hugest of keys get as far as
// that.
func TestBadInputIsAnsweredWithItsStatus(t *testing.T) {
	e := startOnEtcd(t, etcd3.WatcherEtcd3, clock.RealClock{})
	first := e.put(pod("default/a"))
	second := e.put(pod("default/a", "app=x"))
	healthy := e.begin("", everything(fmt.Sprint(first)))
	e.wants(healthy, fmt.Sprintf("MODIFIED default/a %d", second))
	must(e.client.Compact(t.Context(), second)) // now that the cache is as far
	e.watchCache.Compact(uint64(second))        // which followCompactions would do within a quarter of a minute

	exact, atLeast := metav1.ResourceVersionMatchExact, metav1.ResourceVersionMatchNotOlderThan
	huge := strings.Repeat("x", 2<<20)
	token := func(rv int64) string { return must(storage.EncodeContinue(prefix+"/default/a", prefix+"/", rv)) }
	var cases sync.WaitGroup
	for name, c := range map[string]struct {
		key, rv, token, want string
		match                metav1.ResourceVersionMatch
		limit                int64
		watch                bool
	}{
		"list, a version that is none":         {rv: "x", want: "400 BadRequest"},
		"list, a negative version":             {rv: "-1", want: "400 BadRequest"},
		"list, a version of 21 digits":         {rv: "100000000000000000000", want: "400 BadRequest"},
		"list, a version of the future":        {rv: "999999", want: "504 Timeout"},
		"list, exactly the future":             {rv: "999999", match: exact, want: "504 Timeout"},
		"list, not older than the future":      {rv: "999999", match: atLeast, want: "504 Timeout"},
		"list, exactly what is compacted":      {rv: "1", match: exact, want: "410 Expired"},
		"list, a garbage token":                {token: "x!", limit: 1, want: "400 BadRequest"},
		"list, a huge token":                   {token: huge, limit: 1, want: "400 BadRequest"},
		"list, a token of nothing":             {token: token(0), limit: 1, want: "400 BadRequest"},
		"list, a token that has expired":       {token: token(1), limit: 1, want: "410 Expired"},
		"list, a token of the future":          {token: token(999999), limit: 1, want: "504 Timeout"},
		"list, a token and a version":          {token: token(second), rv: "1", limit: 1, want: "400 BadRequest"},
		"list, a negative limit":               {limit: -1, want: "ok"}, // as upstream: none
		"list, a huge key":                     {key: "/" + huge, want: "ok"},
		"list, a key of another resource":      {key: "more", want: "400 BadRequest"},
		"list, a key that climbs":              {key: "/../secrets", want: "400 BadRequest"},
		"list, an unknown match":               {rv: "1", match: "Nearly", want: "400 BadRequest"},
		"watch, a key of another resource":     {watch: true, key: "ecurity", want: "400 BadRequest"},
		"watch, a version that is none":        {watch: true, rv: "x", want: "400 BadRequest"},
		"watch, a negative version":            {watch: true, rv: "-1", want: "400 BadRequest"},
		"watch, a huge key":                    {watch: true, rv: "0", key: "/" + huge, want: "ok"},
		"watch, a key that climbs":             {watch: true, rv: "0", key: "/..", want: "400 BadRequest"},
		"watch, initial events of the future":  {watch: true, rv: "999999", match: atLeast, want: "ok, 504 Timeout"},
		"watch, the future without its events": {watch: true, rv: "999999", want: "ok"},
	} {
		cases.Go(func() { // at once: some wait three seconds for a version that never comes
			opts := everything(c.rv)
			opts.ResourceVersionMatch = c.match
			opts.Predicate.Limit, opts.Predicate.Continue = c.limit, c.token
			got := ""
			if c.watch {
				got = e.tryWatch(t.Context(), prefix+c.key, opts, strings.HasPrefix(c.want, "ok, "))
			} else {
				got = answer(e.store.GetList(t.Context(), prefix+c.key, opts, newPodList()))
			}
			assert.Equal(t, got, c.want, name)
		})
	}
	cases.Wait()
	if got := answer(e.store.Create(t.Context(), prefix+"/default/"+huge, pod("default/b"),
		newPod())); !strings.HasPrefix(got, "413") {
		t.Errorf("create under a huge key: got %.200s, want 413", got)
	}
	e.wants(healthy, fmt.Sprintf("ADDED default/b %d", e.put(pod("default/b"))))
	healthy.Stop()
}

// tryWatch begins a watch and returns how it was answered, and what its first event is if that is an error. If one is
// to come it is waited for; that none comes is no fact to wait for, so then it is given a moment.
func (e *onEtcd) tryWatch(ctx context.Context, key string, opts storage.ListOptions, toCome bool) string {
	if opts.ResourceVersionMatch != "" {
		opts = watchList(opts)
	}
	w, err := e.store.Watch(ctx, key, opts)
	got := answer(err)
	if err != nil {
		return got
	}
	defer w.Stop()
	wait := 10 * time.Millisecond
	if toCome {
		wait = patience
	}
	select {
	case event := <-w.ResultChan():
		if status, ok := event.Object.(*metav1.Status); ok {
			got += ", " + fmt.Sprint(status.Code, " ", status.Reason)
		}
	case <-time.After(wait):
	}
	return got
}
