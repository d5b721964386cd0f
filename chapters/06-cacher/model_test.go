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
	"k8s.io/apimachinery/pkg/watch"
	"pgregory.net/rapid"
)

// The one thing that all of this is for: whatever happens, what a watcher sees is the history of the storage after its
// version, filtered by its selector; in order, nothing twice, nothing missing, up to the point where it ends.

// change is one write, as the model remembers it. A pod that is not there has attributes nil.
type change struct {
	rv       uint64
	id       string
	old, new []string
}

// model is what the storage has gone through.
type model struct {
	history []change
	pods    map[string][]string
}

// subject is one watcher, with what it should and does see.
type subject struct {
	w      watch.Interface
	from   uint64
	scope  string // "" or "/default"
	wants  string // an attribute, "" for all
	closed bool
	seen   []string
}

// expected returns what the watcher sees if it lives to the end.
func (m *model) expected(s *subject) []string {
	var events []string
	for _, c := range m.history {
		if c.rv <= s.from || !strings.HasPrefix("/"+c.id, s.scope) {
			continue
		}
		before, now := s.matches(c.old), s.matches(c.new)
		switch {
		case before && now:
			events = append(events, fmt.Sprintf("MODIFIED %s %d", c.id, c.rv))
		case now:
			events = append(events, fmt.Sprintf("ADDED %s %d", c.id, c.rv))
		case before:
			events = append(events, fmt.Sprintf("DELETED %s %d", c.id, c.rv))
		}
	}
	return events
}

func (s *subject) matches(attributes []string) bool {
	return attributes != nil && (s.wants == "" || slices.Contains(attributes, s.wants))
}

// read takes up to n events; it leaves bookmarks out, after checking that they do not go back.
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
	text := describeEvent(event)
	rv, ok := strings.CutPrefix(text, "BOOKMARK ")
	if !ok {
		s.seen = append(s.seen, text)
		return
	}
	if len(s.seen) > 0 {
		last := s.seen[len(s.seen)-1]
		if at := last[strings.LastIndex(last, " ")+1:]; len(rv) < len(at) || len(rv) == len(at) && rv < at {
			s.seen = append(s.seen, "bookmark "+rv+" after "+last)
		}
	}
}

// check returns what is wrong, "" if nothing is. complete says that the watcher should have seen everything by now.
func (m *model) check(s *subject) string {
	want := m.expected(s)
	if len(s.seen) > 0 && strings.HasPrefix(s.seen[0], "ERROR 410") {
		return "" // refused; what it missed it will list
	}
	if len(s.seen) > len(want) || !slices.Equal(s.seen, want[:len(s.seen)]) {
		return fmt.Sprintf("from %d %q %q: saw\n %v\nwant a prefix of\n %v", s.from, s.scope, s.wants, s.seen, want)
	}
	if !s.closed && len(s.seen) < len(want) {
		return fmt.Sprintf("from %d %q %q: open, and saw only %d of %d events", s.from, s.scope, s.wants, len(s.seen), len(want))
	}
	return ""
}

// step is one thing that happens; a and b say to whom.
type step struct {
	Do   string
	A, B int
}

var steps = []string{"write", "write", "write", "write", "write", "delete", "watch", "watch", "read", "stop", "expire", "progress", "wait"}

