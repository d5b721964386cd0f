package indexer

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	deltafifo "listwatch/chapters/10-deltafifo"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/chapterdrawing"
	"listwatch/internal/check/probetest"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
)

var must = require.Must

func pod(namespace, name, node string, rv int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: strconv.Itoa(rv)},
		Spec:       corev1.PodSpec{NodeName: node},
	}
}

func byNode(obj any) ([]string, error) {
	node := obj.(*corev1.Pod).Spec.NodeName
	if node == "" {
		return nil, nil
	}
	return []string{node}, nil
}

// byLabels is an index with several values per object.
func byLabels(obj any) ([]string, error) {
	var values []string
	for key, value := range obj.(*corev1.Pod).Labels {
		values = append(values, key+"="+value)
	}
	slices.Sort(values)
	return values, nil
}

func podIndexers() Indexers {
	return Indexers{NamespaceIndex: MetaNamespaceIndexFunc, "node": byNode, "labels": byLabels}
}

func newPodStore() *Indexer { return NewIndexer(Config{Indexers: podIndexers()}) }

func keysOf(objs []any) []string {
	keys := []string{}
	for _, obj := range objs {
		key, _ := deltafifo.DeletionHandlingMetaNamespaceKeyFunc(obj)
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func TestIndicesFollowEveryWrite(t *testing.T) {
	c := newPodStore()
	must(c.Add(pod("default", "a", "", 1)))
	must(c.Add(pod("default", "b", "node-1", 2)))
	must(c.Add(pod("system", "c", "node-1", 3)))
	want := func(index, value string, keys ...string) {
		t.Helper()
		assert.NoDiff(t, append([]string{}, keys...), require.Value(c.IndexKeys(index, value))(t), "%s=%s", index,
			value)
		objs, _ := c.ByIndex(index, value)
		assert.NoDiff(t, append([]string{}, keys...), keysOf(objs), "objects of %s=%s", index, value)
	}
	want(NamespaceIndex, "default", "default/a", "default/b")
	want("node", "node-1", "default/b", "system/c")

	must(c.Update(pod("default", "a", "node-1", 4))) // a value appears
	want("node", "node-1", "default/a", "default/b", "system/c")
	must(c.Update(pod("default", "b", "node-2", 5))) // a value changes
	want("node", "node-1", "default/a", "system/c")
	want("node", "node-2", "default/b")
	must(c.Delete(pod("system", "c", "node-1", 6)))
	want("node", "node-1", "default/a")
	want(NamespaceIndex, "system")
	must(c.Replace([]any{pod("other", "d", "node-3", 7)}, "7"))
	want("node", "node-1")
	want("node", "node-3", "other/d")
}

func TestValuesOfDeletedObjectsVanish(t *testing.T) {
	c := newPodStore()
	for i := range 10 {
		must(c.Add(pod("default", fmt.Sprint(i), fmt.Sprintf("node-%d", i), i+1)))
	}
	for i := range 9 {
		must(c.Delete(pod("default", fmt.Sprint(i), "", 20+i)))
	}
	assert.Equal(t, 1, len(c.index.indices["node"]), "sets")
}

func TestIndexFindsObjectsLikeAnother(t *testing.T) {
	c := newPodStore()
	for name, set := range map[string]map[string]string{
		"a": {"app": "x"}, "b": {"app": "x", "tier": "1"}, "c": {"tier": "1"}, "d": {"app": "y"},
	} {
		p := pod("default", name, "", 1)
		p.Labels = set
		must(c.Add(p))
	}
	like := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "x", "tier": "1"}}}
	objs := require.Value(c.Index("labels", like))(t)
	assert.NoDiff(t, []string{"default/a", "default/b", "default/c"}, keysOf(objs), "each once")
	keys := require.Value(c.IndexKeys("labels", "tier=1"))(t)
	assert.EqualSlices(t, []string{"default/b", "default/c"}, keys, "b is there under both of its values")
}

