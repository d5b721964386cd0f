package recording

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/rules"
)

// flown is a log, the picture folded from it, and the lines and the folder of a flight recorder that watches the log.
type flown struct {
	log   *probe.Log
	pods  *probe.Probe
	dir   string
	lines []string

	mu   sync.Mutex // guards fold and kept: the test folds while the recorder gets a keyframe
	fold *fold.State
	kept *fold.Keyframes

	broken json.RawMessage // if not nil, replaces every keyframe
}

func newFlown(t *testing.T) *flown {
	log := probe.NewLog(clock.RealClock{}, 1<<12)
	return &flown{log: log, pods: probe.New(log).Resource("pods"), dir: t.TempDir(), fold: fold.New(),
		kept: fold.NewKeyframes(16)}
}

func (f *flown) catchUp() {
	f.mu.Lock()
	defer f.mu.Unlock()
	records, _ := f.log.Since(nil, f.fold.Seq, 1<<20)
	f.kept.Fold(f.fold, records)
	f.kept.Forget(f.log.Oldest())
}

func (f *flown) keyframe(_ context.Context, seq uint64) (fold.Keyframe, error) {
	if f.broken != nil {
		return fold.Keyframe{Seq: seq, State: f.broken}, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if frame, ok := f.kept.At(seq); ok {
		return frame, nil
	}
	return fold.Keyframe{}, errors.New("gone")
}

func (f *flown) run(t *testing.T, story func()) {
	monitor := rules.NewMonitor(f.log)
	flight := &Flight{
		Log: f.log, Dir: f.dir, Keyframe: f.keyframe,
		Say: func(line string) { f.lines = append(f.lines, line) }, Breaches: monitor.Breaches,
	}
	defer bubble.Go(t, "test.monitor", monitor.Run)()
	defer bubble.Go(t, "test.flight", flight.Run)()
	synctest.Wait()
	story()
}

// live writes a record every 100 ms, for d.
func (f *flown) live(d time.Duration) {
	for range d / (100 * time.Millisecond) {
		f.pods.Subject("w1").Event(probe.InputSent, "ADDED", "a", f.log.Last()+1, 1, 10)
		f.catchUp()
		time.Sleep(100 * time.Millisecond)
	}
}

func (f *flown) files(t *testing.T) []string {
	return require.Value(filepath.Glob(filepath.Join(f.dir, "*")))(t)
}

func TestAnEvictionSavesWhatLedToItAndWhatFollowed(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFlown(t)
		f.run(t, func() {
			f.pods.Subject("w1").Text(probe.WatcherAdded, "everything", "", 1, 10)
			f.live(time.Minute)
			f.pods.Subject("w1").At(probe.WatcherForced, "", 0)
			f.live(5 * time.Second)
		})
		files := f.files(t)
		require.True(t, len(files) == 1 && len(f.lines) == 1 && strings.Contains(f.lines[0], files[0]),
			"files %v, told %q, want one file and a line that names it", files, f.lines)
		rec := require.Value(Open(t.Context(), files[0]))(t)
		header, records, got := rec.Header, rec.Records, rec.Start
		assert.True(t, strings.Contains(header.Reason, "w1 does not keep up"), "reason: got %q", header.Reason)
		first, last := records[0].Time, records[len(records)-1].Time
		assert.True(t, first <= 30*time.Second && first >= 25*time.Second && last >= 61*time.Second &&
			last <= 63*time.Second,
			"the recording is of %v to %v, want about 30s before 1m0s and 2s after", first, last)
		got.Apply(records)
		all, _ := f.log.Since(nil, 0, int(records[len(records)-1].Seq))
		want := fold.New()
		want.Apply(all)
		assert.NoDiff(t, want, got, "the picture at its end")
	})
}

func TestOneFaultIsOneFileHoweverOftenItShows(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFlown(t)
		f.run(t, func() {
			for i := range 4 {
				f.pods.Subject(fmt.Sprint("w", i)).At(probe.WatcherForced, "", 0)
				f.live(time.Second)
			}
			f.live(40 * time.Second)
			f.pods.Text(probe.RequestAnswered, "GET /api/v1/pods", "", 0, 200)
			f.live(3 * time.Second)
			assert.Equal(t, 1, len(f.files(t)), "after one fault and an answer 200 files")
			f.pods.Text(probe.RequestAnswered, "GET /api/v1/pods", "", 0, 410)
			f.live(3 * time.Second)
		})
		assert.Equal(t, 2, len(f.files(t)), "after a 410 files")
		f.run(t, func() {
			f.live(40 * time.Second)
			f.pods.Texts(probe.KnobTurned, []string{"story", "tour", "true"}, "", 0)
			f.pods.Text(probe.RequestAnswered, "GET /api/v1/pods", "", 0, 410)
			f.live(3 * time.Second)
			assert.Equal(t, 2, len(f.files(t)), "after a 410 of a story files")
			f.pods.Texts(probe.KnobTurned, []string{"story", "tour", "false"}, "", 0)
			f.pods.Text(probe.RequestAnswered, "GET /api/v1/pods", "", 0, 410)
			f.live(3 * time.Second)
			assert.Equal(t, 3, len(f.files(t)), "after a 410 behind the story files")
		})
	})
}

func TestABrokenPromiseIsSaved(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFlown(t)
		f.run(t, func() {
			f.live(5 * time.Second)
			f.pods.Event(probe.RingAppend, "ADDED", "/registry/pods/default/a", 900, 0, 1, 100, 900)
			// The store has not taken default/a yet, so this record breaks rule 1.
			f.pods.Event(probe.RingAppend, "ADDED", "/registry/pods/default/b", 901, 0, 2, 100, 900)
			f.live(40 * time.Second)
		})
		assert.True(t, len(f.lines) == 1 && len(f.files(t)) == 1 &&
			strings.Contains(f.lines[0], "Promise 1 was broken: "),
			"files %v, told %q, want one file that says which promise", f.files(t), f.lines)
	})
}

func TestAFileThatIsHalfWrittenIsRemoved(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFlown(t)
		f.live(time.Minute)
		f.broken = json.RawMessage("{") // no recording can hold invalid JSON
		f.run(t, func() {
			for range 3 { // Say is called for the first failure only
				f.pods.Subject("w1").At(probe.WatcherForced, "", 0)
				f.live(2 * flightRest)
			}
		})
		files := f.files(t)
		assert.True(t, len(files) == 0 && len(f.lines) == 1 && strings.Contains(f.lines[0], "could not be saved"),
			"files %v, told %q; want none, and that it could not be saved", files, f.lines)
	})
}
