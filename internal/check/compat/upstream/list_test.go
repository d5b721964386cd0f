package upstream

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	realstorage "k8s.io/apiserver/pkg/storage"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// lists returns every combination of options, by a name that says which.
func (v versions) lists() map[string]query {
	all := map[string]query{}
	for _, version := range v.names() {
		for _, match := range []metav1.ResourceVersionMatch{"", metav1.ResourceVersionMatchExact,
			metav1.ResourceVersionMatchNotOlderThan} {
			for _, limit := range []int64{0, 1, 2, 100} {
				for _, selector := range []string{"", "app=x", "spec.nodeName=n1", "metadata.name=a"} {
					for _, scope := range []string{"", "default", "default/a", "default/none", "nowhere"} {
						q := query{rv: v[version], match: match, limit: limit}
						q.namespace, q.name, _ = strings.Cut(scope, "/")
						if strings.Contains(selector, ".") {
							q.field = selector
						} else {
							q.label = selector
						}
						all[fmt.Sprintf("list %q at %s match=%q limit=%d selecting %q", scope, version, match, limit,
							selector)] = q
					}
				}
			}
		}
	}
	return all
}

// listAll follows a list from page to page and describes every one.
func listAll(ctx context.Context, s side, q query) string {
	var text strings.Builder
	for range 10 {
		list := &corev1.PodList{}
		if err := s.list(ctx, q, list); err != nil {
			return text.String() + describeError(err)
		}
		text.WriteString(describePage(list, q.key()))
		if list.Continue == "" {
			return text.String()
		}
		// The later pages name no version: it is in the token.
		q.rv, q.match, q.token = "", "", list.Continue
	}
	return text.String() + "there is no end to it"
}

func describePage(list *corev1.PodList, key string) string {
	text := "page at " + list.ResourceVersion
	if list.Items == nil {
		text += " without a list"
	}
	for i := range list.Items {
		text += describePod("\n          ", &list.Items[i])
	}
	if list.RemainingItemCount != nil {
		text += fmt.Sprintf("\n        %d more", *list.RemainingItemCount)
	}
	if list.Continue != "" {
		text += "\n        token " + describeToken(list.Continue, key)
	}
	return text + "\n        "
}

// describeToken returns where a token goes on, not its bytes: upstream's cache writes "/a" for the object a of a
// namespace where both stores write "a". Either cache reads both.
func describeToken(token, key string) string {
	from, rv, err := realstorage.DecodeContinue(token, key+"/")
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("at %d from %q", rv, from)
}

// askBoth asks both sides for every list at once, because some wait three seconds for a version that never comes.
func askBoth(t *testing.T, queries map[string]query, one, other side) {
	t.Helper()
	var mu sync.Mutex // guards the counts and t's order
	wrong, pages := 0, 0
	var asked sync.WaitGroup
	for name, q := range queries {
		asked.Go(func() {
			a, b := listAll(t.Context(), one, q), listAll(t.Context(), other, q)
			mu.Lock()
			defer mu.Unlock()
			pages += strings.Count(b, "page at")
			if a == b {
				return
			}
			if wrong++; wrong <= 20 {
				t.Errorf("%s:\n   ours %s\n theirs %s", name, a, b)
			}
		})
	}
	asked.Wait()
	assert.True(t, wrong == 0, "%d of %d lists differ", wrong, len(queries))
	assert.True(t, pages >= len(queries)/2,
		"%d lists gave only %d pages: too few to compare anything", len(queries), pages)
}

func TestEveryListOfTheCacheIsWhatTheRealOneGives(t *testing.T) {
	t.Parallel()
	p, v := stagePair(t)
	askBoth(t, v.lists(), p.ourCache, p.theirCache)
}

func TestEveryListOfTheStoreIsWhatTheRealOneGives(t *testing.T) {
	t.Parallel()
	p, v := stagePair(t)
	askBoth(t, v.lists(), p.ourStore, p.theirStore)
}

func TestEveryListAfterACompactionIsWhatTheRealOneGives(t *testing.T) {
	t.Parallel()
	p, v := stagePair(t)
	p.compact(v["history"])
	askBoth(t, v.lists(), p.ourStore, p.theirStore)
	askBoth(t, v.lists(), p.ourCache, p.theirCache)
}

// compact makes etcd forget what was before rv.
func (p *pair) compact(rv string) {
	p.tb.Helper()
	var rev int64
	fmt.Sscan(rv, &rev)
	_, err := p.client.Compact(context.Background(), rev, clientv3.WithCompactPhysical())
	require.NoError(p.tb, err)
}

