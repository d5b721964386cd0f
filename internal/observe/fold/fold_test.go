package fold

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
)

// in gives records of pods the sequence numbers 1, 2, 3, …
func in(records ...probe.Record) []probe.Record {
	for i := range records {
		records[i].Seq = uint64(i + 1)
		records[i].Time = time.Duration(i) * time.Millisecond
		records[i].Resource = "pods"
	}
	return records
}

func rec(point probe.Point, subject, typ, key string, rv uint64, args ...int) probe.Record {
	r := probe.Record{Point: point, Subject: subject, Type: typ, Key: key, RV: rv}
	copy(r.Args[:], args)
	return r
}

func folded(records []probe.Record) *State {
	s := New()
	s.Apply(records)
	return s
}

func TestOpenMakesASubjectAppearAndCloseMakesItVanish(t *testing.T) {
	opened := in(
		rec(probe.WatcherAdded, "w1", "", "", 7, 10),
		rec(probe.InputSent, "w1", "ADDED", "/registry/pods/default/a", 8, 1, 10),
	)
	pods := folded(opened).Resources["pods"]
	w1 := pods.Subjects["w1"]
	require.True(t, w1 != nil && w1.Kind == "watcher" && w1.Vars["capacity"] == 10,
		"w1 after it opened: got %+v, want a watcher of capacity 10", w1)
	want := &Queue{Len: 1, Cap: 10, Sent: 1, High: 1, Tokens: []Token{{Type: "ADDED", Key: "/registry/pods/default/a",
		RV: 8}}}
	assert.NoDiff(t, want, w1.Queues["input"], "input")
	closed := in(append(opened, rec(probe.WatcherRemoved, "w1", "", "", 0),
		rec(probe.ResultReceived, "w1", "ADDED", "/registry/pods/default/a", 8, 0, 10),
		rec(probe.WireClosed, "w1", "", "", 0))...)
	pods = folded(closed).Resources["pods"]
	assert.Equal(t, 0, len(pods.Subjects),
		"subjects after w1 closed and was still spoken of: got %v, want none", pods.Subjects)
	assert.Equal(t, 2, pods.Stations["wire"].Count, "moments at the wire")
}

// TestAChannelNeverHoldsMoreThanItsCapacity: the send of one more proves that one was taken, in whichever order sender
// and receiver report.
func TestAChannelNeverHoldsMoreThanItsCapacity(t *testing.T) {
	var records []probe.Record
	for n := range 11 {
		records = append(records, rec(probe.InputSent, "w1", "ADDED", string(rune('a'+n)), uint64(n+1), min(n+1, 10),
			10))
	}
	records = append([]probe.Record{rec(probe.WatcherAdded, "w1", "", "", 1, 10)}, records...)
	input := func() *Queue { return folded(in(records...)).Resources["pods"].Subjects["w1"].Queues["input"] }
	if q := input(); q.Len != 10 || q.High != 10 || len(q.Tokens) != 10 || q.Tokens[0].Key != "b" {
		t.Errorf("after eleven sends and no receive: got %+v, want ten from b on", q)
	}
	records = append(records, rec(probe.InputReceived, "w1", "ADDED", "a", 1, 9, 10))
	if q := input(); q.Len != 10 || q.Tokens[0].Key != "b" {
		t.Errorf("after the receive was reported, too: got %+v, want ten from b on", q)
	}
	records = append(records, rec(probe.InputReceived, "w1", "ADDED", "b", 2, 9, 10))
	q := input()
	assert.True(t, q.Len == 9 && q.Tokens[0].Key == "c", "after another receive: got %+v, want nine from c on", q)
}

func TestAShelfThatIsRecountedKnowsItsObjectsAgain(t *testing.T) {
	records := []probe.Record{
		rec(probe.CacheReplaced, "cacher", "", "", 5, 0, 0, 100, 3),
		rec(probe.StoreUpdate, "cacher", "MODIFIED", "/registry/pods/default/b", 6, 3),
		rec(probe.StoreHolds, "cacher", "", "/registry/pods/default/a", 2, 3),
		rec(probe.StoreHolds, "cacher", "", "/registry/pods/default/b", 6, 3),
		rec(probe.StoreHolds, "cacher", "", "/registry/pods/default/c", 7, 3),
	}
	want := &Shelf{N: 3, Rows: []Row{
		{Token{"", "/registry/pods/default/a", 2}, 3}, {Token{"MODIFIED", "/registry/pods/default/b", 6}, 2},
		{Token{"", "/registry/pods/default/c", 7}, 5},
	}}
	assert.NoDiff(t, want, folded(in(records...)).Resources["pods"].Shelves["store/cacher"], "the store's shelf")
}

