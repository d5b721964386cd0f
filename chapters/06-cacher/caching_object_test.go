package cacher

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// encoder is a form in which watchers want objects, and counts.
type encoder struct {
	id runtime.Identifier
	n  atomic.Int64
}

func (e *encoder) encode(obj runtime.Object, w io.Writer) error {
	e.n.Add(1)
	if _, ok := obj.(*corev1.Pod); !ok {
		return fmt.Errorf("asked to encode a %T", obj)
	}
	return json.NewEncoder(w).Encode(obj)
}

// encodeAll has one event of each watcher encoded, all at the same time, and returns the different outcomes.
func encodeAll(t *testing.T, e *encoder, watchers []watch.Interface) map[string]int {
	t.Helper()
	var (
		wg       sync.WaitGroup
		mu       sync.Mutex
		outcomes = map[string]int{}
	)
	for _, w := range watchers {
		event := <-w.ResultChan()
		cacheable, ok := event.Object.(runtime.CacheableObject)
		if !ok {
			t.Fatalf("%s: a plain %T", event.Type, event.Object)
		}
		wg.Go(func() {
			var out bytes.Buffer
			if err := cacheable.CacheEncode(e.id, e.encode, &out); err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			outcomes[fmt.Sprint(event.Type, " ", out.String())]++
		})
	}
	wg.Wait()
	return outcomes
}

func TestAnEventIsEncodedOnceForAllWatchersThatWantTheSameForm(t *testing.T) {
	run(t, nil, func(f *fixture) {
		const n = 20
		var asJSON, asTable []watch.Interface
		for range n {
			asJSON = append(asJSON, f.watch("", everything("1")))
			asTable = append(asTable, f.watch("/default", everything("1")))
		}
		steps := []func() string{
			func() string { return f.create("default/a", "app=1") },
			func() string { return f.update("default/a", "app=2") },
			func() string { return f.remove("default/a") },
		}
		for i, write := range steps {
			rv := write()
			synctest.Wait()
			json, table := &encoder{id: "json"}, &encoder{id: "table"}
			for e, watchers := range map[*encoder][]watch.Interface{json: asJSON, table: asTable} {
				outcomes := encodeAll(t, e, watchers)
				if e.n.Load() != 1 || len(outcomes) != 1 {
					t.Errorf("step %d, %s: encoded %d times, with %d outcomes", i, e.id, e.n.Load(), len(outcomes))
				}
				for text, count := range outcomes {
					if count != n || !bytes.Contains([]byte(text), []byte(`"resourceVersion":"`+rv+`"`)) {
						t.Errorf("step %d, %s: %d of %d saw %s, want version %s", i, e.id, count, n, text, rv)
					}
				}
			}
		}
	})
}

func TestTheHistoryKeepsNoEncodings(t *testing.T) {
	run(t, nil, func(f *fixture) {
		first, second := f.watch("", everything("1")), f.watch("", everything("1"))
		f.create("default/a")
		f.remove("default/a")
		synctest.Wait()
		_, _ = seen(first), seen(second)
		replay := f.watch("", everything("1"))
		for range 2 {
			if event := <-replay.ResultChan(); fmt.Sprintf("%T", event.Object) != "*v1.Pod" {
				t.Errorf("%s carries a %T", event.Type, event.Object)
			}
		}
	})
}

func TestACachingObjectIsTheObjectInEveryOtherRespect(t *testing.T) {
	p := pod("default/a", "app=1")
	p.ResourceVersion = "7"
	o := &cachingObject{metaRuntimeInterface: p}
	accessor, err := meta.Accessor(o)
	if err != nil || accessor.GetName() != "a" || accessor.GetResourceVersion() != "7" || accessor.GetLabels()["app"] != "1" {
		t.Errorf("metadata: %v, %v", accessor, err)
	}
	for name, copied := range map[string]runtime.Object{"copy": o.DeepCopyObject(), "object": o.GetObject()} {
		copiedPod, ok := copied.(*corev1.Pod)
		if !ok || copiedPod == p {
			t.Fatalf("%s: %T, the original: %v", name, copied, copiedPod == p)
		}
		copiedPod.Labels["app"] = "2"
	}
	if p.Labels["app"] != "1" {
		t.Error("who writes to a copy writes to the object")
	}
}

func TestAnEncodingThatFailsFailsForAll(t *testing.T) {
	o := &cachingObject{metaRuntimeInterface: pod("default/a")}
	calls := 0
	fail := func(runtime.Object, io.Writer) error { calls++; return errors.New("no") }
	for range 2 {
		if err := o.CacheEncode("x", fail, io.Discard); err == nil || err.Error() != "no" {
			t.Errorf("got %v", err)
		}
	}
	if calls != 1 {
		t.Errorf("tried %d times", calls)
	}
}

func TestAnEncodingThatPanicsIsNotTakenForAnEmptyOne(t *testing.T) {
	o := &cachingObject{metaRuntimeInterface: pod("default/a")}
	func() {
		defer func() { _ = recover() }()
		_ = o.CacheEncode("x", func(runtime.Object, io.Writer) error { panic("no") }, io.Discard)
	}()
	if err := o.CacheEncode("x", (&encoder{}).encode, io.Discard); !errors.Is(err, errEncodingPanicked) {
		t.Errorf("got %v", err)
	}
}

func TestSplicingWritersTakeTheBytesAsTheyAre(t *testing.T) {
	o := &cachingObject{metaRuntimeInterface: pod("default/a")}
	e := &encoder{id: "json"}
	buffer := runtime.NewSpliceBuffer()
	for range 2 {
		buffer.Reset()
		if err := o.CacheEncode(e.id, e.encode, buffer); err != nil {
			t.Fatal(err)
		}
	}
	if e.n.Load() != 1 || &buffer.Bytes()[0] != &o.encodings[0].raw[0] {
		t.Errorf("encoded %d times; or the bytes were copied", e.n.Load())
	}
}

// BenchmarkEncode is what it costs to write one event to n watchers in the same form.
func BenchmarkEncode(b *testing.B) {
	p := pod("default/a", "app=1", "node=n1")
	for _, n := range []int{1, 2, 10, 100, 1000} {
		b.Run("shared/"+strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				o := &cachingObject{metaRuntimeInterface: p}
				e := &encoder{id: "json"}
				for range n {
					_ = o.CacheEncode(e.id, e.encode, io.Discard)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/watcher")
		})
		b.Run("each/"+strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				e := &encoder{id: "json"}
				for range n {
					_ = e.encode(p, io.Discard)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/watcher")
		})
	}
}
