package cacher

import (
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"listwatch/internal/check/require"
	"listwatch/internal/observe/rules"
)

// The one thing that all of this is for: whatever happens, what a watcher sees is the history of the storage after its
// version, filtered by its selector; in order, nothing twice, nothing missing, up to the point where it ends. If it
// asks for the state first, that is the state of one version, and what follows is the history after it; and a list,
// too, is the state of the version that it bears. And on the way no rule is broken. That all of this would notice a
// fault is tested where it is: in internal/observe/rules.

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
	records, ok := f.log.Since(nil, 0, logSize)
	if !ok {
		return "the log has not kept everything"
	}
	if breaches := rules.New().Apply(records); len(breaches) > 0 {
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

// subscribe begins a watch: from a little while ago, or with the state, be it any or the newest.
func (f *fixture) subscribe(h *history, s step) *subject {
	out := &subject{question: ask(s), initial: s.Do == "watch state"}
	switch {
	case !out.initial:
		out.view.From = max(recent(h, s.A/3), 1)
		out.asks.ResourceVersion = fmt.Sprint(out.view.From)
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
		s.least = lastOf(h)
	}
	w, err := f.store.Watch(f.ctx, prefix+s.key, s.asks)
	if err != nil {
		s.w, s.closed = newImmediateCloseWatcher(), true // refused with 429: sees nothing
		return
	}
	s.w = w
}

// resume does what a client does whose stream has ended: it asks again, from the version it has reached, or from the
// beginning if it has none.
func (f *fixture) resume(h *history, s *subject) []*subject {
	s.read(1 << 20)
	if !s.closed || s.gone != nil {
		return nil
	}
	again := &subject{question: s.question, initial: s.initial && s.end == 0}
	again.text = "again " + s.text
	if !again.initial {
		if again.view.From = max(s.view.From, s.end); len(s.seen) > 0 {
			again.view.From = s.seen[len(s.seen)-1].RV
		}
		again.asks.SendInitialEvents = nil
		again.asks.ResourceVersion = fmt.Sprint(again.view.From)
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
		mode := rapid.SampledFrom([]Mode{TwoPhase, Sequential}).Draw(r, "mode")
		stream := rapid.Bool().Draw(r, "stream")
		fault := ""
		change := func(c *Config) {
			withTrigger(c)
			c.RingCapacity, c.Dispatch, c.UseWatchList = capacity, mode, stream
		}
		run(t, change, func(f *fixture) { fault = f.play(newHistory(), script) })
		require.Equal(r, fault, "")
	})
}
