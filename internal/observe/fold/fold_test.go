package fold

import (
	"encoding/json"
	"fmt"
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

// in sets the resource of the records to pods, numbers them 1, 2, 3, …, and sets their times a millisecond apart.
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

// TestACacheThatHasEndedLeavesThePicture stops a server: its half leaves the picture, and the informer's half stays.
func TestACacheThatHasEndedLeavesThePicture(t *testing.T) {
	s := folded(in(
		rec(probe.WatchChanOpened, "etcd3-1", "", "", 0),
		rec(probe.CacheReplaced, "cacher", "", "", 5, 0, 0, 100, 1),
		rec(probe.RingAppend, "cacher", "ADDED", "a", 6, 0, 1, 100, 5), rec(probe.FreshnessWait, "cacher", "", "", 9),
		rec(probe.CacherReady, "cacher", "", "", 5, 1), rec(probe.WatcherAdded, "w1", "", "", 6, 10),
		rec(probe.IndexerUpdated, "informer", "Added", "default/a", 6, 1),
		rec(probe.CacherStopped, "cacher", "", "", 0),
	))
	pods := s.Resources["pods"]
	assert.NoDiff(t, Ring{Cells: []Cell{}}, pods.Ring, "ring")
	assert.Equal(t, 0, len(pods.Waits), "waits: got %v", pods.Waits)
	assert.True(t, len(pods.Subjects) == 1 && len(pods.Shelves) == 1 && pods.Subjects["informer"] != nil,
		"got %v and %v, want those of the informer", pods.Subjects, pods.Shelves)
}

func TestAShelfHoldsWhatWasNotDeleted(t *testing.T) {
	s := folded(in(
		rec(probe.IndexerUpdated, "informer", "Added", "default/z", 1, 1),
		rec(probe.IndexerUpdated, "informer", "Replaced", "", 1, 0), // replaces the whole store
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
		rec(probe.InputSent, "w1", "ADDED", "b", 9, 1, 10), rec(probe.InputSent, "w2", "ADDED", "b", 9, 1, 10),
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

// history draws random records of all points. No machine would report most of them, but the fold must accept them all.
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
	sides := [][2]probe.Point{{probe.IncomingSent, probe.IncomingReceived}, {probe.InputSent, probe.InputReceived}}
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
			q.High = 0 // the largest length depends on the order of the records
			return q
		}
		one := shuffled(rapid.Uint64().Draw(t, "one order"))
		other := shuffled(rapid.Uint64().Draw(t, "other order"))
		require.Equal(t, "", cmp.Diff(one, other), "queue (-one order +other order):\n")
		require.Equal(t, int64(n-taken), one.Len, "len: got %d, want %d", one.Len, n-taken)
		for i, token := range one.Tokens {
			require.Equal(t, uint64(n-len(one.Tokens)+i+1), token.RV, "version of token %d", i)
		}
	})
}

// TestAPictureThatSaysLittleIsFoldedOn folds onto incomplete keyframes, as an earlier version of the program or a
// person may have written them. Nothing in the result may be null.
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

// at returns the picture after the record seq: the last keyframe up to seq, with the records between them folded in.
func at(t *rapid.T, k *Keyframes, records []probe.Record, seq uint64) *State {
	frame, ok := k.At(seq)
	require.True(t, ok, "no keyframe at %d; the oldest is %d", seq, k.Oldest())
	state := require.Value(Read(frame.State))(t)
	require.Equal(t, frame.Seq, state.Seq, "keyframe %d holds the state", frame.Seq)
	for i := range records {
		if r := records[i : i+1]; r[0].Seq > frame.Seq && r[0].Seq <= seq {
			state.Apply(r)
		}
	}
	return state
}

