package cacher

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
)

func exactly(rv string) storage.ListOptions {
	opts := everything(rv)
	opts.ResourceVersionMatch = metav1.ResourceVersionMatchExact
	return opts
}

func paged(opts storage.ListOptions, limit int64, token string) storage.ListOptions {
	opts.Predicate.Limit, opts.Predicate.Continue = limit, token
	return opts
}

func TestWhoAnswersAList(t *testing.T) {
	small := func(c *Config) { c.RingCapacity = 2 }
	run(t, small, func(f *fixture) {
		f.create("default/a") // 2
		f.create("default/b") // 3
		f.create("default/c") // 4: the snapshots are 3 and 4
		synctest.Wait()
		token := func(rv int64) string { return must(storage.EncodeContinue(prefix+"/default/b", prefix+"/", rv)) }
		single := everything("")
		single.Recursive = false
		for _, c := range []struct {
			name      string
			key       string
			opts      storage.ListOptions
			want      string
			byStorage bool
		}{
			{"newest", "", everything(""), "a b c @4", false},
			{"any", "", everything("0"), "a b c @4", false},
			{"any, the limit is ignored", "", paged(everything("0"), 1, ""), "a b c @4", false},
			{"at least", "", everything("2"), "a b c @4", false},
			{"exact", "", exactly("3"), "a b @3", false},
			{"exact, gone from the cache", "", exactly("2"), "a @2", true},
			{"legacy exact", "", paged(everything("3"), 1, ""), "a @3 more 1", false},
			{"legacy exact, gone", "", paged(everything("2"), 5, ""), "a @2", true},
			{"a page of the newest", "", paged(everything(""), 2, ""), "a b @4 more 1", false},
			{"continued", "", paged(everything(""), 1, token(3)), "b @3", false},
			{"continued, gone", "", paged(everything(""), 5, token(2)), " @2", true},
			{"continued at the newest", "", paged(everything(""), 5, token(-1)), "b c @4", false},
			{"namespace", "/default", everything("0"), "a b c @4", false},
			{"no such namespace", "/nowhere", everything("0"), " @4", false},
			{"selector", "", selecting("0", "", "metadata.name=b"), "b @4", false},
			{"one", "/default/b", single, "b @4", false},
		} {
			before := f.raw.nLists.Load()
			out := &corev1.PodList{}
			if err := f.store.GetList(f.ctx, prefix+c.key, c.opts, out); err != nil {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			f.is(c.name, []string{summary(out)}, c.want)
			assert.Equal(t, c.byStorage, f.raw.nLists.Load() > before, "%s: answered by the storage", c.name)
			assert.True(t, out.Items != nil, "%s: items are nil", c.name)
		}
	})
}

// summary returns "a b @4 more 1".
func summary(list *corev1.PodList) string {
	var all []string
	for _, p := range list.Items {
		all = append(all, p.Name)
	}
	text := strings.Join(all, " ") + " @" + list.ResourceVersion
	if list.Continue != "" {
		text += " more"
	}
	if list.RemainingItemCount != nil {
		text += fmt.Sprint(" ", *list.RemainingItemCount)
	}
	return text
}

func TestAQuietResourceIsReadConsistentlyAfterOneProgressRequest(t *testing.T) {
	run(t, nil, func(f *fixture) {
		f.create("default/a")
		synctest.Wait()
		for what, read := range map[string]func() string{
			"a list":         func() string { _, rv := f.list(everything("")); return "END " + rv },
			"initial events": func() string { return seen(f.watch("", watchList(everything(""))))[1] },
		} {
			rv := f.etcd.Put("/registry/nodes/n1", []byte("{}")) // moves the revision, and no pod
			start := time.Now()
			f.is(what, []string{read()}, fmt.Sprint("END ", rv))
			waited := time.Since(start)
			assert.True(t, waited <= 2*100*time.Millisecond, "%s waited %v", what, waited)
		}
	})
}

func TestAConsistentListThatTheCacheCannotServeIsServedByTheStorage(t *testing.T) {
	run(t, nil, func(f *fixture) {
		f.create("default/a")
		synctest.Wait()
		f.raw.noProgress.Store(true)
		f.etcd.Put("/registry/nodes/n1", []byte("{}"))
		start, before := time.Now(), f.raw.nLists.Load()
		items, rv := f.list(everything(""))
		f.is("items", items, "default/a 2")
		assert.True(t, rv == "3" && f.raw.nLists.Load() == before+1 && time.Since(start) == 3*time.Second,
			"at %s after %v, %d lists", rv, time.Since(start), f.raw.nLists.Load()-before)
	})
}

func TestAColdCacheLeavesPagesToTheStorageAndRefusesTheRest(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		f.create("default/a")
		items, _ := f.list(paged(everything(""), 10, ""))
		assert.Equal(t, 1, len(items), "a page: got %v", items)
		for name, opts := range map[string]storage.ListOptions{
			"unlimited": everything(""), "selector": paged(selecting("", "app=x", ""), 10, ""), "exact": exactly("2"),
		} {
			assert.Fails(t, f.store.GetList(f.ctx, prefix, opts, newPodList()), apierrors.IsTooManyRequests, name)
		}
		out := &corev1.Pod{}
		err := f.store.Get(f.ctx, prefix+"/default/a", storage.GetOptions{ResourceVersion: "0"}, out)
		assert.True(t, err == nil && out.Name == "a", "get: %v, %v", out.Name, err)
	})
}

