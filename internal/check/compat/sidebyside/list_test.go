package sidebyside

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	realstorage "k8s.io/apiserver/pkg/storage"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/eventually"
	"listwatch/internal/check/require"
)

// of returns the query narrowed to scope, "namespace" or "namespace/name", and to a label or field selector.
func (q query) of(scope, selector string) query {
	q.namespace, q.name, _ = strings.Cut(scope, "/")
	if strings.Contains(selector, ".") {
		q.field = selector
	} else {
		q.label = selector
	}
	return q
}

// lists returns list queries with every combination of the options below, by descriptive names.
func (v versions) lists() map[string]query {
	all := map[string]query{}
	for _, version := range v.names() {
		for _, match := range []metav1.ResourceVersionMatch{"", metav1.ResourceVersionMatchExact,
			metav1.ResourceVersionMatchNotOlderThan} {
			for _, limit := range []int64{0, 1, 2, 100} {
				for _, selector := range []string{"", "app=x", "spec.nodeName=n1", "metadata.name=a"} {
					for _, scope := range []string{"", "default", "default/a", "default/none", "nowhere"} {
						all[fmt.Sprintf("list %q at %s match=%q limit=%d selecting %q", scope, version, match, limit,
							selector)] = query{rv: v[version], match: match, limit: limit}.of(scope, selector)
					}
				}
			}
		}
	}
	return all
}

// listAll follows a list from page to page, ten pages at most, and describes each page.
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
		// Later pages specify no version, because the token contains it.
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

// describeToken returns the position at which a token continues. The tokens' bytes may differ: for object a in a
// namespace, upstream's cache writes "/a"; our cache and both stores write "a". Either cache reads both.
func describeToken(token, key string) string {
	from, rv, err := realstorage.DecodeContinue(token, key+"/")
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("at %d from %q", rv, from)
}

// askBoth compares all lists of both sides, concurrently: some wait three seconds for a version that never comes.
func askBoth(t *testing.T, queries map[string]query, one, other side) {
	t.Helper()
	var mu sync.Mutex // guards wrong and pages
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

// TestEveryListIsWhatTheRealOneGives compares the stores' lists and the caches' lists, before and after a compaction.
func TestEveryListIsWhatTheRealOneGives(t *testing.T) {
	t.Parallel()
	p, v := stagePair(t)
	askBoth(t, v.lists(), p.ourStore, p.theirStore)
	askBoth(t, v.lists(), p.ourCache, p.theirCache)
	p.compact(v["history"])
	askBoth(t, v.lists(), p.ourStore, p.theirStore)
	askBoth(t, v.lists(), p.ourCache, p.theirCache)
}

// compact compacts etcd at rv.
func (p *pair) compact(rv string) {
	p.tb.Helper()
	rev := must(strconv.ParseInt(rv, 10, 64))
	require.Value(p.client.Compact(context.Background(), rev, clientv3.WithCompactPhysical()))(p.tb)
}

// The history of these tests has three parts: before the caches start, before the watches start, and while they run.
// Objects are created, deleted and created again, enter and leave selectors, and change together.
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

// versions holds the resource versions at which the lists and watches start, by name.
type versions map[string]string

func (v versions) names() []string {
	return []string{"none", "zero", "ancient", "list", "history", "now", "future", "garbage"}
}

// stagePair starts both sides and writes the history up to the start of the watches.
func stagePair(t *testing.T) (*pair, versions) {
	v := versions{"none": "", "zero": "0", "garbage": "x", "future": "100000"}
	p := newPair(t, func(p *pair) {
		v["ancient"] = p.writeAll(beforeCaches[:3]...)
		v["list"] = p.writeAll(beforeCaches[3:]...)
	})
	tails := []*stream{startStream(t.Context(), p.ourCache, query{}), startStream(t.Context(), p.theirCache, query{})}
	v["history"] = p.writeAll(beforeWatches[:3]...)
	v["now"] = p.writeAll(beforeWatches[3:]...)
	p.bothReach(v["now"])
	for _, tail := range tails { // a dispatcher with a backlog would evict a watcher whose goroutine has not begun
		eventually.Holds(t, "the last write is dispatched",
			func() bool { return strings.Contains(fmt.Sprint(tail.sofar()), "rv="+v["now"]) })
		tail.stop()
	}
	return p, v
}

// queries returns watch queries with every combination of the options below, by descriptive names.
func (v versions) queries() map[string]query {
	all := map[string]query{}
	yes, no := true, false
	for _, version := range v.names() {
		for initial, ptr := range map[string]*bool{"": nil, " initial": &yes, " no-initial": &no} {
			for _, bookmarks := range []bool{false, true} {
				for _, selector := range []string{"", "app=x", "app!=x", "spec.nodeName=n1", "metadata.name=a",
					"metadata.namespace=other"} {
					for _, scope := range []string{"", "default", "default/a", "nowhere"} {
						name := fmt.Sprintf("watch %q from %s%s bookmarks=%t selecting %q", scope, version, initial,
							bookmarks, selector)
						all[name] = query{rv: v[version], initial: ptr, bookmarks: bookmarks}.of(scope, selector)
					}
				}
			}
		}
	}
	return all
}

// watchBoth opens every watch on both sides, writes the rest of the history, and returns the dialogues.
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
	begun.Wait() // some watches wait three seconds for a version that never comes
	// A store reads a watch's initial state only after Watch has returned. The state must not contain the writes below.
	settle(dialogues)
	// A watcher has room for ten events. With five writes at a time, neither side closes a watcher as slow.
	for few := range slices.Chunk(whileWatching, 5) {
		p.bothReach(p.writeAll(few...))
		settle(dialogues)
	}
	t.Cleanup(func() {
		defer cancel()
		for _, d := range dialogues {
			d.ours.stop()
			d.theirs.stop()
		}
	})
	return dialogues
}

