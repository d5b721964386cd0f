package viz

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
	"listwatch/viz/reply"
)

// foldBatch is the maximum number of records that one fold takes from the log. It bounds how long a fold holds mu.
const foldBatch = 1024

// keyframes is the approximate number of pictures kept from a log's past.
const keyframes = 16

// framePeriod is the period of folds and of writes to a feed: two frames of a 60 Hz screen, and few enough messages
// that a page keeps up with fifty thousand records a second. It is wall time, never world time, because a page shows a
// held world, too.
const framePeriod = 33 * time.Millisecond

// Pictures keeps the folded state of a log, and keyframes of its past.
type Pictures struct {
	// Set by NewPictures, never changed.
	log     *probe.Log
	recount func(resource, subject string, limit int)

	mu     sync.Mutex // guards the fields below; taken before the log's own lock
	state  *fold.State
	frames *fold.Keyframes
	batch  []probe.Record // reused by every foldLocked

	stale       atomic.Bool // whether a frame has begun since sharedState was written
	sharedMu    sync.Mutex  // guards the fields below; taken before mu
	sharedSeq   uint64
	sharedState json.RawMessage
}

// NewPictures returns the pictures of a log that begins with the picture start, or with an empty one if start is nil.
// recount, which may be nil, makes the store of a subject report its objects if there are at most limit of them.
// NewPictures starts no goroutine; Run does the work.
func NewPictures(log *probe.Log, start *fold.State, recount func(resource, subject string, limit int)) *Pictures {
	f := &Pictures{log: log, recount: recount, state: fold.New(),
		frames: fold.NewKeyframes(uint64(log.Size() / keyframes))}
	if start != nil {
		f.state = start.Clone()
		start.Names(log.Names())
	}
	f.frames.Fold(f.state, nil)
	return f
}

// recountPeriod is the time between two recounts of stores with objects that the picture does not name.
const recountPeriod = 15 * framePeriod

// Run folds every framePeriod until ctx is done. Every recountPeriod it recounts the stores whose objects the picture
// has room for but cannot name.
func (f *Pictures) Run(ctx context.Context) {
	ticker := time.NewTicker(framePeriod)
	defer ticker.Stop()
	for since := framePeriod; ; since += framePeriod {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		f.stale.Store(true)
		unnamed := f.unnamed(ctx)
		if since < recountPeriod || f.recount == nil {
			continue
		}
		since = 0
		for _, each := range unnamed {
			f.recount(each[0], each[1], fold.MaxRows) // without mu, because the store's station takes its own locks
		}
	}
}

// unnamed folds the new records. It returns the shelves that have room for all their objects, but lack some of them.
func (f *Pictures) unnamed(ctx context.Context) (shelves [][2]string) {
	if f.lockCurrent(ctx) != nil {
		return nil
	}
	defer f.mu.Unlock()
	for resource, res := range f.state.Resources {
		for name, shelf := range res.Shelves {
			if int64(len(shelf.Rows)) < shelf.N && shelf.N <= fold.MaxRows {
				_, subject, _ := strings.Cut(name, "/")
				shelves = append(shelves, [2]string{resource, subject})
			}
		}
	}
	return shelves
}

// lockCurrent folds the whole log, and returns with f.mu locked. It folds a batch at a time and releases f.mu after
// each, so that other callers and the end of the program need not wait for a long log. If ctx ends first, lockCurrent
// returns ctx's error, without the lock.
func (f *Pictures) lockCurrent(ctx context.Context) error {
	for {
		f.mu.Lock()
		if !f.foldLocked() {
			return nil
		}
		f.mu.Unlock()
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// foldLocked folds one batch and reports whether there was anything to fold. If the log has dropped the next record,
// foldLocked goes on with the oldest one; the state counts the missing records as lost. The caller must hold f.mu.
func (f *Pictures) foldLocked() bool {
	from := f.state.Seq
	records, ok := f.log.Since(f.batch[:0], from, foldBatch)
	for !ok && from < f.log.Last() {
		from = f.log.Oldest() - 1
		records, ok = f.log.Since(f.batch[:0], from, foldBatch)
	}
	f.batch = records
	if len(records) == 0 { // no new records, or the picture is ahead of the log
		f.frames.Forget(f.log.Oldest())
		return false
	}
	f.frames.Fold(f.state, records)
	return true
}

// Keyframe returns the newest picture kept at or before seq. The error is ctx's, or 410 Gone if none is kept any more.
func (f *Pictures) Keyframe(ctx context.Context, seq uint64) (fold.Keyframe, error) {
	if err := f.lockCurrent(ctx); err != nil {
		return fold.Keyframe{}, err
	}
	defer f.mu.Unlock()
	frame, ok := f.frames.At(seq)
	if !ok {
		return frame, reply.Refuse(http.StatusGone, "record %d has left the log: the oldest picture is that at %d", seq,
			f.frames.Oldest())
	}
	return frame, nil
}

// Bounds returns the first and the last record with a picture, and the time of the last. The error is ctx's.
func (f *Pictures) Bounds(ctx context.Context) (oldest, last uint64, t int64, err error) {
	if err := f.lockCurrent(ctx); err != nil {
		return 0, 0, 0, err
	}
	defer f.mu.Unlock()
	return f.frames.Oldest(), f.state.Seq, f.state.T, nil
}

// Snapshot returns the current state as JSON, with its sequence number, or ctx's error. It encodes without f.mu.
func (f *Pictures) Snapshot(ctx context.Context) (uint64, json.RawMessage, error) {
	state, err := f.Now(ctx)
	if err != nil {
		return 0, nil, err
	}
	written, err := json.Marshal(state)
	return state.Seq, written, err
}

// shared returns a snapshot that is newer than record number after. All pages that get sums share it: it is encoded at
// most once a framePeriod, unless one of them needs a newer one.
func (f *Pictures) shared(ctx context.Context, after uint64) (seq uint64, written json.RawMessage, err error) {
	f.sharedMu.Lock()
	defer f.sharedMu.Unlock()
	if f.sharedSeq <= after || f.stale.Swap(false) {
		f.sharedSeq, f.sharedState, err = f.Snapshot(ctx)
	}
	return f.sharedSeq, f.sharedState, err
}

// Now returns a copy of the newest picture, or ctx's error.
func (f *Pictures) Now(ctx context.Context) (*fold.State, error) {
	if err := f.lockCurrent(ctx); err != nil {
		return nil, err
	}
	defer f.mu.Unlock()
	return f.state.Clone(), nil
}
