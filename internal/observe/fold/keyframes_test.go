package fold

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
)

// at returns the picture after seq, from the keyframe before it.
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
			k.Fold(state, rest[:n]) // a batch that comes twice changes nothing
			rest = rest[n:]
		}
		require.Equal(t, "", cmp.Diff(folded(records), state), "state (-whole +with keyframes):\n")
		for range 5 {
			cursor := rapid.IntRange(0, len(records)).Draw(t, "cursor")
			if cursor == 0 && len(records) == 0 {
				continue // nothing was folded: nothing is kept
			}
			want := folded(records[:cursor])
			require.Equal(t, "", cmp.Diff(want, at(t, k, records, uint64(cursor))), "at %d", cursor)
		}
	})
}

func TestKeyframesComeAtAPaceThatCanBeAfforded(t *testing.T) {
	tests := []struct {
		name string
		pace time.Duration
		want int // of 8000 records, one every hundred, and the beginning
	}{
		{"slow", 10 * time.Millisecond, 81},
		{"fast", 100 * time.Microsecond, 11}, // ten thousand a second: as many as crowd allows
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

// TestKeyframesAreBoundedInBytes folds a picture of 2 MB again and again: the oldest and the newest are kept, and some
// between.
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
