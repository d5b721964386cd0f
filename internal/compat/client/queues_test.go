package client

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	deltafifo "listwatch/chapters/10-deltafifo"
)

// known is the consumer's store. It lists its keys in order, so that both queues conclude deletions in the same one.
type known map[string]*corev1.Pod

func (k known) ListKeys() []string { return slices.Sorted(maps.Keys(k)) }

func (k known) GetByKey(key string) (any, bool, error) {
	pod, exists := k[key]
	if !exists {
		return nil, false, nil
	}
	return pod, true, nil
}

// apply does to the store what a delta says, and returns how to write it down.
func (k known) apply(typ string, obj any) string {
	switch o := obj.(type) {
	case *corev1.Pod:
		if typ == "Deleted" {
			delete(k, "default/"+o.Name)
		} else {
			k["default/"+o.Name] = o
		}
		return typ + " " + nameOf(o)
	case deltafifo.DeletedFinalStateUnknown:
		delete(k, o.Key)
		return typ + " " + o.Key + " unseen " + nameOf(o.Obj)
	case cache.DeletedFinalStateUnknown:
		delete(k, o.Key)
		return typ + " " + o.Key + " unseen " + nameOf(o.Obj)
	case deltafifo.ReplacedAllInfo:
		return k.replace(typ, o.ResourceVersion, o.Objects)
	case cache.ReplacedAllInfo:
		return k.replace(typ, o.ResourceVersion, o.Objects)
	case deltafifo.BookmarkInfo:
		return typ + " " + o.ResourceVersion
	case cache.BookmarkInfo:
		return typ + " " + o.ResourceVersion
	default:
		return typ
	}
}

func (k known) replace(typ, rv string, objects []any) string {
	clear(k)
	words := []string{typ, rv}
	for _, obj := range objects {
		words = append(words, nameOf(obj))
		k["default/"+obj.(*corev1.Pod).Name] = obj.(*corev1.Pod)
	}
	return strings.Join(words, " ")
}

// queue is what both kinds of both sides have in common.
type queue interface {
	Add(obj any) error
	Update(obj any) error
	Delete(obj any) error
	Replace(list []any, rv string) error
	Resync() error
	HasSynced() bool
}

// subject is one queue with the store it fills.
type subject struct {
	queue
	known    known
	pop      func(into *[]string) // takes one, and writes it down
	popBatch func(into *[]string)
	bookmark func(rv string) error
}

func (s *subject) upstreamPop(into *[]string) cache.PopProcessFunc {
	return func(obj any, initial bool) error {
		for _, delta := range obj.(cache.Deltas) {
			*into = append(*into, fmt.Sprint(s.known.apply(string(delta.Type), delta.Object), " ", initial))
		}
		return nil
	}
}

func (s *subject) upstreamBatch(into *[]string) cache.ProcessBatchFunc {
	return func(deltas []cache.Delta, initial bool) error {
		*into = append(*into, fmt.Sprint("batch of ", len(deltas)))
		return s.upstreamPop(into)(cache.Deltas(deltas), initial)
	}
}

func (s *subject) ourPop(into *[]string) deltafifo.PopProcessFunc {
	return func(deltas deltafifo.Deltas, initial bool) error {
		for _, delta := range deltas {
			*into = append(*into, fmt.Sprint(s.known.apply(string(delta.Type), delta.Object), " ", initial))
		}
		return nil
	}
}

func (s *subject) ourBatch(into *[]string) deltafifo.ProcessBatchFunc {
	return func(deltas []deltafifo.Delta, initial bool) error {
		*into = append(*into, fmt.Sprint("batch of ", len(deltas)))
		return s.ourPop(into)(deltas, initial)
	}
}

// variant is a kind of queue, with its options.
type variant struct {
	name                                                      string
	delta, atomic, unlocked, bookmarks, oldReplace, transform bool
}

var variants = []variant{
	{name: "DeltaFIFO", delta: true},
	{name: "DeltaFIFO without Replaced", delta: true, oldReplace: true},
	{name: "DeltaFIFO with a transformation", delta: true, transform: true},
	{name: "RealFIFO with known objects"},
	{name: "RealFIFO with known objects and a transformation", transform: true},
	{name: "RealFIFO", atomic: true, unlocked: true, bookmarks: true},
	{name: "RealFIFO with a transformation", atomic: true, unlocked: true, bookmarks: true, transform: true},
	{name: "RealFIFO without bookmarks", atomic: true},
}

