package deltafifo

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

func TestTombstonesAreOnlyForWhatWasKnown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}),
			func(s string) string { return s })
		known, queued, listed := names.Draw(t, "known"), names.Draw(t, "queued"), names.Draw(t, "listed")
		c := newConsumer(known...)
		q := setups[0].make(c)
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
		got := slices.DeleteFunc(c.deltas, func(delta string) bool { return !strings.HasSuffix(delta, "?") })
		slices.Sort(got)
		require.True(t, slices.Equal(got, want), "got %v, want %v", got, want)
	})
}

func pod(name string, rv int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, ResourceVersion: strconv.Itoa(
		rv)}}
}

// consumer is the store behind a queue, as a map, and what was processed to get there.
type consumer struct {
	objects map[string]any
	// "Added a@1", "Deleted a@1?" for a tombstone, "ReplacedAll @3 [a@1 b@2]", "SyncAll", "Bookmark @4"
	deltas []string
}

// newConsumer returns a consumer whose store holds the pods of these names, at version 1.
func newConsumer(known ...string) *consumer {
	c := &consumer{objects: map[string]any{}}
	for _, name := range known {
		c.objects["default/"+name] = pod(name, 1)
	}
	return c
}

func (c *consumer) ListKeys() []string {
	var keys []string
	for key := range c.objects {
		keys = append(keys, key)
	}
	return keys
}

func (c *consumer) GetByKey(key string) (any, bool, error) {
	obj, exists := c.objects[key]
	return obj, exists, nil
}

func (c *consumer) process(deltas Deltas, _ bool) error {
	for _, delta := range deltas {
		c.deltas = append(c.deltas, describe(delta))
		c.apply(delta)
	}
	return nil
}

func (c *consumer) apply(delta Delta) {
	switch info := delta.Object.(type) {
	case ReplacedAllInfo:
		clear(c.objects)
		for _, obj := range info.Objects {
			key, _ := DeletionHandlingMetaNamespaceKeyFunc(obj)
			c.objects[key] = obj
		}
	case SyncAllInfo, BookmarkInfo:
	default:
		if delta.Type == Deleted {
			delete(c.objects, delta.Key)
		} else {
			c.objects[delta.Key] = delta.Object
		}
	}
}

func (c *consumer) take() []string {
	deltas := c.deltas
	c.deltas = nil
	return deltas
}

// state returns name → rv.
func (c *consumer) state() map[string]int {
	state := map[string]int{}
	for key, obj := range c.objects {
		state[strings.TrimPrefix(key, "default/")] = int(VersionOf(obj))
	}
	return state
}

func describe(delta Delta) string {
	switch info := delta.Object.(type) {
	case ReplacedAllInfo:
		var objs []string
		for _, obj := range info.Objects {
			objs = append(objs, short(obj))
		}
		return fmt.Sprintf("ReplacedAll @%s [%s]", info.ResourceVersion, strings.Join(objs, " "))
	case SyncAllInfo:
		return "SyncAll"
	case BookmarkInfo:
		return "Bookmark @" + info.ResourceVersion
	case DeletedFinalStateUnknown:
		return fmt.Sprintf("%s %s?", delta.Type, short(info))
	default:
		return fmt.Sprintf("%s %s", delta.Type, short(delta.Object))
	}
}

func short(obj any) string {
	key, _ := DeletionHandlingMetaNamespaceKeyFunc(obj)
	return fmt.Sprintf("%s@%d", strings.TrimPrefix(key, "default/"), VersionOf(obj))
}

// A setup is one way to make a queue in front of a consumer.
type setup struct {
	name string
	real bool
	make func(c *consumer) Queue
}

var setups = []setup{
	{name: "delta", make: func(c *consumer) Queue { return NewDeltaFIFO(DeltaFIFOOptions{KnownObjects: c}) }},
	{name: "real", real: true, make: func(*consumer) Queue { return newReal() }},
}

func newReal() *RealFIFO { return NewRealFIFO(RealFIFOOptions{}) }

// drain processes everything that waits, in batches if batch is true and the queue can.
func drain(q Queue, c *consumer, batch bool) {
	for q.Snapshot().Len > 0 {
		popOne(q, c, batch)
	}
}

func popOne(q Queue, c *consumer, batch bool) {
	batchQueue, ok := q.(QueueWithBatch)
	if ok && batch {
		batchQueue.PopBatch(c.process, c.process)
		return
	}
	q.Pop(c.process)
}
