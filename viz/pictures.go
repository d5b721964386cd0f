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

// foldBatch is how many records are taken from the log at once, so that its lock is never held for long.
const foldBatch = 1024

// keyframes is how many pictures are kept of what a log holds, about.
const keyframes = 16

// framePeriod is how often the log is folded and a feed is written: two frames of a 60 Hz screen, and few enough
// messages that a page keeps up with fifty thousand records a second. By the wall's clock, never by the world's: a page
// shows a held world, too.
const framePeriod = 33 * time.Millisecond

// Pictures keeps the folded state of a log, and what it takes to show its past: keyframes.
type Pictures struct {
	// Set by NewPictures, never changed.
	log     *probe.Log
	recount func(resource, subject string, limit int)

	mu     sync.Mutex // guards the fields below; taken before the log's own lock
	state  *fold.State
	frames *fold.Keyframes
	batch  []probe.Record // reused by every foldLocked

	stale       atomic.Bool // a frame has begun since what follows was written
	sharedMu    sync.Mutex  // guards the fields below; taken before mu
	sharedSeq   uint64
	sharedState json.RawMessage
}

// NewPictures returns a pictures of a log that begins with the picture start; nil: with the empty one. recount lets the
// store of a subject report what it holds, if that is at most limit objects; nil: none can be asked. It starts nothing;
// Run does.
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

// recountPeriod is how often stores are asked whose names the picture had to give up.
const recountPeriod = 15 * framePeriod

// Run folds every framePeriod until ctx is done, and now and then lets the stores recount of which the picture has room
// for more names than it knows.
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
			f.recount(each[0], each[1], fold.MaxRows) // without mu: the station takes locks of its own
		}
	}
}

// unnamed folds what has been written since, and returns the shelves, each by resource and subject, that have room for
// objects whose names are not known.
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

// lockCurrent locks f.mu when everything is folded that the log holds. It folds a batch at a time and releases f.mu
// after each, so that other callers and the end of the program need not wait for a long log. If ctx ends first,
// lockCurrent returns its error, and f.mu is not locked.
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

// foldLocked folds one batch and reports whether there was anything to fold. If the log has overrun us, it goes on with
// the oldest record there is: the state counts what is missing as lost, and says so.
func (f *Pictures) foldLocked() bool {
	from := f.state.Seq
	records, ok := f.log.Since(f.batch[:0], from, foldBatch)
	for !ok && from < f.log.Last() {
		from = f.log.Oldest() - 1
		records, ok = f.log.Since(f.batch[:0], from, foldBatch)
	}
	f.batch = records
	if len(records) == 0 { // also if the picture is ahead of the log
		f.frames.Forget(f.log.Oldest())
		return false
	}
	f.frames.Fold(f.state, records)
	return true
}

// Keyframe returns the newest picture kept at or before seq. The error is 410 Gone if none is kept any more.
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

// Bounds returns the first and the last record at which a picture can be had, and the time of the last.
func (f *Pictures) Bounds(ctx context.Context) (oldest, last uint64, t int64, err error) {
	if err := f.lockCurrent(ctx); err != nil {
		return 0, 0, 0, err
	}
	defer f.mu.Unlock()
	return f.frames.Oldest(), f.state.Seq, f.state.T, nil
}

// Snapshot returns the state up to this moment as JSON, with its sequence number. It is written without f.mu.
func (f *Pictures) Snapshot(ctx context.Context) (uint64, json.RawMessage, error) {
	state, err := f.Now(ctx)
	if err != nil {
		return 0, nil, err
	}
	written, err := json.Marshal(state)
	return state.Seq, written, err
}

// shared is a snapshot for all pages that are sent sums: it is written once in a frame, however many pages there are.
// It is newer than the record after.
func (f *Pictures) shared(ctx context.Context, after uint64) (seq uint64, written json.RawMessage, err error) {
	f.sharedMu.Lock()
	defer f.sharedMu.Unlock()
	if f.sharedSeq <= after || f.stale.Swap(false) {
		f.sharedSeq, f.sharedState, err = f.Snapshot(ctx)
	}
	return f.sharedSeq, f.sharedState, err
}

// Now returns the newest picture, the caller's own.
func (f *Pictures) Now(ctx context.Context) (*fold.State, error) {
	if err := f.lockCurrent(ctx); err != nil {
		return nil, err
	}
	defer f.mu.Unlock()
	return f.state.Clone(), nil
}
