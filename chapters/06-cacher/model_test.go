package cacher

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"pgregory.net/rapid"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/rules"
)

// The one thing that all of this is for: whatever happens, what a watcher sees is the history of the storage after its
// version, filtered by its selector; in order, nothing twice, nothing missing, up to the point where it ends. If it
// asks for the state first, that is the state of one version, and what follows is the history after it; and a list,
// too, is the state of the version that it bears. And on the way no rule is broken; that a rule notices its fault is
// tested in internal/observe/rules. A history that were wrong itself would differ from what watchers see.

// step is one thing that happens; a and b say to whom.
type step struct {
	Do   string
	A, B int
}

var steps = []string{
	"write", "write", "write", "write", "write", "delete", "burst", "watch", "watch", "watch state", "list", "list",
	"read", "stop", "resume",
	"expire", "compact", "progress", "wait",
}

func (f *fixture) play(h *history, script []step) string {
	var subjects []*subject
	for _, s := range script {
		switch s.Do {
		case "write", "delete":
			f.write(h, s)
		case "burst": // enough for the ring to grow, and for slow readers to be closed
			for i := range 40 + 3*s.A {
				f.write(h, step{"write", i, s.B | 1})
			}
		case "watch", "watch state":
			subjects = append(subjects, f.subscribe(h, s))
		case "list":
			if fault := f.readList(h, s); fault != "" {
				return fault
			}
		case "read", "stop":
			if len(subjects) > 0 {
				subject := subjects[s.A%len(subjects)]
				if s.Do == "stop" {
					subject.w.Stop()
				}
				subject.read(s.B)
			}
		case "resume":
			if len(subjects) > 0 {
				subjects = append(subjects, f.resume(h, subjects[s.A%len(subjects)])...)
			}
		case "compact":
			rev := f.etcd.Revision() - int64(s.B)
			if f.etcd.CompactHistory(f.ctx, rev) == nil {
				f.compaction.Store(rev)
			}
		case "expire":
			f.etcd.FailWatches("etcdserver: mvcc: required revision has been compacted")
		case "progress":
			f.etcd.Put("/registry/nodes/n", []byte("{}"))
			_ = f.store.GetList(f.ctx, prefix, everything(""), newPodList()) // makes the cache ask for progress
		case "wait":
			time.Sleep(time.Duration(s.B) * 100 * time.Millisecond)
		}
	}
	time.Sleep(5 * time.Second) // a relist, a slow watcher's end
	return f.verdict(h, subjects)
}

func (f *fixture) verdict(h *history, subjects []*subject) string {
	for _, s := range subjects {
		s.read(1 << 20)
		if fault := s.check(h); fault != "" {
			return fault
		}
		s.w.Stop()
		s.read(1 << 20)
	}
	records, ok := f.log.Since(nil, 0, logSize)
	if !ok {
		return "the log has not kept everything"
	}
	if breaches := rules.New().Apply(records); len(breaches) > 0 {
		return fmt.Sprint(breaches)
	}
	return ""
}

// recent returns the n-th last version, counted round among the last six; 0 if there are none.
func recent(h *history, n int) uint64 {
	if len(*h) == 0 {
		return 0
	}
	return (*h)[len(*h)-1-n%min(len(*h), 6)].RV
}

func (f *fixture) write(h *history, s step) {
	id := []string{"default/a", "default/b", "kube-system/a", "kube-system/c"}[s.A%4]
	now := fmt.Sprintf("app=%d node=n%d", s.B%2, s.B%3)
	var rv string
	switch {
	case s.Do == "delete" && h.newest(id) != "":
		rv, now = f.remove(id), ""
	case h.newest(id) == "":
		rv = f.create(id, strings.Fields(now)...)
	default:
		rv = f.update(id, strings.Fields(now)...)
	}
	h.write(must(strconv.ParseUint(rv, 10, 64)), id, now)
	if s.B%2 == 0 {
		synctest.Wait()
	}
}

