package watchcache

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

const root = "/registry/pods/"

func three(t *testing.T) *fixture {
	f := newFixture(t, 10)
	f.list(5, pod("kube-system/d", 1, "n1"), pod("default/b", 2, "n1"), pod("default/a", 3, "n2"), pod("default2/c", 4,
		"n1"))
	return f
}

func TestAnIndexNarrowsAListAndKeepsItsOrder(t *testing.T) {
	f := three(t)
	opts := storage.ListOptions{ResourceVersion: "0", Recursive: true}
	opts.Predicate.Field = fields.OneTermEqualSelector("spec.nodeName", "n1")
	list, err := f.GetList(t.Context(), root, opts)
	f.must(err)
	f.is("indexed", list.Indexed, "true")
	f.is("elements", names(list), "default/b 2, default2/c 4, kube-system/d 1")
	list, err = f.GetList(t.Context(), root+"default/", opts)
	f.must(err)
	f.is("elements of a namespace", names(list), "default/b 2")

	f.must(f.Update(pod("default/b", 6, "n2")))
	f.delete("kube-system/d", 7)
	list, err = f.GetList(t.Context(), root, opts)
	f.must(err)
	f.is("after a move and a deletion", names(list), "default2/c 4")

	for rv := uint64(10); rv < 50; rv++ { // an index has no order
		f.must(f.Add(pod(fmt.Sprint("default/p", rv), rv, "n1")))
	}
	list, err = f.GetList(t.Context(), root+"default/", opts)
	f.must(err)
	byKey := func(a, b *Element) int { return strings.Compare(a.Key, b.Key) }
	f.is("in order", slices.IsSortedFunc(list.Elements, byKey), "true")
}

func TestAnIndexForgetsValuesThatNobodyHasAnyMore(t *testing.T) {
	f := newFixture(t, 10)
	f.list(1, pod("default/a", 1, "n0"))
	for rv := uint64(2); rv < 50; rv++ {
		f.must(f.Update(pod("default/a", rv, fmt.Sprint("n", rv))))
	}
	f.is("values of a pod that moves", len(f.store.index), "1")
	f.delete("default/a", 50)
	f.is("values of none", len(f.store.index), "0")
}

func TestAnExactListIsTheListThatWasTakenThen(t *testing.T) {
	f := newFixture(t, 200)
	f.list(1)
	random := rand.New(rand.NewPCG(1, 2))
	then := map[uint64]string{1: names(f.latestList())}
	present := map[string]bool{}
	rv := uint64(1)
	for range 150 {
		rv += 1 + random.Uint64N(3)
		id := fmt.Sprintf("default/%c", 'a'+random.IntN(8))
		switch {
		case !present[id]:
			f.add(id, rv)
			present[id] = true
		case random.IntN(3) == 0:
			f.delete(id, rv)
			present[id] = false
		default:
			f.update(id, rv)
		}
		then[rv] = names(f.latestList())
	}
	last := then[1]
	for at := uint64(1); at <= rv; at++ {
		if list, ok := then[at]; ok {
			last = list
		}
		exact := f.exact(at)
		require.True(t, names(exact) == last && exact.ResourceVersion == at, "at %d: got %s, want %s", at, names(exact),
			last)
	}
}

func TestSnapshotsGoWithTheRing(t *testing.T) {
	f := newFixture(t, 4)
	f.list(10)
	f.fill(11, 20) // 16 … 19
	f.is("snapshots", f.Snapshot().Snapshots, "4")
	f.is("the oldest", names(f.exact(16)), "default/x 16")
	for _, rv := range []uint64{3, 15} {
		_, err := f.snapshotAt(t.Context(), "", rv)
		assert.Fails(t, err, apierrors.IsResourceExpired, "at %d", rv)
		f.is("has", f.HasSnapshot(rv), "false")
	}
	f.is("has the future", f.HasSnapshot(100), "true")
}

func TestSnapshotsGoWithTheStoragesOwnHistory(t *testing.T) {
	f := newFixture(t, 100)
	f.list(10)
	f.fill(11, 13) // 11, 12
	f.fill(15, 17) // 15, 16
	f.Compact(14)
	f.is("snapshots", f.Snapshot().Snapshots, "3")
	f.is("the compacted version itself", names(f.exact(14)), "default/x 12")
	f.is("a newer one", names(f.exact(15)), "default/x 15")
	for _, rv := range []uint64{10, 12, 13} {
		_, err := f.snapshotAt(t.Context(), "", rv)
		assert.Fails(t, err, apierrors.IsResourceExpired, "at %d", rv)
		f.is("has", f.HasSnapshot(rv), "false")
	}
	interval, err := f.since(10)
	f.must(err)
	events := f.events(interval)
	f.is("events of the ring", len(events), "4")
}

func TestAQuietResourceStaysReadableHoweverFarTheStorageForgets(t *testing.T) {
	f := newFixture(t, 100)
	f.list(10, pod("default/a", 9, ""))
	f.UpdateResourceVersion("500")
	f.Compact(400)
	f.Compact(300) // late news
	f.is("snapshots", f.Snapshot().Snapshots, "1")
	f.is("compacted", f.Snapshot().CompactRevision, "400")
	f.is("at the compacted version", names(f.exact(400)), "default/a 9")
	f.is("before", f.HasSnapshot(399), "false")
	list, err := f.GetList(t.Context(), "/registry/pods/", storage.ListOptions{ResourceVersion: "0", Recursive: true})
	f.must(err)
	f.is("the newest", names(list), "default/a 9")
}

func TestTheStateIsStreamedInKeyOrderAtOneVersion(t *testing.T) {
	f := newFixture(t, 10)
	var pods []*corev1.Pod
	for i := range 250 { // more than two batches; 099 ends the first one, and 099-1 begins the second
		id := fmt.Sprintf("default/%03d", i)
		if i > 0 && i%2 == 0 {
			id = fmt.Sprintf("default/%03d-1", i-1)
		}
		pods = append(pods, pod(id, uint64(i+1), ""))
	}
	f.list(300, pods...)
	interval := f.state(root, true)
	f.delete("default/000", 301) // after the starting point: not part of it
	events := f.events(interval)
	f.is("events", len(events), "250")
	assert.True(t, slices.IsSorted(events), "not in key order")
	for _, event := range events {
		require.True(t, strings.HasSuffix(event, " 300"), "%s: not at the cache's version", event)
	}
}

func TestOnlyWhatLiesBelowTheKeyIsStreamed(t *testing.T) {
	f := three(t)
	for _, c := range []struct {
		key       string
		recursive bool
		want      string
	}{
		{root + "default/", true, "[ADDED default/a 5 ADDED default/b 5]"},
		{root + "default/a", false, "[ADDED default/a 5]"},
		{root + "default/z", false, "[]"},
	} {
		events := f.events(f.state(c.key, c.recursive))
		f.is(c.key, events, c.want)
	}
}
