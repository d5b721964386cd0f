package sidebyside

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	realhandlers "k8s.io/apiserver/pkg/endpoints/handlers"
	realnegotiation "k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/registry/rest"
	realstorage "k8s.io/apiserver/pkg/storage"
	storeerr "k8s.io/apiserver/pkg/storage/errors"
	"k8s.io/utils/clock"
	"pgregory.net/rapid"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/eventually"
	"listwatch/internal/check/require"
	"listwatch/internal/kube/negotiation"
	"listwatch/internal/kube/scheme"
)

// same fails the test if two texts differ, or if theirs does not contain want.
func same(t *testing.T, what, ours, theirs, want string) {
	t.Helper()
	assert.Equal(t, theirs, ours, "%s:\n   ours %s\n theirs %s", what, ours, theirs)
	assert.True(t, strings.Contains(theirs, want), "%s: the real one says %s, want %s", what, theirs, want)
}

func TestEveryGetIsWhatTheRealOneGives(t *testing.T) {
	t.Parallel()
	p, v := stagePair(t)
	get := func(s side, id, rv string, ignore bool) string {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "what was here before"}}
		if err := s.get(t.Context(), prefix+"/"+id, rv, ignore, pod); err != nil {
			return describeError(err)
		}
		return describePod("", pod)
	}
	var asked sync.WaitGroup // concurrent, because some requests wait three seconds for a version that never comes
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
	t.Parallel()
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
	t.Parallel()
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
			// Our server quotes values that clients have sent. The comparison ignores these quotes.
			same(t, what+", "+name, strings.ReplaceAll(a, `\"`, ""), b, c.want)
		}
	}
}

// TestUpstreamDoesNotAskForALostCreateAgain checks that upstream turns etcd's timeout into a 500 without a time to
// retry, so no client repeats the request. TestAWriteThatMayHaveHappenedIsNotToBeRepeated tests our server.
func TestUpstreamDoesNotAskForALostCreateAgain(t *testing.T) {
	status := responsewriters.ErrorToAPIStatus(storeerr.InterpretCreateError(rpctypes.ErrTimeout,
		corev1.Resource("configmaps"), "a"))
	assert.True(t, status.Code == 500 && status.Details == nil && status.Message == rpctypes.ErrTimeout.Error(),
		"got %+v", status)
}

func TestACacheThatIsNotReadyRefusesAsTheRealOneDoes(t *testing.T) {
	t.Parallel()
	silent := func() *feed { return &feed{events: make(chan watch.Event)} }
	mine, real := ours{startOurCache(t, ourSource{source: silent()}, nil, clock.RealClock{})},
		theirs{startTheirCache(t, theirSource{source: silent()}, clock.RealClock{})}
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
	// No client reads the first two watches. Each holds ten events in result, one in hand and ten in input; the next
	// event ends the watch. The readers get each event before the next write, because a burst could end them, too.
	for i := range 40 {
		p.write(fmt.Sprintf("+slow/pod-%02d", i))
		for _, each := range readers {
			eventually.Holds(t, "the readers get the event",
				func() bool { return strings.Contains(fmt.Sprint(each.sofar()), fmt.Sprintf("slow/pod-%02d", i)) })
		}
	}
	for _, each := range readers {
		each.stop()
	}
	a, b := readToTheEnd(one), readToTheEnd(other)
	same(t, "a slow watcher", strings.Join(a, "\n        "), strings.Join(b, "\n        "), "slow/pod-09")
	assert.True(t, len(b) == 11 && b[10] == "closed",
		"got %d events, want the 10 that result holds and then the end", len(b))
}

// readToTheEnd returns the remaining events of a watch. It stops a watch that does not end.
func readToTheEnd(w watch.Interface) []string {
	st := &stream{watch: w, done: make(chan struct{})}
	go st.collect()
	select {
	case <-st.done:
	case <-time.After(patience):
		st.say("no end")
		st.stop()
	}
	return st.sofar()
}