// compare fails the test if two streams of a dialogue differ (it shows up to 20 pairs), or if there are too few events.
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

// describeError returns what a client can see of an error: status code, reason, message, retry time, causes, continue
// token. For a StorageError, which the registry will translate, it returns the kind, the key and the version.
func describeError(err error) string {
	var status apierrors.APIStatus
	var mine *storage.StorageError
	var real *realstorage.StorageError
	switch {
	case errors.As(err, &mine):
		return fmt.Sprintf("storage error: not found=%t %s %d", storage.IsNotFound(err), mine.Key, mine.ResourceVersion)
	case errors.As(err, &real):
		return fmt.Sprintf("storage error: not found=%t %s %d", realstorage.IsNotFound(err), real.Key,
			real.ResourceVersion)
	case !errors.As(err, &status):
		return "error without a status: " + err.Error()
	}
	s := status.Status()
	return describeStatus(&s)
}

func describeStatus(s *metav1.Status) string {
	text := fmt.Sprintf("%d %s %q", s.Code, s.Reason, s.Message)
	if s.Details != nil && s.Details.RetryAfterSeconds != 0 {
		text += " retry after " + describeRetry(s.Details.RetryAfterSeconds)
	}
	if s.Details != nil {
		for _, cause := range s.Details.Causes {
			text += fmt.Sprintf(" cause %s", cause.Type)
		}
	}
	if s.Continue != "" {
		text += " continue " + s.Continue
	}
	return text
}

// describeRetry treats times up to three seconds alike: a store draws the time at random to spread its clients.
func describeRetry(seconds int32) string {
	if seconds <= 3 {
		return "a moment"
	}
	return fmt.Sprint(seconds)
}

func describeEvent(e watch.Event) string {
	switch obj := e.Object.(type) {
	case *metav1.Status:
		return "ERROR " + describeStatus(obj)
	case *corev1.Pod:
		return describePod(string(e.Type), obj)
	}
	return fmt.Sprintf("%s %T", e.Type, e.Object)
}

// describePod names all fields in which two pods of these tests can differ.
func describePod(prefix string, p *corev1.Pod) string {
	text := fmt.Sprintf("%s %s/%s rv=%s gen=%d node=%s labels=%v", prefix, p.Namespace, p.Name, p.ResourceVersion,
		p.Generation, p.Spec.NodeName, p.Labels)
	if len(p.Annotations) > 0 {
		text += fmt.Sprintf(" annotations=%v", p.Annotations)
	}
	return text
}

// stream collects the events of a watch.
type stream struct {
	watch watch.Interface
	done  chan struct{} // closed when the stream has ended or was refused

	mu   sync.Mutex // guards seen
	seen []string
}

// startStream starts a watch and collects its events. For a refused watch, the stream contains the error only.
func startStream(ctx context.Context, s side, q query) *stream {
	st := &stream{done: make(chan struct{})}
	w, err := s.watch(ctx, q)
	if err != nil {
		st.seen = []string{"refused: " + describeError(err)}
		close(st.done)
		return st
	}
	st.watch = w
	go st.collect()
	return st
}

func (s *stream) collect() {
	defer close(s.done)
	for event := range s.watch.ResultChan() {
		s.say(describeEvent(unwrapped(event)))
	}
	s.say("closed")
}

func (s *stream) say(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, what)
}

// sofar returns a copy of the events so far.
func (s *stream) sofar() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.seen...)
}

func (s *stream) stop() {
	if s.watch != nil {
		s.watch.Stop()
		<-s.done
	}
}

// dialogue is one watch on both sides.
type dialogue struct {
	name         string
	ours, theirs *stream
}

// settle returns when all streams equal their counterparts and have been silent for 300 ms, or after a minute. The
// silence is needed, because surplus events could still arrive.
func settle(dialogues []*dialogue) {
	before := ""
	for deadline := time.Now().Add(2 * patience); time.Now().Before(deadline); time.Sleep(300 * time.Millisecond) {
		all, equal := "", true
		for _, d := range dialogues {
			a, b := fmt.Sprint(d.ours.sofar()), fmt.Sprint(d.theirs.sofar())
			all += a + b
			equal = equal && a == b
		}
		if equal && all == before {
			return
		}
		before = all
	}
}

// unwrapped returns an event with the object itself. Upstream may wrap an object in another one that caches encodings.
func unwrapped(e watch.Event) watch.Event {
	if wrapped, ok := e.Object.(runtime.CacheableObject); ok {
		e.Object = wrapped.GetObject()
	}
	return e
}
