package cacher

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
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
		require.True(t, ok, "%s: a plain %T", event.Type, event.Object)
		wg.Go(func() {
			var out bytes.Buffer
			assert.NoError(t, cacheable.CacheEncode(e.id, e.encode, &out))
			mu.Lock()
			defer mu.Unlock()
			outcomes[fmt.Sprint(event.Type, " ", out.String())]++
		})
	}
	wg.Wait()
	return outcomes
}

// The wrapping copies nothing, so one watcher is no case of its own.
func TestAnEventForOneWatcherKeepsItsEncodingsToo(t *testing.T) {
	run(t, nil, func(f *fixture) {
		w := f.watch("", everything("1"))
		e := &encoder{id: "JSON"}
		for _, write := range []func(){
			func() { f.create("default/a", "app=1") }, func() { f.update("default/a", "app=2") },
			func() { f.remove("default/a") },
		} {
			write()
			synctest.Wait()
			encodeAll(t, e, []watch.Interface{w}) // fails for an object that keeps no encodings
		}
		assert.Equal(t, e.n.Load(), 3, "encoded times")
	})
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
			event := <-replay.ResultChan()
			assert.Equal(t, fmt.Sprintf("%T", event.Object), "*v1.Pod", "%s carries a %T", event.Type, event.Object)
		}
	})
}