func (f *fixture) play(m *model, script []step) string {
	var subjects []*subject
	for _, s := range script {
		switch s.Do {
		case "write", "delete":
			f.write(m, s)
		case "watch":
			subjects = append(subjects, f.subscribe(m, s))
		case "read", "stop":
			if len(subjects) > 0 {
				subject := subjects[s.A%len(subjects)]
				if s.Do == "stop" {
					subject.w.Stop()
				}
				subject.read(s.B)
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
	return m.verdict(subjects)
}

func (m *model) verdict(subjects []*subject) string {
	for _, s := range subjects {
		s.read(1 << 20)
		if fault := m.check(s); fault != "" {
			return fault
		}
		s.w.Stop()
		s.read(1 << 20)
	}
	return ""
}

func (f *fixture) write(m *model, s step) {
	id := []string{"default/a", "default/b", "kube-system/a", "kube-system/c"}[s.A%4]
	attributes := []string{fmt.Sprint("app=", s.B%2), fmt.Sprint("node=n", s.B%3)}
	old := m.pods[id]
	var rv string
	switch {
	case s.Do == "delete" && old != nil:
		rv, attributes = f.remove(id), nil
	case old == nil:
		rv = f.create(id, attributes...)
	default:
		rv = f.update(id, attributes...)
	}
	m.pods[id] = attributes
	m.history = append(m.history, change{must(strconv.ParseUint(rv, 10, 64)), id, old, attributes})
	if s.B%2 == 0 {
		synctest.Wait()
	}
}

func (f *fixture) subscribe(m *model, s step) *subject {
	out := &subject{from: 1}
	if n := len(m.history); n > 0 {
		out.from = m.history[n-1-s.A%min(n, 6)].rv // from a little while ago
	}
	out.scope = []string{"", "", "/default"}[s.B%3]
	selector := [][3]string{{}, {"app=1", "app=1"}, {"node=n1", "", "spec.nodeName=n1"}}[s.A%3]
	out.wants = selector[0]
	opts := withBookmarks(selecting(fmt.Sprint(out.from), selector[1], selector[2]))
	w, err := f.store.Watch(f.ctx, prefix+out.scope, opts)
	if err != nil {
		out.w, out.closed = newImmediateCloseWatcher(), true // refused with 429: sees nothing
		return out
	}
	out.w = w
	return out
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
		run(t, change, func(f *fixture) { fault = f.play(&model{pods: map[string][]string{}}, script) })
		if fault != "" {
			r.Fatal(fault)
		}
	})
}

func TestTheModelFindsAFault(t *testing.T) {
	m := &model{history: []change{{2, "default/a", nil, []string{"app=1"}}, {3, "default/a", []string{"app=1"}, []string{"app=0"}}, {4, "kube-system/b", nil, []string{"app=1"}}}}
	for name, c := range map[string]struct {
		s    subject
		want bool // a fault
	}{
		"complete":        {subject{from: 1, seen: []string{"ADDED default/a 2", "MODIFIED default/a 3", "ADDED kube-system/b 4"}}, false},
		"ended early":     {subject{from: 1, closed: true, seen: []string{"ADDED default/a 2"}}, false},
		"open, and short": {subject{from: 1, seen: []string{"ADDED default/a 2"}}, true},
		"twice":           {subject{from: 1, closed: true, seen: []string{"ADDED default/a 2", "ADDED default/a 2"}}, true},
		"a gap":           {subject{from: 1, closed: true, seen: []string{"ADDED default/a 2", "ADDED kube-system/b 4"}}, true},
		"too much":        {subject{from: 2, closed: true, seen: []string{"ADDED default/a 2"}}, true},
		"selected":        {subject{from: 1, wants: "app=1", scope: "/default", seen: []string{"ADDED default/a 2", "DELETED default/a 3"}}, false},
		"wrong type":      {subject{from: 1, wants: "app=1", closed: true, seen: []string{"ADDED default/a 2", "MODIFIED default/a 3"}}, true},
	} {
		if fault := m.check(&c.s); (fault != "") != c.want {
			t.Errorf("%s: got %q", name, fault)
		}
	}
	back := &subject{}
	back.note(watch.Event{Type: watch.Added, Object: podAt("10")})
	back.note(watch.Event{Type: watch.Bookmark, Object: podAt("9")})
	if len(back.seen) != 2 {
		t.Error("a bookmark that goes back was not noticed")
	}
}

func podAt(rv string) *corev1.Pod {
	p := pod("default/a")
	p.ResourceVersion = rv
	return p
}