func TestAKeyframeAndItsTailAreTheWholeFoldAtAnyCursor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := history(t)
		pace := time.Duration(rapid.SampledFrom([]int{0, 1, 60, 1000}).Draw(t, "ms between records")) * time.Millisecond
		for i := range records {
			records[i].Time = time.Duration(i) * pace
		}
		k := NewKeyframes(rapid.Uint64Max(20).Draw(t, "every"))
		state := New()
		for rest := records; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "batch")
			k.Fold(state, rest[:n])
			k.Fold(state, rest[:n]) // folding the same batch again changes nothing
			rest = rest[n:]
		}
		require.Equal(t, "", cmp.Diff(folded(records), state), "state (-whole +with keyframes):\n")
		for range 5 {
			cursor := rapid.IntRange(0, len(records)).Draw(t, "cursor")
			if cursor == 0 && len(records) == 0 {
				continue // no record was folded, so no keyframe was kept
			}
			require.Equal(t, "", cmp.Diff(folded(records[:cursor]), at(t, k, records, uint64(cursor))), "at %d", cursor)
		}
	})
}

func TestKeyframesComeAtAPaceThatCanBeAfforded(t *testing.T) {
	tests := []struct {
		name string
		pace time.Duration
		want int // keyframes of 8000 records, including the one at the beginning
	}{
		{"slow", 10 * time.Millisecond, 81},  // a hundred a second: one keyframe for every hundred records
		{"fast", 100 * time.Microsecond, 11}, // ten thousand a second: here crowd determines the number
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			k := NewKeyframes(100)
			s := New()
			for i := range 8000 {
				r := rec(probe.TxnCommitted, "", "ADDED", "a", 1)
				r.Seq, r.Time = uint64(i+1), time.Duration(i)*test.pace
				k.Fold(s, []probe.Record{r})
			}
			n := len(k.frames)
			assert.True(t, n >= test.want-1 && n <= test.want+1, "got %d keyframes, want about %d", n, test.want)
		})
	}
}

// TestKeyframesAreBoundedInBytes folds records into a picture of 2 MB: the oldest, newest and other keyframes remain.
func TestKeyframesAreBoundedInBytes(t *testing.T) {
	s := New()
	for i := range 1000 {
		subject := newSubject("watcher", 1)
		subject.Texts["WireOpened"] = probe.Texts(strings.Repeat("x", 2000))
		s.resource("pods").Subjects[fmt.Sprint("w", i)] = subject
	}
	k := NewKeyframes(10)
	for i := range 1000 {
		r := rec(probe.TxnCommitted, "", "ADDED", "a", 1)
		r.Seq, r.Time = uint64(i+1), time.Duration(i)*time.Second
		k.Fold(s, []probe.Record{r})
	}
	bytes := 0
	for _, frame := range k.frames {
		bytes += len(frame.State)
	}
	assert.True(t, bytes == k.bytes && bytes <= maxKeyframes && bytes >= maxKeyframes/3,
		"%d bytes, counted as %d; want at most %d", bytes, k.bytes, maxKeyframes)
	assert.True(t, k.frames[0].Seq == 0 && k.newest().Seq == 1000,
		"the pictures are of %d to %d, want 0 to 1000", k.frames[0].Seq, k.newest().Seq)
}

func TestWhatTheLogHasLostCannotBeHadAgain(t *testing.T) {
	records := make([]probe.Record, 100)
	for i := range records {
		records[i] = rec(probe.TxnCommitted, "", "ADDED", "a", uint64(i))
		records[i].Seq, records[i].Time = uint64(i+1), time.Duration(i)*time.Second
	}
	k := NewKeyframes(10)
	s := New()
	k.Fold(s, records)
	k.Forget(35)
	_, ok := k.At(39)
	assert.False(t, ok, "there is a keyframe at 39, and the oldest record is 35: the one after 40 is the first of use")
	assert.Equal(t, 40, k.Oldest(), "oldest")
	gap := rec(probe.TxnCommitted, "", "ADDED", "a", 7)
	gap.Seq = 500
	k.Fold(s, []probe.Record{gap})
	_, ok = k.At(499)
	assert.True(t, !ok && k.Oldest() == 500, "after a gap: oldest %d, want 500 and nothing before", k.Oldest())
}