// subscribe begins a watch: from a little while ago, or with the state, be it any or the newest.
func (f *fixture) subscribe(h *history, s step) *subject {
	out := &subject{question: ask(s), initial: s.Do == "watch state"}
	switch {
	case !out.initial:
		out.From = max(recent(h, s.A/3), 1)
		out.asks.ResourceVersion = fmt.Sprint(out.From)
		out.asks = withBookmarks(out.asks)
	default:
		out.asks = watchList(out.asks)
		if s.B%2 == 0 {
			out.asks.ResourceVersion = "0"
		}
	}
	f.open(h, out)
	return out
}

func (f *fixture) open(h *history, s *subject) {
	if s.initial && s.asks.ResourceVersion == "" {
		s.least = recent(h, 0)
	}
	w, err := f.store.Watch(f.ctx, prefix+s.key, s.asks)
	if err != nil {
		s.w, s.closed = newImmediateCloseWatcher(), true // refused with 429: sees nothing
		return
	}
	s.w = w
}

// resume watches again, as a client does, from the version that was reached, or from the beginning if there is none.
func (f *fixture) resume(h *history, s *subject) []*subject {
	s.read(1 << 20)
	if !s.closed || s.gone != nil {
		return nil
	}
	again := &subject{question: s.question, initial: s.initial && s.end == 0}
	again.text = "again " + s.text
	if !again.initial {
		if again.From = max(s.From, s.end); len(s.seen) > 0 {
			again.From = s.seen[len(s.seen)-1].RV
		}
		again.asks.SendInitialEvents = nil
		again.asks.ResourceVersion = fmt.Sprint(again.From)
	}
	f.open(h, again)
	return []*subject{again}
}

func TestWhateverHappensAWatcherSeesItsPartOfTheHistory(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		script := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) step {
			return step{rapid.SampledFrom(steps).Draw(r, "do"), rapid.IntRange(0, 30).Draw(r, "a"), rapid.IntRange(0,
				30).Draw(r, "b")}
		}), 40, 150).Draw(r, "script")
		capacity := rapid.SampledFrom([]int{0, 3, 10, 50}).Draw(r, "ring")
		mode := rapid.SampledFrom([]string{TwoPhase, Sequential}).Draw(r, "mode")
		stream := rapid.Bool().Draw(r, "stream")
		fault := ""
		change := func(c *Config) {
			withTrigger(c)
			c.RingCapacity, c.Dispatch, c.UseWatchList = capacity, mode, stream
		}
		run(t, change, func(f *fixture) { fault = f.play(&history{}, script) })
		require.Equal(r, "", fault)
	})
}

// question is what a watcher or a list asks for, in the words of the history and of the storage.
type question struct {
	view
	key   string // below the prefix
	asks  storage.ListOptions
	text  string
	least uint64 // a state that it is given must be as new as this
}

// ask returns a question without a version, about everything, a namespace or a pod, with or without a selector.
func ask(s step) question {
	scope := []string{"", "", "/default", "/kube-system", "/default/a"}[s.B%5]
	selector := [][3]string{{}, {"app=1", "app=1"}, {"node=n1", "", "spec.nodeName=n1"}}[s.A%3]
	q := question{key: scope, text: fmt.Sprintf("asking for %q, %q", scope, selector[0])}
	q.Wants = func(key, state string) bool {
		selected := selector[0] == "" || slices.Contains(strings.Fields(state), selector[0])
		return selected && strings.HasPrefix("/"+key+"/", scope+"/")
	}
	q.asks = selecting("", selector[1], selector[2])
	q.asks.Recursive = scope != "/default/a"
	return q
}

// subject is one watcher, with what it does see.
type subject struct {
	question
	w      watch.Interface
	closed bool
	gone   error // refused with 410 or 504: what it missed it will list

	initial bool        // it asked for the state first
	state   []delivered // the initial events that it was sent
	end     uint64      // the version at which that was, 0 while its end has not come
	seen    []delivered // the events after them
}

// read takes up to n events. Bookmarks but for the one that ends the initial events are left to the rules.
func (s *subject) read(n int) {
	for ; n > 0 && !s.closed; n-- {
		synctest.Wait()
		select {
		case event, ok := <-s.w.ResultChan():
			if !ok {
				s.closed = true
				return
			}
			s.note(event)
		default:
			return
		}
	}
}

