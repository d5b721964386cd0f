package upstream

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	realstorage "k8s.io/apiserver/pkg/storage"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/eventually"
	"listwatch/internal/check/require"
)

// same reports a pair of answers that differ, or that are not what both should say.
func same(t *testing.T, what, ours, theirs, want string) {
	t.Helper()
	assert.Equal(t, ours, theirs, "%s:\n   ours %s\n theirs %s", what, ours, theirs)
	assert.True(t, strings.Contains(theirs, want), "%s: the real one says %s, want %s", what, theirs, want)
}

func TestEveryGetIsWhatTheRealOneGives(t *testing.T) {
	p, v := stagePair(t)
	get := func(s side, id, rv string, ignore bool) string {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "what was here before"}}
		if err := s.get(t.Context(), prefix+"/"+id, rv, ignore, pod); err != nil {
			return describeError(err)
		}
		return describePod("", pod)
	}
	var asked sync.WaitGroup // at once: some wait three seconds for a version that never comes
	for name, sides := range map[string][2]side{"cache": {p.ourCache, p.theirCache}, "store": {p.ourStore,
		p.theirStore}} {
		for _, version := range v.names() {
			for _, id := range []string{"default/a", "default/gone", "nowhere/x", ""} {
				for _, ignore := range []bool{false, true} {
					asked.Go(func() {
						what := fmt.Sprintf("get %q from the %s at %s ignoring=%t", id, name, version, ignore)
						same(t, what, get(sides[0], id, v[version], ignore), get(sides[1], id, v[version], ignore), "")
					})
				}
			}
		}
	}
	asked.Wait()
}

func TestATokenOfOneSideIsGoodForTheOther(t *testing.T) {
	p, _ := stagePair(t)
	sides := map[string]side{"our cache": p.ourCache, "our store": p.ourStore, "their cache": p.theirCache,
		"their store": p.theirStore}
	for from, first := range sides {
		for to, next := range sides {
			for _, namespace := range []string{"", "default"} {
				q, whole := query{namespace: namespace, limit: 2}, &corev1.PodList{}
				require.NoError(t, first.list(t.Context(), query{namespace: namespace}, whole))
				var names []string
				for s := first; ; s = next {
					page := &corev1.PodList{}
					require.NoError(t, s.list(t.Context(), q, page), "from %s to %s", from, to)
					for _, pod := range page.Items {
						names = append(names, pod.Namespace+"/"+pod.Name)
					}
					if q.token = page.Continue; q.token == "" {
						break
					}
				}
				var want []string
				for _, pod := range whole.Items {
					want = append(want, pod.Namespace+"/"+pod.Name)
				}
				same(t, fmt.Sprintf("pages of %q from %s and then %s", namespace, from, to), fmt.Sprint(names),
					fmt.Sprint(want), "default/a")
			}
		}
	}
}

func TestBadListsAreRefusedAsTheRealOneRefusesThem(t *testing.T) {
	p, v := stagePair(t)
	token := func(rv int64) string {
		return must(realstorage.EncodeContinue(prefix+"/default/a\x00", prefix+"/", rv))
	}
	for what, c := range map[string]struct {
		query
		want string
	}{
		"a garbage token":                   {query{limit: 1, token: "x!"}, "400 BadRequest"},
		"a token of revision 0":             {query{limit: 1, token: token(0)}, "400 BadRequest"},
		"a token that gave up its revision": {query{limit: 1, token: token(-1)}, "page at " + v["now"]},
		"a token from the future":           {query{limit: 1, token: token(100000)}, "504 Timeout"},
		"a token of an old revision":        {query{limit: 1, token: token(3)}, "page at 3"},
		"a token and a version":             {query{limit: 1, token: token(5), rv: v["now"]}, "400 BadRequest"},
		"a token and version 0":             {query{limit: 1, token: token(-1), rv: "0"}, "page at"},
		"a token for one object":            {query{limit: 1, token: token(5), namespace: "default", name: "a"}, ""},
		"a token that leads out": {query{limit: 1,
			token: "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NSwic3RhcnQiOiIuLi8uLi9hIn0"}, "400 BadRequest"},
		"an unknown namespace with its name": {query{namespace: "default/a"}, "page at"},
	} {
		for name, sides := range map[string][2]side{"cache": {p.ourCache, p.theirCache}, "store": {p.ourStore,
			p.theirStore}} {
			a, b := listAll(t.Context(), sides[0], c.query), listAll(t.Context(), sides[1], c.query)
			// ours puts what came from outside in quotes
			same(t, what+", "+name, strings.ReplaceAll(a, `\"`, ""), b, c.want)
		}
	}
}

func TestACacheThatIsNotReadyRefusesAsTheRealOneDoes(t *testing.T) {
	supportProgress(t)
	silent := func() *feed { return &feed{events: make(chan watch.Event)} }
	mine, real := ours{startOurCache(t, ourFeed{feed: silent()}, nil)},
		theirs{startTheirCache(t, theirFeed{feed: silent()})}
	for _, q := range []query{{}, {rv: "0"}, {rv: "0", label: "a=b", limit: 1},
		{rv: "7", match: metav1.ResourceVersionMatchNotOlderThan}, {namespace: "a", name: "b"}} {
		what := fmt.Sprintf("%+v", q)
		same(t, "list "+what, listAll(t.Context(), mine, q), listAll(t.Context(), real, q),
			`429 TooManyRequests "storage is (re)initializing" retry after a moment`)
		a, b := startStream(t.Context(), mine, q), startStream(t.Context(), real, q)
		same(t, "watch "+what, fmt.Sprint(a.sofar()), fmt.Sprint(b.sofar()),
			`429 TooManyRequests "storage is (re)initializing" retry after a moment`)
	}
}

func TestASlowWatcherKeepsWhatItsResultHoldsAndIsClosed(t *testing.T) {
	p, v := stagePair(t)
	q := query{rv: v["now"]}
	one, other := must(p.ourCache.watch(t.Context(), q)), must(p.theirCache.watch(t.Context(), q))
	readers := []*stream{startStream(t.Context(), p.ourCache, q), startStream(t.Context(), p.theirCache, q)}
	for i := range 40 {
		p.write(fmt.Sprintf("+slow/pod-%02d", i))
	}
	// No client reads the first two. Both have ten events in result, one in hand, ten in input, and are closed at the
	// next. One event is dispatched after the other: when the last has come to those who read, that has happened.
	for _, each := range readers {
		eventually.Holds(t, "the last event for who reads",
			func() bool { return strings.Contains(fmt.Sprint(each.sofar()), "slow/pod-39") })
		each.stop()
	}
	a, b := readToTheEnd(one), readToTheEnd(other)
	same(t, "a slow watcher", strings.Join(a, "\n        "), strings.Join(b, "\n        "), "slow/pod-09")
	assert.True(t, len(b) == 11 && b[10] == "closed",
		"got %d events, want the 10 that result holds and then the end", len(b))
}

// readToTheEnd returns all that is left in a watch. One that has no end is stopped after a while.
func readToTheEnd(w watch.Interface) []string {
	st := &stream{watch: w, done: make(chan struct{})}
	go st.collect()
	select {
	case <-st.done:
	case <-time.After(5 * time.Second):
		st.say("no end")
		st.stop()
	}
	return st.sofar()
}