func TestUnknownIndexIsAnError(t *testing.T) {
	c := newPodStore()
	_, byIndex := c.ByIndex("nope", "x")
	_, keys := c.IndexKeys("nope", "x")
	_, index := c.Index("nope", pod("default", "a", "", 1))
	for name, err := range map[string]error{"ByIndex": byIndex, "IndexKeys": keys, "Index": index} {
		assert.True(t, err != nil, "%s: no error", name)
	}
}

func TestAddIndexersToAFilledStore(t *testing.T) {
	c := NewIndexer(Config{})
	must(c.Add(pod("default", "a", "node-1", 1)))
	require.NoError(t, c.AddIndexers(Indexers{"node": byNode}))
	must(c.Add(pod("default", "b", "node-1", 2)))
	assert.Equal(t, 2, len(require.Value(c.IndexKeys("node", "node-1"))(t)), "keys")
	again := Indexers{"node": byNode, NamespaceIndex: MetaNamespaceIndexFunc}
	assert.True(t, c.AddIndexers(again) != nil, "a name that exists was accepted")
	assert.True(t, len(c.index.indexers) == 1, "indexers %v: half of a refused set was added", c.index.indexers)
}

func TestBrokenIndexFuncPanics(t *testing.T) {
	c := NewIndexer(Config{Indexers: Indexers{"bad": func(any) ([]string, error) { return nil, errors.New("bad") }}})
	defer func() {
		assert.True(t, recover() != nil, "no panic")
	}()
	must(c.Add(pod("default", "a", "", 1)))
}

func TestTransactionSaysWhatWasThereBefore(t *testing.T) {
	c := newPodStore()
	a1, a2, b, d := pod("default", "a", "", 1), pod("default", "a", "", 2), pod("default", "b", "", 3), pod("default",
		"d", "", 4)
	must(c.Add(a1))
	txns := []Transaction{
		{Type: TransactionTypeUpdate, Key: "default/a", Object: a2},
		{Type: TransactionTypeUpdate, Key: "default/b", Object: b},
		{Type: TransactionTypeDelete, Key: "default/a", Object: a2},
		{Type: TransactionTypeDelete, Key: "default/d", Object: d},
	}
	c.Transaction(txns)
	for i, want := range []Transaction{{Old: a1, Existed: true}, {}, {Old: a2, Existed: true}, {}} {
		assert.True(t, txns[i].Old == want.Old && txns[i].Existed == want.Existed,
			"%d: old %v existed %v, want %v %v", i, txns[i].Old, txns[i].Existed, want.Old, want.Existed)
	}
	assert.Equal(t, "", cmp.Diff([]string{"default/b"}, c.ListKeys()))
}

func TestReplaceAllSaysWhatItChanged(t *testing.T) {
	c := newPodStore()
	a, b, gone, gone2 := pod("default", "a", "", 1), pod("default", "b", "", 2), pod("default", "y", "", 3),
		pod("default", "x", "", 4)
	must(c.Replace([]any{a, gone, gone2}, "4"))
	changes, deletions, err := c.ReplaceAll([]any{b, a}, "5")
	require.NoError(t, err)
	assert.True(t, len(changes) == 2 && !changes[0].Existed && changes[1].Existed && changes[1].Old == any(a),
		"changes: got Existed %v for b and %v for a, want false and true, with the old a", changes[0].Existed,
		changes[1].Existed)
	assert.True(t, len(deletions) == 2 && deletions[0].Old == any(gone2) && deletions[1].Key == "default/y",
		"deletions %v, want x, y", deletions)
	_, _, err = c.ReplaceAll([]any{a, 3}, "6")
	assert.True(t, err != nil && c.LastStoreSyncResourceVersion() == "5" && len(c.List()) == 2,
		"a list with an object without key was accepted, or half of it")
}