func TestAQueueUnderALockHasTheLengthItSays(t *testing.T) {
	s := folded(in(
		rec(probe.FIFOAdded, "informer", "Added", "default/a", 1, 1, 0),
		rec(probe.FIFOAdded, "informer", "Added", "default/b", 2, 2, 0),
		rec(probe.FIFOAdded, "informer", "Updated", "default/a", 3, 2, 0), // DeltaFIFO: the key was queued
		rec(probe.FIFOAdded, "informer", "Added", "default/c", 4, 3, 0),
		rec(probe.FIFOPopped, "informer", "Added", "default/a", 1, 1, 0), // a batch of two
	))
	want := &Queue{Len: 1, Sent: 3, Received: 2, High: 3, Tokens: []Token{{Type: "Added", Key: "default/c", RV: 4}}}
	assert.NoDiff(t, want, s.Resources["pods"].Subjects["informer"].Queues["fifo"], "fifo")
}

func TestTheCachersReflectorTakesFromTheYoungestWatchChan(t *testing.T) {
	s := folded(in(
		rec(probe.WatchChanOpened, "etcd3-9", "", "", 1),
		rec(probe.WatchChanOpened, "etcd3-10", "", "", 1),
		rec(probe.Etcd3ResultSent, "etcd3-10", "ADDED", "a", 2, 1, 100),
		rec(probe.Etcd3ResultSent, "etcd3-10", "ADDED", "b", 3, 2, 100),
		rec(probe.ReflectorReceived, "informer", "ADDED", "a", 2),
		rec(probe.ReflectorReceived, "cacher", "ADDED", "a", 2),
	))
	pods := s.Resources["pods"]
	got := pods.Subjects["etcd3-10"].Queues["etcd3-result"]
	assert.True(t, got.Len == 1 && got.Tokens[0].Key == "b", "result of the youngest: got %+v, want b alone", got)
	assert.Equal(t, nil, pods.Subjects["etcd3-9"].Queues["etcd3-result"], "result of the older")
}

func TestTheRingKeepsBothHandsAndTheCellsBetween(t *testing.T) {
	s := folded(in(
		rec(probe.CacheReplaced, "cacher", "", "", 5, 0, 0, 2, 1),
		rec(probe.RingAppend, "cacher", "ADDED", "a", 6, 0, 1, 2, 6),
		rec(probe.RingAppend, "cacher", "ADDED", "b", 7, 0, 2, 2, 6),
		rec(probe.RingAppend, "cacher", "DELETED", "a", 8, 1, 3, 2, 7),
		rec(probe.RVAdvanced, "cacher", "", "", 12),
	))
	ms := int64(time.Millisecond)
	want := Ring{Start: 1, End: 3, Capacity: 2, Oldest: 7, Newest: 12, Cells: []Cell{
		{Pos: 1, T: 2 * ms, Token: Token{"ADDED", "b", 7}},
		{Pos: 2, T: 3 * ms, Token: Token{"DELETED", "a", 8}},
	}}
	assert.NoDiff(t, want, s.Resources["pods"].Ring, "ring")
}

// TestACacheThatHasEndedLeavesThePicture: the server's half goes, the informer's stays.
func TestACacheThatHasEndedLeavesThePicture(t *testing.T) {
	s := folded(in(
		rec(probe.WatchChanOpened, "etcd3-1", "", "", 0),
		rec(probe.CacheReplaced, "cacher", "", "", 5, 0, 0, 100, 1),
		rec(probe.RingAppend, "cacher", "ADDED", "a", 6, 0, 1, 100, 5),
		rec(probe.FreshnessWait, "cacher", "", "", 9),
		rec(probe.CacherReady, "cacher", "", "", 5, 1),
		rec(probe.WatcherAdded, "w1", "", "", 6, 10),
		rec(probe.IndexerUpdated, "informer", "Added", "default/a", 6, 1),
		rec(probe.CacherStopped, "cacher", "", "", 0),
	))
	pods := s.Resources["pods"]
	assert.NoDiff(t, Ring{Cells: []Cell{}}, pods.Ring, "ring")
	assert.Equal(t, 0, len(pods.Waits), "waits: got %v", pods.Waits)
	assert.True(t, len(pods.Subjects) == 1 && len(pods.Shelves) == 1 && pods.Subjects["informer"] != nil,
		"got %v and %v, want those of the informer", pods.Subjects, pods.Shelves)
}

