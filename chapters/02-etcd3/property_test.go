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
	"listwatch/internal/observe/rules/history"
	"listwatch/internal/server/mvcc"
)

// The property: whatever is written, a watch with any selector, begun at any revision, delivers exactly the history
// filtered by that selector: in order, nothing twice, nothing missing.

// model is the whole history, kept beside the store by the test, which writes. The state of a pod is its label.
type model struct{ history.History }

func view(from uint64, selected string) history.View {
	return history.View{From: from, Wants: func(_, label string) bool { return selected == "" || label == selected }}
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
	case m.Newest(name) == "":
		out = create(t, s, pod(name, label))
	case rapid.Bool().Draw(rt, "delete"):
		out, label = remove(t, s, name), ""
	case m.Newest(name) == label:
		relabel(t, s, name, label) // no difference, no revision
		return
	default:
		out = relabel(t, s, name, label)
	}
	m.Write(rvOf(out), name, label)
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
	m := &model{}
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
		var want []string
		for _, e := range m.Events(view(w.from, w.selected)) {
			want = append(want, fmt.Sprintf("%s %s %d %s", e.Type, e.Key, e.RV, e.State))
		}
		assert.True(rt, slices.Equal(w.got, want),
			"after %d, selecting %q:\ngot  %s\nwant %s", w.from, w.selected, strings.Join(w.got, ", "),
			strings.Join(want, ", "))
	}
}

func TestPagedListsOfAnySizeAreTheStateOfOneRevision(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		client := mvcc.New(clock.RealClock{})
		s := newStore(t, client, nil)
		m := &model{}
		for range rapid.IntRange(0, 20).Draw(rt, "before") {
			m.write(t, rt, s, client)
		}
		selected := rapid.SampledFrom([]string{"", "web", "db"}).Draw(rt, "selected")
		var want []string
		for _, e := range m.State(view(0, selected), uint64(client.Revision())) {
			want = append(want, e.Key)
		}
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
				"a page of %d at %s, want at most %d at %s", len(page.Items), page.ResourceVersion,
				opts.Predicate.Limit, at)
			for _, p := range page.Items {
				got = append(got, p.Name)
			}
			opts.Predicate.Continue = page.Continue
			m.write(t, rt, s, client)
		}
		assert.EqualSlices(rt, want, got)
	})
}
