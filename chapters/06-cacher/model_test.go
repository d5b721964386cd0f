package cacher

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/watch"
	"pgregory.net/rapid"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/rules"
)

// The one thing that all of this is for: whatever happens, what a watcher sees is the history of the storage after its
// version, filtered by its selector; in order, nothing twice, nothing missing, up to the point where it ends. And on the
// way no rule is broken. That both would notice a fault is tested where they are: in internal/rules.

// attributes are what selectors look at in this test: "app=1", "node=n2".
type attributes []string

// history is what the storage has gone through.
type history = rules.History[attributes]

// subject is one watcher, with what it should and does see.
type subject struct {
	w      watch.Interface
	view   rules.View[attributes]
	asks   storage.ListOptions
	scope  string
	text   string
	closed bool
	seen   []rules.Seen
	gone   bool // refused with 410: what it missed it will list
}

// read takes up to n events. Bookmarks are left to the rules.
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
	if event.Type == watch.Error {
		s.gone = true
		return
	}
	accessor := must(meta.Accessor(event.Object))
	rv := must(strconv.ParseUint(accessor.GetResourceVersion(), 10, 64))
	if event.Type != watch.Bookmark {
		s.seen = append(s.seen, rules.Seen{Type: string(event.Type), Key: accessor.GetNamespace() + "/" + accessor.GetName(), RV: rv})
	}
}

// check returns what is wrong, "" if nothing is.
func (s *subject) check(h *history) string {
	if s.gone && len(s.seen) == 0 {
		return ""
	}
	if fault := h.Check(s.view, s.seen, s.closed); fault != "" {
		return s.text + " " + fault
	}
	return ""
}

// step is one thing that happens; a and b say to whom.
type step struct {
	Do   string
	A, B int
}

var steps = []string{
	"write", "write", "write", "write", "write", "delete", "watch", "watch", "read", "stop", "resume", "expire", "compact", "progress", "wait",
}

func (f *fixture) play(h *history, script []step) string {
	var subjects []*subject
	for _, s := range script {
		switch s.Do {
		case "write", "delete":
			f.write(h, s)
		case "watch":
			subjects = append(subjects, f.subscribe(h, s))
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
				subjects = append(subjects, f.resume(subjects[s.A%len(subjects)])...)
			}
		case "compact":
			rev := f.etcd.Revision() - int64(s.B)
			if f.etcd.Compact(rev) == nil {
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
	records, ok := f.log.Since(nil, 0, 1<<20)
	if breaches := rules.New().Apply(records); !ok || len(breaches) > 0 {
		return fmt.Sprint(breaches)
	}
	return ""
}

func (f *fixture) write(h *history, s step) {
	id := []string{"default/a", "default/b", "kube-system/a", "kube-system/c"}[s.A%4]
	now := &attributes{fmt.Sprint("app=", s.B%2), fmt.Sprint("node=n", s.B%3)}
	var rv string
	switch {
	case s.Do == "delete" && h.At(id) != nil:
		rv, now = f.remove(id), nil
	case h.At(id) == nil:
		rv = f.create(id, *now...)
	default:
		rv = f.update(id, *now...)
	}
	h.Write(must(strconv.ParseUint(rv, 10, 64)), id, now)
	if s.B%2 == 0 {
		synctest.Wait()
	}
}

func (f *fixture) subscribe(h *history, s step) *subject {
	out := &subject{view: rules.View[attributes]{From: 1}}
	if versions := h.Versions(); len(versions) > 0 {
		out.view.From = versions[len(versions)-1-s.A%min(len(versions), 6)] // from a little while ago
	}
	scope := []string{"", "", "/default"}[s.B%3]
	selector := [][3]string{{}, {"app=1", "app=1"}, {"node=n1", "", "spec.nodeName=n1"}}[s.A%3]
	out.view.Matches = func(key string, state attributes) bool {
		return strings.HasPrefix("/"+key, scope) && (selector[0] == "" || slices.Contains(state, selector[0]))
	}
	out.text = fmt.Sprintf("watching %q, %q", scope, selector[0])
	out.scope, out.asks = scope, withBookmarks(selecting(fmt.Sprint(out.view.From), selector[1], selector[2]))
	f.open(out)
	return out
}

func (f *fixture) open(s *subject) {
	w, err := f.store.Watch(f.ctx, prefix+s.scope, s.asks)
	if err != nil {
		s.w, s.closed = newImmediateCloseWatcher(), true // refused with 429: sees nothing
		return
	}
	s.w = w
}

// resume does what a client does whose stream has ended: it asks again, from the version it has reached.
func (f *fixture) resume(s *subject) []*subject {
	s.read(1 << 20)
	if !s.closed || s.gone {
		return nil
	}
	again := &subject{view: s.view, asks: s.asks, scope: s.scope, text: "again " + s.text}
	if n := len(s.seen); n > 0 {
		again.view.From = s.seen[n-1].RV
		again.asks.ResourceVersion = fmt.Sprint(again.view.From)
	}
	f.open(again)
	return []*subject{again}
}

func TestWhateverHappensAWatcherSeesItsPartOfTheHistory(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		script := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) step {
			return step{rapid.SampledFrom(steps).Draw(r, "do"), rapid.IntRange(0, 30).Draw(r, "a"), rapid.IntRange(0, 30).Draw(r, "b")}
		}), 1, 150).Draw(r, "script")
		capacity := rapid.SampledFrom([]int{0, 3, 10, 50}).Draw(r, "ring")
		mode := rapid.SampledFrom([]Mode{TwoPhase, Sequential}).Draw(r, "mode")
		stream := rapid.Bool().Draw(r, "stream")
		fault := ""
		change := func(c *Config) {
			withTrigger(c)
			c.RingCapacity, c.Dispatch, c.UseWatchList = capacity, mode, stream
		}
		run(t, change, func(f *fixture) { fault = f.play(&history{}, script) })
		if fault != "" {
			r.Fatal(fault)
		}
	})
}