// TestAResyncMakesAnInformerKnowNothingOlder: it is handed objects that it has, with the versions that they have.
func TestAResyncMakesAnInformerKnowNothingOlder(t *testing.T) {
	s := folded(in(
		rec(probe.ReflectorReceived, "informer", "ADDED", "default/a", 19),
		rec(probe.ReflectorReceived, "informer", "ADDED", "default/b", 20),
		rec(probe.FIFOPopped, "informer", "Sync", "default/a", 19, 0, 0),
		rec(probe.IndexerUpdated, "informer", "Sync", "default/a", 19, 2),
		rec(probe.Distributed, "informer", "MODIFIED", "default/a", 19, 1),
	))
	assert.Equal(t, 20, s.Resources["pods"].Subjects["informer"].RV, "what it knows")
}

func TestAShelfHoldsWhatWasNotDeleted(t *testing.T) {
	s := folded(in(
		rec(probe.IndexerUpdated, "informer", "Added", "default/z", 1, 1),
		rec(probe.IndexerUpdated, "informer", "Replaced", "", 1, 0), // the whole store
		rec(probe.IndexerUpdated, "informer", "Added", "default/a", 1, 1),
		rec(probe.IndexerUpdated, "informer", "Added", "default/b", 2, 2),
		rec(probe.IndexerUpdated, "informer", "Updated", "default/a", 3, 2),
		rec(probe.IndexerUpdated, "informer", "Deleted", "default/b", 4, 1),
		rec(probe.IndexerUpdated, "informer", "BOOKMARK", "", 9, 1),
	))
	want := &Shelf{N: 1, Rows: []Row{{Token{"Updated", "default/a", 3}, 5}}}
	assert.NoDiff(t, want, s.Resources["pods"].Shelves["indexer/informer"], "indexer")
}

func TestAGapIsCountedAndWhatItHidIsForgotten(t *testing.T) {
	records := in(
		rec(probe.WatcherAdded, "w1", "", "", 7, 10),
		rec(probe.RingAppend, "cacher", "ADDED", "a", 8, 0, 1, 100, 8),
		rec(probe.InputSent, "w1", "ADDED", "a", 8, 1, 10),
		rec(probe.InputSent, "w1", "ADDED", "b", 9, 1, 10),
		rec(probe.InputSent, "w2", "ADDED", "b", 9, 1, 10),
		rec(probe.ResultReceived, "w3", "ADDED", "b", 9, 0, 10),
	)
	for i := range records[3:] {
		records[3+i].Seq += 40
	}
	s := folded(records)
	assert.Equal(t, 40, s.Lost, "lost")
	pods := s.Resources["pods"]
	assert.Equal(t, 0, len(pods.Ring.Cells), "cells of the ring")
	got := pods.Subjects["w1"].Queues["input"]
	assert.True(t, got.Len == 1 && got.Tokens[0].Key == "b", "input of w1: got %+v, want what came after the gap", got)
	assert.True(t, pods.Subjects["w2"] != nil, "w2, whose opening was lost and which is sent events, does not appear")
	assert.Equal(t, nil, pods.Subjects["w3"], "w3, from which only a receive is known, appears")
}

// history draws a random, legal history of a machine with several watchers, a FIFO, a ring and a workqueue.
func history(t *rapid.T) []probe.Record {
	keys := rapid.SampledFrom([]string{"default/a", "default/b", "<b>&\u2028\xff", "ü"})
	types := rapid.SampledFrom([]string{"ADDED", "MODIFIED", "DELETED", "BOOKMARK"})
	subjects := rapid.SampledFrom([]string{"w1", "w2", "l1", "informer", "cacher", "etcd3-1", "etcd3-2", "scheduler",
		""})
	points := rapid.SampledFrom(probe.Points())
	args := rapid.SliceOfN(rapid.IntRange(0, 40), 4, 4)
	one := rapid.Custom(func(t *rapid.T) probe.Record {
		r := rec(points.Draw(t, "point"), subjects.Draw(t, "subject"), types.Draw(t, "type"), keys.Draw(t, "key"),
			rapid.Uint64Max(60).Draw(t, "rv"), args.Draw(t, "args")...)
		r.Texts = probe.NewTexts(map[string]string{"why": rapid.StringN(0, 300, -1).Draw(t, "text")})
		return r
	})
	return in(rapid.SliceOfN(one, 0, 120).Draw(t, "records")...)
}

func TestARecordThatWasWrittenFoldsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := history(t)
		got := New()
		for i := range records {
			written := AppendRecord(nil, &records[i])
			require.True(t, json.Valid(written), "not JSON: %s", written)
			r := require.Value(ReadRecord(written))(t)
			got.Apply([]probe.Record{r})
		}
		require.Equal(t, "", cmp.Diff(folded(records), got), "state (-whole +read record by record):\n")
	})
}

func TestQueuesEndEqualHoweverTheTwoSidesAreWrittenDown(t *testing.T) {
	sides := [][2]probe.Point{
		{probe.IncomingSent, probe.IncomingReceived},
		{probe.InputSent, probe.InputReceived},
	}
	rapid.Check(t, func(t *rapid.T) {
		side := rapid.SampledFrom(sides).Draw(t, "queue")
		n := rapid.IntRange(0, 60).Draw(t, "sends")
		taken := rapid.IntRange(max(0, n-10), n).Draw(t, "receives")
		opening := rec(probe.WatcherAdded, "w1", "", "", 0)
		var sends, receives []probe.Record
		for i := range n {
			sends = append(sends, rec(side[0], "w1", "ADDED", "default/a", uint64(i+1), 0, 10))
		}
		for i := range taken {
			receives = append(receives, rec(side[1], "w1", "ADDED", "default/a", uint64(i+1), 0, 10))
		}
		shuffled := func(seed uint64) *Queue {
			random := rand.New(rand.NewPCG(seed, 0))
			all := []probe.Record{opening}
			s, r := sends, receives
			for len(s)+len(r) > 0 {
				if len(s) > 0 && (len(r) == 0 || random.IntN(2) == 0) {
					all, s = append(all, s[0]), s[1:]
				} else {
					all, r = append(all, r[0]), r[1:]
				}
			}
			q := folded(in(all...)).Resources["pods"].Subjects["w1"].queue(side[0].Info().Queue)
			q.High = 0 // how long it seemed to be on the way does depend on the order
			return q
		}
		one := shuffled(rapid.Uint64().Draw(t, "one order"))
		other := shuffled(rapid.Uint64().Draw(t, "other order"))
		require.Equal(t, "", cmp.Diff(one, other), "queue (-one order +other order):\n")
		require.Equal(t, int64(n-taken), one.Len, "len: got %d, want %d", one.Len, n-taken)
		for i, token := range one.Tokens {
			want := uint64(n - len(one.Tokens) + i + 1)
			require.Equal(t, want, token.RV, "token %d: got rv %d, want %d", i, token.RV, want)
		}
	})
}

// TestAPictureThatSaysLittleIsFoldedOn: a keyframe may have been written by an earlier version, or by hand.
func TestAPictureThatSaysLittleIsFoldedOn(t *testing.T) {
	for _, written := range []string{
		`{}`, `{"resources":null}`, `{"resources":{"pods":null}}`, `{"resources":{"pods":{}}}`,
		`{"resources":{"pods":{"subjects":{"w1":null,"w2":{"kind":"watcher"}},"stations":{"ring":null,"store":{}},` +
			`"shelves":{"store/cacher":null},"waits":{"InputBlocked w1":null}}}}`,
		`{"resources":{"pods":{"subjects":{"w1":{"kind":"watcher","queues":{"input":null,"result":{}}}}}}}`,
	} {
		s, err := Read([]byte(written))
		require.NoError(t, err, written)
		var all []probe.Record
		for _, point := range probe.Points() {
			for _, subject := range []string{"w1", "w2", "cacher", ""} {
				all = append(all, rec(point, subject, "ADDED", "/registry/pods/default/a", 1, 1, 1, 1, 1))
			}
		}
		s.Apply(in(all...))
		whole := require.Value(json.Marshal(s))(t)
		assert.False(t, strings.Contains(string(whole), "null"), "%s: something is missing: %s", written, whole)
	}
	_, err := Read([]byte(`{"seq":9007199254740993}`))
	assert.True(t, err != nil, "a record beyond 2^53 is not a number that the page can have")
}
