package fold

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"listwatch/internal/observe/probe"
)

// keyframeSpacing is the minimum time between two keyframes, on the log's clock; [crowd] allows exceptions. Writing a
// state costs as much as folding a thousand records, and more with a thousand watchers.
const keyframeSpacing = 100 * time.Millisecond

// crowd times the usual number is the maximum number of records between two keyframes, however fast records arrive.
const crowd = 8

// maxKeyframes limits the bytes of all keyframes together: a picture of ten thousand watchers takes ten megabytes.
const maxKeyframes = 64 << 20

// Keyframe is the picture after the record Seq, as JSON for [Read].
type Keyframe struct {
	Seq   uint64
	State json.RawMessage
}

// Keyframes are pictures kept while a log is folded. The picture at a record is the newest keyframe up to it, with the
// records between them folded in. The caller drops old keyframes with [Keyframes.Forget]. The total size is bounded.
type Keyframes struct {
	every  uint64
	frames []Keyframe // the oldest first
	bytes  int        // the size of all frames
	last   int64      // T of the newest frame
}

// NewKeyframes returns an empty list. every is the usual number of records between two pictures; 0 means 1.
func NewKeyframes(every uint64) *Keyframes { return &Keyframes{every: max(1, every)} }

// Fold applies records to s as [State.Apply] does, and keeps a keyframe from time to time. If there is none yet, Fold
// first keeps the state before the records. At a gap in the records it drops all older keyframes, because no records
// lead from them to the picture after the gap.
func (k *Keyframes) Fold(s *State, records []probe.Record) {
	if len(k.frames) == 0 {
		k.keep(s)
	}
	for i := range records {
		before := s.Seq
		s.apply(&records[i])
		switch since := s.Seq - k.newest().Seq; {
		case s.Seq > before+1:
			k.drop(0, len(k.frames))
			k.keep(s)
		case since >= crowd*k.every, since >= k.every && time.Duration(s.T-k.last) >= keyframeSpacing:
			k.keep(s)
		}
	}
}

func (k *Keyframes) keep(s *State) {
	written, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("fold: a state is not JSON: %v", err)) // strings and numbers always are JSON
	}
	k.frames = append(k.frames, Keyframe{Seq: s.Seq, State: written})
	k.bytes += len(written)
	k.last = s.T
	if k.bytes > maxKeyframes {
		for i := 1; i < len(k.frames)-1; i++ { // drop every other frame, so older ones are further apart
			k.drop(i, i+1)
		}
	}
}

// drop removes the frames with indices in [from, to), and subtracts their bytes.
func (k *Keyframes) drop(from, to int) {
	for _, frame := range k.frames[from:to] {
		k.bytes -= len(frame.State)
	}
	k.frames = slices.Delete(k.frames, from, to)
}

func (k *Keyframes) newest() *Keyframe { return &k.frames[len(k.frames)-1] }

// At returns the newest keyframe that is not after seq; ok is false if there is none. Its State is shared: the caller
// must not write to it.
func (k *Keyframes) At(seq uint64) (frame Keyframe, ok bool) {
	for _, frame := range slices.Backward(k.frames) { // a linear search is fast enough for some twenty frames
		if frame.Seq <= seq {
			return frame, true
		}
	}
	return Keyframe{}, false
}

// Oldest returns the Seq of the oldest keyframe: 0 if it is the picture before the first record, or if there is none.
func (k *Keyframes) Oldest() uint64 {
	if len(k.frames) == 0 {
		return 0
	}
	return k.frames[0].Seq
}

// Forget drops the keyframes that are useless because the log no longer holds the record after them. oldest is the
// first record in the log.
func (k *Keyframes) Forget(oldest uint64) {
	n := 0
	for n < len(k.frames) && k.frames[n].Seq+1 < oldest {
		n++
	}
	k.drop(0, n)
}