func (v variant) ours() *subject {
	s := &subject{known: known{}}
	var transformer func(any) (any, error)
	if v.transform {
		transformer = transform
	}
	if v.delta {
		f := deltafifo.NewDeltaFIFO(deltafifo.DeltaFIFOOptions{KnownObjects: s.known, Transformer: transformer, EmitDeltaTypeReplaced: !v.oldReplace})
		s.queue = f
		s.pop = func(into *[]string) { f.Pop(s.ourPop(into)) }
		return s
	}
	opts := deltafifo.RealFIFOOptions{Transformer: transformer, AtomicEvents: v.atomic, UnlockWhileProcessing: v.unlocked, EmitDeltaTypeBookmark: v.bookmarks}
	if !v.atomic {
		opts.KnownObjects = s.known
	}
	f := deltafifo.NewRealFIFO(opts)
	s.queue, s.bookmark = f, f.Bookmark
	s.pop = func(into *[]string) { f.Pop(s.ourPop(into)) }
	s.popBatch = func(into *[]string) { f.PopBatch(s.ourBatch(into), s.ourPop(into)) }
	return s
}

func (v variant) upstream() *subject {
	s := &subject{known: known{}}
	var transformer cache.TransformFunc
	if v.transform {
		transformer = transform
	}
	if v.delta {
		f := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{KnownObjects: s.known, Transformer: transformer, EmitDeltaTypeReplaced: !v.oldReplace})
		s.queue = f
		s.pop = func(into *[]string) { f.Pop(s.upstreamPop(into)) }
		return s
	}
	opts := cache.RealFIFOOptions{Transformer: transformer, AtomicEvents: v.atomic, UnlockWhileProcessing: v.unlocked, EmitDeltaTypeBookmark: v.bookmarks}
	if !v.atomic {
		opts.KnownObjects = s.known
	}
	f := cache.NewRealFIFOWithOptions(opts)
	s.queue, s.bookmark = f, f.Bookmark
	s.pop = func(into *[]string) { f.Pop(s.upstreamPop(into)) }
	s.popBatch = func(into *[]string) { f.PopBatch(s.upstreamBatch(into), s.upstreamPop(into)) }
	return s
}

// call does one random thing to a queue and returns what it led to.
func (s *subject) call(random *rand.Rand, rv int) (what string, result []string) {
	name := string("abcde"[random.IntN(5)])
	pod := podAt(name, rv)
	switch action := random.IntN(13); {
	case action < 3:
		return "Add " + name, s.outcome(s.Add(pod))
	case action < 5:
		return "Update " + name, s.outcome(s.Update(pod))
	case action < 7:
		return "Delete " + name, s.outcome(s.Delete(pod))
	case action < 8:
		var list []any
		for _, listed := range "abcde" {
			if random.IntN(2) == 0 {
				list = append(list, podAt(string(listed), rv-random.IntN(3)))
			}
		}
		return fmt.Sprint("Replace ", len(list)), s.outcome(s.Replace(list, fmt.Sprint(rv)))
	case action < 9:
		return "Resync", s.outcome(s.Resync())
	case action < 10 && s.bookmark != nil:
		return "Bookmark", s.outcome(s.bookmark(fmt.Sprint(rv)))
	case action < 11 && s.popBatch != nil:
		return "PopBatch", s.take(s.popBatch)
	default:
		return "Pop", s.take(s.pop)
	}
}

func (s *subject) outcome(err error) []string {
	return []string{fmt.Sprint("error ", err != nil, " synced ", s.HasSynced())}
}

// take pops, after it has made sure that there is something to pop.
func (s *subject) take(pop func(*[]string)) (popped []string) {
	if err := s.Add(podAt("z", 1)); err != nil {
		panic(err)
	}
	pop(&popped)
	return append(popped, fmt.Sprint("synced ", s.HasSynced(), " known ", s.known.ListKeys()))
}

// TestBothQueuesPopTheSame makes the same random calls to a queue of ours and to upstream's, and compares what comes
// out of each Pop: types, objects, tombstones, isInInitialList, the bounds of batches, and when it says it has synced.
func TestBothQueuesPopTheSame(t *testing.T) {
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			for seed := range uint64(200) {
				mine, theirs := v.ours(), v.upstream()
				var history []string
				for n := range 60 {
					what, got := mine.call(rand.New(rand.NewPCG(seed, uint64(n))), 10+n)
					_, want := theirs.call(rand.New(rand.NewPCG(seed, uint64(n))), 10+n)
					history = append(history, what)
					if diff := cmp.Diff(want, got); diff != "" {
						t.Fatalf("seed %d, after %q (-upstream +ours):\n%s", seed, history, diff)
					}
				}
			}
		})
	}
}