func TestWhoAnswersAGet(t *testing.T) {
	run(t, nil, func(f *fixture) {
		f.create("default/a", "app=x")
		synctest.Wait()
		get := func(id, rv string, ignore bool) (*corev1.Pod, bool, error) {
			before := f.raw.nGets.Load()
			out := &corev1.Pod{}
			out.Name = "was here before"
			err := f.store.Get(f.ctx, prefix+"/"+id, storage.GetOptions{ResourceVersion: rv, IgnoreNotFound: ignore},
				out)
			return out, f.raw.nGets.Load() > before, err
		}
		p, byStorage, err := get("default/a", "", false)
		assert.True(t, err == nil && byStorage && p.Name == "a", "newest: %v, %v, %v", p.Name, byStorage, err)
		p, byStorage, err = get("default/a", "0", false)
		assert.True(t, err == nil && !byStorage && p.Name == "a", "any: %v, %v, %v", p.Name, byStorage, err)
		p.Labels["mine"] = "yes" // belongs to the caller
		p, _, _ = get("default/a", "0", false)
		assert.True(t, p.Labels["mine"] == "", "the cached object was changed by its reader")
		_, _, err = get("default/z", "0", false)
		assert.True(t, storage.IsNotFound(err), "missing: %v", err)
		p, _, err = get("default/z", "0", true)
		assert.True(t, err == nil && p.Name == "", "missing, ignored: %q, %v", p.Name, err)
		_, _, err = get("default/a", "100", false)
		assert.True(t, apierrors.IsTimeout(err), "future: %v", err)
		_, _, err = get("default/a", "x", false)
		assert.True(t, err != nil, "garbage: accepted")
	})
}

func TestAnUpdateIsGivenACopyOfWhatTheCacheHas(t *testing.T) {
	run(t, nil, func(f *fixture) {
		f.create("default/a", "app=x")
		synctest.Wait()
		element, _, _ := f.watchCache.Get(f.ctx, prefix+"/default/a", 0)
		f.update("default/a", "app=y") // the update function changes what it is given
		suggested, ok := (<-f.raw.suggested).(*corev1.Pod)
		assert.True(t, ok && suggested.Name == "a", "suggested %v", suggested)
		assert.True(t, suggested != element.Object, "suggested the cached object itself")
		synctest.Wait()
		items, _ := f.list(exactly("2"))
		f.is("the state before", items, "default/a 2")
		before := &corev1.PodList{}
		err := f.store.GetList(f.ctx, prefix, exactly("2"), before)
		assert.True(t, err == nil && before.Items[0].Labels["app"] == "x",
			"the state before has label %v, %v", before.Items[0].Labels, err)
		_ = f.store.GuaranteedUpdate(f.ctx, prefix+"/default/z", &corev1.Pod{}, false, nil, nil, nil)
		assert.Equal(t, nil, <-f.raw.suggested, "a suggestion out of nowhere")
	})
}