func (s *subject) note(event watch.Event) {
	switch event.Type {
	case watch.Error:
		s.gone = apierrors.FromObject(event.Object)
	case watch.Bookmark:
		if accessor := must(meta.Accessor(
			event.Object)); accessor.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "" {
			s.end = must(strconv.ParseUint(accessor.GetResourceVersion(), 10, 64))
		}
	default:
		told := look(string(event.Type), event.Object)
		if s.initial && s.end == 0 {
			s.state = append(s.state, told)
			return
		}
		s.seen = append(s.seen, told)
	}
}

// look returns what can be seen of a pod.
func look(typ string, object runtime.Object) delivered {
	if cacheable, ok := object.(runtime.CacheableObject); ok {
		object = cacheable.GetObject()
	}
	p := object.(*corev1.Pod)
	rv := must(strconv.ParseUint(p.ResourceVersion, 10, 64))
	return delivered{Type: typ, Key: p.Namespace + "/" + p.Name, RV: rv,
		State: "app=" + p.Labels["app"] + " node=" + p.Spec.NodeName}
}

// check returns what is wrong, "" if nothing is.
func (s *subject) check(h *history) string {
	part := s.view
	switch {
	case s.gone != nil && !apierrors.IsResourceExpired(s.gone) && !apierrors.IsTimeout(s.gone):
		return s.text + " was refused: " + s.gone.Error()
	case s.gone != nil && len(s.seen) == 0:
		return ""
	case s.initial && s.end == 0 && s.closed:
		return "" // it will begin again: what it was sent is worth nothing
	case s.initial && s.end == 0:
		return s.text + " is still open, and its initial events have no end"
	case s.initial:
		if fault := wrongState(h, s.question, s.state, s.end); fault != "" {
			return fault
		}
		part.From = s.end
	}
	if fault := h.check(part, s.seen, s.closed); fault != "" {
		return s.text + " " + fault
	}
	return ""
}

// wrongState returns what is wrong with a state that is said to be that at rv, "" if nothing is.
func wrongState(h *history, q question, state []delivered, rv uint64) string {
	if rv < q.least {
		return fmt.Sprintf("%s, at %d or later: was given the state at %d", q.text, q.least, rv)
	}
	if want := h.state(q.view, rv); !slices.Equal(state, want) {
		return fmt.Sprintf("%s: as the state at %d was given\n %v\nwant\n %v", q.text, rv, state, want)
	}
	return ""
}

// readList asks for a list, of one version or the other and in pages or not, and returns what is wrong with it. A pod
// is written between two pages.
func (f *fixture) readList(h *history, s step) string {
	q, exact := ask(s), uint64(0)
	switch s.B / 5 % 4 {
	case 0: // the newest
		q.least = recent(h, 0)
	case 1: // any
		q.asks.ResourceVersion = "0"
	case 2: // one of the last
		if exact = recent(h, s.A/3); exact > 0 {
			q.asks.ResourceVersion, q.asks.ResourceVersionMatch = fmt.Sprint(exact), metav1.ResourceVersionMatchExact
		}
	case 3: // the newest, in pages
		q.least, q.asks.Predicate.Limit = recent(h, 0), int64(1+s.A%3)
	}
	var found []delivered
	var rv uint64
	for page := 0; ; page++ {
		list := &corev1.PodList{}
		err := f.store.GetList(f.ctx, prefix+q.key, q.asks, list)
		if apierrors.IsResourceExpired(err) || apierrors.IsTooManyRequests(err) || apierrors.IsTimeout(err) {
			return "" // an honest answer, which the other tests ask for where it belongs
		}
		if err != nil {
			return q.text + ": " + err.Error()
		}
		at := must(strconv.ParseUint(list.ResourceVersion, 10, 64))
		if page > 0 && at != rv || exact > 0 && at != exact {
			return fmt.Sprintf("%s: page %d is of %d, want %d", q.text, page, at, max(rv, exact))
		}
		rv = at
		for i := range list.Items {
			found = append(found, look("ADDED", &list.Items[i]))
		}
		if q.asks.Predicate.Continue = list.Continue; list.Continue == "" {
			return wrongState(h, q, found, rv)
		}
		f.write(h, step{"write", s.A + page, s.B})
	}
}
