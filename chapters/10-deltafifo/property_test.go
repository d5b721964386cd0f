package deltafifo

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"listwatch/internal/check/require"
)

// model is a server whose watch can break, a queue, and a consumer.
type model struct {
	setup    setup
	queue    Queue
	consumer *consumer
	server   map[string]int // name → rv
	rv       int
	broken   bool     // the watch is: events are missed until the next list
	fed      []string // watch events that went into the queue
}

// change makes one write on the server and feeds it to the queue unless the watch is broken.
func (m *model) change(name string, del bool) {
	_, exists := m.server[name]
	if del && !exists {
		return
	}
	m.rv++
	event := ""
	switch {
	case del:
		delete(m.server, name)
		event = fmt.Sprintf("Deleted %s@%d", name, m.rv)
	case exists:
		m.server[name] = m.rv
		event = fmt.Sprintf("Updated %s@%d", name, m.rv)
	default:
		m.server[name] = m.rv
		event = fmt.Sprintf("Added %s@%d", name, m.rv)
	}
	if m.broken {
		return
	}
	m.fed = append(m.fed, event)
	switch obj := pod(name, m.rv); {
	case del:
		m.queue.Delete(obj)
	case exists:
		m.queue.Update(obj)
	default:
		m.queue.Add(obj)
	}
}

func (m *model) relist() {
	var list []any
	for _, name := range slices.Sorted(maps.Keys(m.server)) {
		list = append(list, pod(name, m.server[name]))
	}
	m.queue.Replace(list, fmt.Sprint(m.rv))
	m.broken = false
}

// watchEvents returns those of deltas that came from the watch.
func watchEvents(deltas []string) []string {
	var events []string
	for _, delta := range deltas {
		typ, _, _ := strings.Cut(delta, " ")
		isEvent := typ == string(Added) || typ == string(Updated) || typ == string(Deleted)
		if isEvent && !strings.HasSuffix(delta, "?") {
			events = append(events, delta)
		}
	}
	return events
}

func byKey(events []string) map[string][]string {
	keys := map[string][]string{}
	for _, event := range events {
		_, rest, _ := strings.Cut(event, " ")
		name, _, _ := strings.Cut(rest, "@")
		keys[name] = append(keys[name], event)
	}
	return keys
}

func TestNothingIsLostAndOrderIsKept(t *testing.T) {
	for _, s := range setups {
		t.Run(s.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				c := newConsumer()
				m := &model{setup: s, queue: s.make(c), consumer: c, server: map[string]int{}}
				name := rapid.SampledFrom([]string{"a", "b", "c", "d"})
				t.Repeat(map[string]func(*rapid.T){
					"write":  func(t *rapid.T) { m.change(name.Draw(t, "name"), false) },
					"delete": func(t *rapid.T) { m.change(name.Draw(t, "name"), true) },
					"break":  func(*rapid.T) { m.broken = true },
					"relist": func(*rapid.T) { m.relist() },
					"resync": func(*rapid.T) { m.queue.Resync() },
					"pop": func(t *rapid.T) {
						if m.queue.Snapshot().Len > 0 {
							popOne(m.queue, c, rapid.Bool().Draw(t, "batch"))
						}
					},
				})
				if m.broken {
					m.relist()
				}
				drain(m.queue, c, true)
				m.check(t)
			})
		})
	}
}

func (m *model) check(t *rapid.T) {
	require.Equal(t, cmp.Diff(m.server, m.consumer.state()), "", "store differs from server (-server +store):\n")
	got := watchEvents(m.consumer.deltas)
	if m.setup.real {
		require.Equal(t, cmp.Diff(m.fed, got), "", "order over all keys (-in +out):\n")
		return
	}
	for name, want := range byKey(m.fed) {
		require.Equal(t, cmp.Diff(want, byKey(got)[name]), "", "order of %s (-in +out):\n", name)
	}
}

// tombstones are only for objects that the store or the queue knew.
func TestTombstonesAreOnlyForWhatWasKnown(t *testing.T) {
	for _, s := range setups {
		if s.atomic {
			continue // its deletions are the consumer's to find
		}
		t.Run(s.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				names := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}),
					func(s string) string { return s })
				known, queued, listed := names.Draw(t, "known"), names.Draw(t, "queued"), names.Draw(t, "listed")
				c := newConsumer()
				for _, name := range known {
					c.objects["default/"+name] = pod(name, 1)
				}
				q := s.make(c)
				for _, name := range queued {
					q.Add(pod(name, 2))
				}
				var list []any
				for _, name := range listed {
					list = append(list, pod(name, 3))
				}
				q.Replace(list, "3")
				var want []string
				for _, name := range []string{"a", "b", "c", "d", "e"} {
					switch {
					case slices.Contains(listed, name):
					case slices.Contains(queued, name):
						want = append(want, "Deleted "+name+"@2?")
					case slices.Contains(known, name):
						want = append(want, "Deleted "+name+"@1?")
					}
				}
				drain(q, c, true)
				var got []string
				for _, delta := range c.deltas {
					if strings.HasSuffix(delta, "?") {
						got = append(got, delta)
					}
				}
				slices.Sort(got)
				require.NoDiff(t, got, want)
			})
		})
	}
}