func TestResourceVersionOfTheStore(t *testing.T) {
	c := newPodStore()
	for _, step := range []struct {
		name string
		do   func()
		want string
	}{
		{"empty", func() {}, ""},
		{"list", func() { must(c.Replace([]any{pod("default", "a", "", 2)}, "5")) }, "5"},
		{"add", func() { must(c.Add(pod("default", "b", "", 6))) }, "6"},
		{"update", func() { must(c.Update(pod("default", "b", "", 7))) }, "7"},
		{"delete", func() { must(c.Delete(pod("default", "b", "", 8))) }, "8"},
		{"concluded deletion", func() {
			must(c.Delete(deltafifo.DeletedFinalStateUnknown{Key: "default/a", Obj: pod("default", "a", "", 2)}))
		}, "8"},
		{"bookmark", func() { must(c.Bookmark("10")) }, "10"},
		{"transaction", func() {
			c.Transaction([]Transaction{
				{Type: TransactionTypeUpdate, Key: "default/c", Object: pod("default", "c", "", 11)},
				{Type: TransactionTypeDelete, Key: "default/c", Object: pod("default", "c", "", 12)},
			})
		}, "12"},
	} {
		step.do()
		got := c.LastStoreSyncResourceVersion()
		assert.Equal(t, step.want, got, "after %s: %q, want %q", step.name, got, step.want)
		got = c.Snapshot().ResourceVersion
		assert.Equal(t, step.want, got, "snapshot after %s: %q, want %q", step.name, got, step.want)
	}
	unordered := NewIndexer(Config{Unordered: true})
	must(unordered.Add(pod("default", "a", "", 1)))
	assert.Equal(t, "", unordered.LastStoreSyncResourceVersion(), "a store behind a DeltaFIFO claims to be at")
}

// What is written in one step is seen in one step: no reader finds half a batch, or the new objects by the old index.
func TestNoReaderSeesHalfAStep(t *testing.T) {
	c := newPodStore()
	both := func(node string, rv int) []any {
		return []any{pod("default", "a", node, rv), pod("default", "b", node, rv)}
	}
	written := make(chan struct{}) // closed when the writer is done
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(written)
		for i := range 4000 {
			node := []string{"node-1", "node-2"}[i%2]
			if i%4 < 2 {
				objs := append(both(node, i), pod("default", fmt.Sprint("c", i), "node-3", i))
				must(c.Replace(objs[i%3:], "1"))
				continue
			}
			var txns []Transaction
			for _, obj := range both(node, i) {
				txns = append(txns, Transaction{Type: TransactionTypeUpdate, Key: keysOf([]any{obj})[0], Object: obj})
			}
			c.Transaction(txns)
		}
	})
	for range 2 {
		wg.Go(func() {
			for reading := true; reading; {
				select {
				case <-written:
					reading = false
				default:
				}
				seen := map[string]string{}
				for _, obj := range c.List() {
					seen[obj.(*corev1.Pod).Name] = obj.(*corev1.Pod).ResourceVersion
				}
				if a, b := seen["a"], seen["b"]; a != "" && a != b {
					t.Errorf("a is at %s and b at %q", a, b)
					return
				}
				objs, _ := c.ByIndex("node", "node-1")
				for _, obj := range objs {
					if p, ok := obj.(*corev1.Pod); !ok || p.Spec.NodeName != "node-1" {
						t.Errorf("node-1 has %v", obj)
						return
					}
				}
			}
		})
	}
	wg.Wait()
}

func TestProbesTellWhatTheWriteMeant(t *testing.T) {
	log := probe.NewLog(clock.RealClock{}, 0)
	probetest.Story(t, log)
	c := NewIndexer(Config{Probe: probe.New(log).Subject("informer")})
	must(c.Replace([]any{pod("default", "a", "", 1)}, "1"))
	must(c.Add(pod("default", "a", "", 2))) // called an addition, but it was there
	must(c.Update(pod("default", "b", "", 3)))
	must(c.Delete(deltafifo.DeletedFinalStateUnknown{Key: "default/b", Obj: pod("default", "b", "", 3)}))
	must(c.Bookmark("5"))
	var got []string
	for _, r := range probetest.Records(log) {
		got = append(got, fmt.Sprintf("%s %s %q %d n=%d", r.Point, r.Type, r.Key, r.RV, r.Args[0]))
	}
	want := []string{
		`IndexerUpdated ReplacedAll "" 1 n=1`, `IndexerUpdated MODIFIED "default/a" 2 n=1`,
		`IndexerUpdated ADDED "default/b" 3 n=2`, `IndexerUpdated DELETED "default/b" 3 n=1`,
		`IndexerUpdated BOOKMARK "" 5 n=1`,
	}
	assert.NoDiff(t, want, got)
}