// The history of these tests, in three parts: what is there before the caches begin, what happens before the watches
// begin, and what happens while they run. Objects come, go, come back, pass in and out of selectors, and change several
// at once.
var (
	beforeCaches = []string{
		"+default/a app=x node=n1", "+default/b app=y", "+default/ab app=x", "+other/a app=x node=n2",
		"+default/gone app=x",
		"~default/b app=x", "-default/gone",
	}
	beforeWatches = []string{
		"+default/c app=y", "~default/c app=x node=n1", "~default/a app=y node=n1", "-other/a",
		"+other/a app=y node=n1",
		"+other/d app=x", "~other/d app=x", "-other/d", "+default/t app=x, +other/t app=y node=n1, +other/u app=x",
	}
	whileWatching = []string{
		"~default/a app=x node=n1", "~default/a app=x node=n2", "~default/a app=y node=n2", "+default/e node=n1 app=x",
		"~default/e node=n1 app=y", "~default/e node=n1 app=z", "-default/e", "+default/e app=x", "-default/e",
		"~other/a app=x",
		"-other/a", "-default/a", "+default/a app=x node=n1", "+third/a app=x node=n1", "~default/ab app=y",
		"-default/ab", "~default/a app=y, +default/s app=x node=n1, ~other/t app=x, -third/a", "-default/t, -other/t",
	}
)

// versions are the resource versions the watches begin with, by name.
type versions map[string]string

func (v versions) names() []string {
	return []string{"none", "zero", "ancient", "list", "history", "now", "future", "garbage"}
}

// stagePair writes the history up to the moment at which watches begin.
func stagePair(t *testing.T) (*pair, versions) {
	v := versions{"none": "", "zero": "0", "garbage": "x", "future": "100000"}
	p := newPair(t, func(p *pair) {
		v["ancient"] = p.writeAll(beforeCaches[:3]...)
		v["list"] = p.writeAll(beforeCaches[3:]...)
	})
	v["history"] = p.writeAll(beforeWatches[:3]...)
	v["now"] = p.writeAll(beforeWatches[3:]...)
	p.bothReach(v["now"])
	return p, v
}

// queries returns every combination of options, by a name that says which.
func (v versions) queries() map[string]query {
	all := map[string]query{}
	yes, no := true, false
	for _, version := range v.names() {
		for initial, ptr := range map[string]*bool{"": nil, " initial": &yes, " no-initial": &no} {
			for _, bookmarks := range []bool{false, true} {
				for _, selector := range []string{"", "app=x", "app!=x", "spec.nodeName=n1", "metadata.name=a",
					"metadata.namespace=other"} {
					for _, scope := range []string{"", "default", "default/a", "nowhere"} {
						q := query{rv: v[version], initial: ptr, bookmarks: bookmarks}
						q.namespace, q.name, _ = strings.Cut(scope, "/")
						if strings.Contains(selector, ".") {
							q.field = selector
						} else {
							q.label = selector
						}
						all[fmt.Sprintf("watch %q from %s%s bookmarks=%t selecting %q", scope, version, initial,
							bookmarks, selector)] = q
					}
				}
			}
		}
	}
	return all
}

// watchBoth asks both sides for every watch, lets the rest of history happen, and returns what they have heard.
func watchBoth(t *testing.T, p *pair, queries map[string]query, one, other side) []*dialogue {
	ctx, cancel := context.WithCancel(context.Background())
	dialogues := make([]*dialogue, 0, len(queries))
	var begun sync.WaitGroup
	for name, q := range queries {
		d := &dialogue{name: name}
		dialogues = append(dialogues, d)
		begun.Go(func() { d.ours = startStream(ctx, one, q) })
		begun.Go(func() { d.theirs = startStream(ctx, other, q) })
	}
	begun.Wait() // some wait for three seconds for a version that never comes
	// a store reads the state with which a watch begins only after Watch has returned; the writes below must not be in
	// it
	settle(dialogues)
	p.bothReach(p.writeAll(whileWatching...))
	settle(dialogues)
	t.Cleanup(func() {
		defer cancel()
		for _, d := range dialogues {
			d.ours.stop()
			d.theirs.stop()
		}
	})
	return dialogues
}

// compare reports every pair of streams that differ.
func compare(t *testing.T, dialogues []*dialogue) {
	t.Helper()
	wrong, events := 0, 0
	for _, d := range dialogues {
		a, b := strings.Join(d.ours.sofar(), "\n        "), strings.Join(d.theirs.sofar(), "\n        ")
		events += len(d.theirs.sofar())
		if a == b {
			continue
		}
		if wrong++; wrong <= 20 {
			t.Errorf("%s:\n   ours %s\n theirs %s", d.name, a, b)
		}
	}
	assert.True(t, wrong == 0, "%d of %d watches differ", wrong, len(dialogues))
	assert.True(t, events >= 4*len(dialogues),
		"%d watches saw only %d events: too few to compare anything", len(dialogues), events)
}

func TestEveryWatchOfTheCacheSaysWhatTheRealOneSays(t *testing.T) {
	t.Parallel()
	p, v := stagePair(t)
	compare(t, watchBoth(t, p, v.queries(), p.ourCache, p.theirCache))
}

func TestEveryWatchOfTheStoreSaysWhatTheRealOneSays(t *testing.T) {
	t.Parallel()
	p, v := stagePair(t)
	compare(t, watchBoth(t, p, v.queries(), p.ourStore, p.theirStore))
}
