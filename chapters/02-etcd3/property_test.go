package etcd3

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"pgregory.net/rapid"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
	"listwatch/internal/server/mvcc"
)

// The property: whatever is written, a watch with any selector, begun at any revision, delivers exactly the history
// filtered by that selector: in order, nothing twice, nothing missing.

// fact is one revision of the model: what the label of a pod was before and is after. "" means that there is no pod.
type fact struct {
	rv       uint64
	name     string
	old, new string
}

// model is the whole history, kept beside the store by the test, which writes.
type model struct {
	facts  []fact
	labels map[string]string
}

func (m *model) add(rv uint64, name, label string) {
	m.facts = append(m.facts, fact{rv, name, m.labels[name], label})
	m.labels[name] = label
}

// want returns the lines a watch of label app=selected must see after rv; selected "" selects all.
func (m *model) want(rv uint64, selected string) []string {
	var lines []string
	for _, f := range m.facts {
		was := f.old != "" && (selected == "" || f.old == selected)
		is := f.new != "" && (selected == "" || f.new == selected)
		switch {
		case f.rv <= rv || !was && !is:
		case !was:
			lines = append(lines, fmt.Sprintf("ADDED %s %d %s", f.name, f.rv, f.new))
		case is:
			lines = append(lines, fmt.Sprintf("MODIFIED %s %d %s", f.name, f.rv, f.new))
		default:
			lines = append(lines, fmt.Sprintf("DELETED %s %d %s", f.name, f.rv, f.old))
		}
	}
	return lines
}

// write does one random thing to one random pod.
func (m *model) write(t *testing.T, rt *rapid.T, s *Store, client *mvcc.Store) {
	name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "name")
	label := rapid.SampledFrom([]string{"web", "db"}).Draw(rt, "label")
	var out *corev1.Pod
	switch {
	case rapid.IntRange(0, 9).Draw(rt, "other") == 0:
		client.Put("/registry/nodes/n", nil) // a revision that is none of our business
		return
	case m.labels[name] == "":
		out = create(t, s, pod(name, label))
	case rapid.Bool().Draw(rt, "delete"):
		out, label = remove(t, s, name), ""
	case m.labels[name] == label:
		relabel(t, s, name, label) // no difference, no revision
		return
	default:
		out = relabel(t, s, name, label)
	}
	m.add(rvOf(out), name, label)
}

type watching struct {
	trace
	from     uint64
	selected string
	got      []string
}

// begin starts a watch at a random revision that has happened.
func begin(t *testing.T, rt *rapid.T, s *Store, client *mvcc.Store) *watching {
	w := &watching{
		from:     rapid.Uint64Range(1, uint64(client.Revision())).Draw(rt, "from"),
		selected: rapid.SampledFrom([]string{"", "web", "db"}).Draw(rt, "selected"),
	}
	opts := everything()
	opts.ResourceVersion = fmt.Sprint(w.from)
	if w.selected != "" {
		opts.Predicate = selecting(t, "app="+w.selected)
	}
	w.trace = start(t, s, prefix, opts)
	return w
}

func TestEveryWatchSeesExactlyItsFilteredHistory(t *testing.T) {
	for _, age := range []string{WatcherEtcd3, WatcherEtcd2} {
		t.Run(age, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				bubble.Test(t, func(t *testing.T) { filteredHistory(t, rt, age) })
			})
		})
	}
}

func filteredHistory(t *testing.T, rt *rapid.T, age string) {
	client := mvcc.New(clock.RealClock{})
	s := newStore(t, client, func(cfg *Config) { cfg.Watcher = age })
	m := &model{labels: map[string]string{}}
	var watches []*watching
	for range rapid.IntRange(0, 60).Draw(rt, "steps") {
		switch rapid.IntRange(0, 9).Draw(rt, "step") {
		case 0:
			watches = append(watches, begin(t, rt, s, client))
		case 1: // a read
			for _, w := range watches {
				w.got = append(w.got, w.next()...)
			}
		default:
			m.write(t, rt, s, client)
		}
	}
	for _, w := range watches {
		w.got = append(w.got, w.next()...)
		want := m.want(w.from, w.selected)
		assert.True(rt, slices.Equal(w.got, want),
			"after %d, selecting %q:\ngot  %s\nwant %s", w.from, w.selected, strings.Join(w.got, ", "), strings.Join(want, ", "))
	}
}

func TestPagedListsOfAnySizeAreTheStateOfOneRevision(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		client := mvcc.New(clock.RealClock{})
		s := newStore(t, client, nil)
		m := &model{labels: map[string]string{}}
		for range rapid.IntRange(0, 20).Draw(rt, "before") {
			m.write(t, rt, s, client)
		}
		selected := rapid.SampledFrom([]string{"", "web", "db"}).Draw(rt, "selected")
		var want []string
		for name, label := range m.labels {
			if label != "" && (selected == "" || label == selected) {
				want = append(want, name)
			}
		}
		slices.Sort(want)
		at := fmt.Sprint(client.Revision())
		opts := everything()
		if selected != "" {
			opts.Predicate = selecting(t, "app="+selected)
		}
		opts.Predicate.Limit = rapid.Int64Range(1, 4).Draw(rt, "limit")
		var got []string
		for first := true; first || opts.Predicate.Continue != ""; first = false {
			page := mustList(t, s, opts)
			require.True(rt, page.ResourceVersion == at && int64(len(page.Items)) <= opts.Predicate.Limit,
				"a page of %d at %s, want at most %d at %s", len(page.Items), page.ResourceVersion, opts.Predicate.Limit, at)
			for _, p := range page.Items {
				got = append(got, p.Name)
			}
			opts.Predicate.Continue = page.Continue
			m.write(t, rt, s, client)
		}
		assert.EqualSlices(rt, want, got)
	})
}