func TestLister(t *testing.T) {
	for name, indexers := range map[string]Indexers{"with namespace index": podIndexers(), "without": nil} {
		t.Run(name, func(t *testing.T) {
			c := NewIndexer(Config{Indexers: indexers})
			labelled := pod("default", "a", "", 1)
			labelled.Labels = map[string]string{"app": "x"}
			other := pod("system", "a", "", 2)
			other.Labels = map[string]string{"app": "x"}
			must(c.Replace([]any{labelled, other, pod("default", "b", "", 3)}, "3"))
			lister := NewLister[*corev1.Pod](c, schema.GroupResource{Resource: "pods"})
			names := func(l Lister[*corev1.Pod], selector labels.Selector) []string {
				objs := []any{}
				for _, p := range l.List(selector) {
					objs = append(objs, p)
				}
				return keysOf(objs)
			}
			app := labels.SelectorFromSet(labels.Set{"app": "x"})
			for _, tc := range []struct{ got, want []string }{
				{names(lister, labels.Everything()), []string{"default/a", "default/b", "system/a"}},
				{names(lister, app), []string{"default/a", "system/a"}},
				{names(lister.Namespace("default"), labels.Everything()), []string{"default/a", "default/b"}},
				{names(lister.Namespace("default"), app), []string{"default/a"}},
				{names(lister, labels.Nothing()), []string{}},
			} {
				assert.NoDiff(t, tc.want, tc.got)
			}
			got, err := lister.Namespace("system").Get("a")
			assert.True(t, err == nil && got == other, "Get: %v, %v", got, err)
			_, err = lister.Namespace("system").Get("b")
			assert.True(t, apierrors.IsNotFound(err), "Get of what is not there: %v", err)
		})
	}
}

// The drawing of the index: the store before and after one update, as its readers see it.
func TestTheDrawingOfTheIndexIsOfThisStore(t *testing.T) {
	c := newPodStore()
	for _, p := range []struct{ name, node string }{{"a", "n1"}, {"b", "n1"}, {"c", "n2"}} {
		require.NoError(t, c.Add(pod("default", p.name, p.node, 5)))
	}
	d := chapterdrawing.New("index.svg", 296)
	frame := func(x int, says string) {
		d.Text(x, 24, "bold", "%s", says)
		d.Text(x, 56, "soft", "items")
		d.Text(x+150, 56, "soft", "index node")
		keys := c.ListKeys()
		slices.Sort(keys)
		d.In("kept", func() {
			for i, key := range keys {
				item, _, err := c.GetByKey(key)
				require.NoError(t, err)
				values := require.Value(byNode(item))(t)
				d.Box(x, 68+i*56, 124, 40, "wall")
				d.Text(x+12, 93+i*56, "", "%s on %s", strings.TrimPrefix(key, "default/"), values[0])
			}
			for i, node := range []string{"n1", "n2"} {
				found := require.Value(c.IndexKeys("node", node))(t)
				slices.Sort(found)
				d.Box(x+150, 68+i*84, 138, 68, "wall")
				d.Text(x+162, 94+i*84, "bold", "%s", node)
				d.Text(x+162, 120+i*84, "", "%s", strings.ReplaceAll(strings.Join(found, ", "), "default/", ""))
			}
		})
	}
	frame(16, "before")
	require.NoError(t, c.Update(pod("default", "a", "n2", 6)))
	frame(336, "after a moves to n2")
	d.Text(16, 262, "", "One lock covers the item and both sets.")
	d.Text(16, 284, "", "No reader finds a in two sets, or in none.")
	d.Check(t)
}