// keysOf returns every key of up to n of the segments below, and some keys without a leading slash.
func keysOf(n int) []string {
	segments := []string{"", ".", "..", "registry", "pods", "podsmore", "a"}
	keys := []string{""}
	for first := 0; n > 0; n-- {
		last := len(keys)
		for _, key := range keys[first:last] {
			for _, segment := range segments {
				keys = append(keys, key+"/"+segment)
			}
		}
		first = last
	}
	return append(keys, ".", "..", "a", "./a", "../a", "registry/pods/a")
}

// TestAKeyIsPreparedAsTheRealOneIs prepares many keys on both sides. It allows two differences: ours accepts a key only
// if the prefix ends where a segment ends, and never accepts the prefix itself as an object's key. (The prefixes of
// upstream's stores end in a slash, which has the same effect. Here both sides get a prefix without a slash.)
func TestAKeyIsPreparedAsTheRealOneIs(t *testing.T) {
	declared, accepted := 0, 0
	for _, key := range keysOf(5) {
		for _, recursive := range []bool{false, true} {
			ours, ourErr := storage.PrepareKey(prefix, key, recursive)
			theirs, theirErr := realstorage.PrepareKey(prefix, key, recursive)
			if ourErr != nil && theirErr == nil && !storage.HasPathPrefix(theirs, prefix) && strings.HasPrefix(theirs,
				prefix) {
				declared++
				continue
			}
			if key == prefix && !recursive && ourErr != nil {
				declared++
				continue
			}
			assert.True(t, ours == theirs && (ourErr == nil) == (theirErr == nil),
				"%q, recursive %t: ours %q, %v; theirs %q, %v", key, recursive, ours, ourErr, theirs, theirErr)
			if theirErr == nil {
				accepted++
			}
		}
	}
	assert.True(t, declared != 0 && accepted >= 300,
		"%d keys accepted, %d refused by us alone: too few to compare anything", accepted, declared)
}

// TestAcceptIsNegotiatedAsUpstreamDoes compares both sides' choices for random Accept headers, valid or not.
func TestAcceptIsNegotiatedAsUpstreamDoes(t *testing.T) {
	ours := slices.DeleteFunc(scheme.Codecs.SupportedMediaTypes(), func(info runtime.SerializerInfo) bool {
		return info.MediaType != negotiation.JSON && info.MediaType != negotiation.YAML
	})
	scope := &realhandlers.RequestScope{
		TableConvertor: rest.NewDefaultTableConvertor(schema.GroupResource{}), MetaGroupVersion: schema.GroupVersion{
			Version: "v1"},
	}
	clause := rapid.Custom(func(t *rapid.T) string {
		return rapid.SampledFrom([]string{
			"*/*", "*", "application/*", "application/json", "application/yaml", "application/vnd.kubernetes.protobuf",
			"text/html", "json", "",
		}).Draw(t, "type") + strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{
			";q=0", ";q=0.3", "; q=1.0", ";q=x", ";as=Table;g=meta.k8s.io;v=v1",
			";as=PartialObjectMetadata;g=meta.k8s.io;v=v1beta1",
			";as=Pod", ";g=meta.k8s.io", ";stream=watch", ";stream=x", ";sv=v1", ";sv=v2", ";pretty=1", ";pretty=0",
			";charset=utf-8", ";",
		}), 0, 3).Draw(t, "parameters"), "")
	})
	upstream := func(header string) (negotiation.MediaType, bool) {
		media, ok := realnegotiation.NegotiateMediaTypeOptions(header, ours, scope)
		return negotiation.MediaType{Name: media.Accepted.MediaType, Convert: media.Convert, Pretty: media.Pretty}, ok
	}
	rapid.Check(t, func(t *rapid.T) {
		header := strings.Join(rapid.SliceOfN(clause, 1, 5).Draw(t, "clauses"), ",")
		got, ok := negotiation.Accept(header, negotiation.AllowsTransform)
		want, wantOK := upstream(header)
		if ok != wantOK || got.Name != want.Name || got.Pretty != want.Pretty ||
			(got.Convert == nil) != (want.Convert == nil) || got.Convert != nil && *got.Convert != *want.Convert {
			t.Errorf("Accept: %s: got %+v, %v, upstream %+v, %v", header, got, ok, want, wantOK)
		}
	})
}
