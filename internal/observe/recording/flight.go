package recording

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
	"listwatch/internal/observe/rules"
)

const (
	flightWindow = 30 * time.Second // of the past that a file holds
	flightAfter  = 2 * time.Second  // of what follows the fault
	flightRest   = 30 * time.Second // between two files: one fault is one file, however often it shows
	maxFlights   = 20               // files of one recorder
)

// Flight is the flight recorder: it watches the log and, when something goes wrong, saves the last half minute to a
// file. Three things count as wrong: the server closes a watcher that does not keep up, a client is told that its
// history is gone (410), or one of the ten promises is broken.
type Flight struct {
	// Set by its maker, never changed.
	Log      *probe.Log
	Dir      string
	Switches map[string]string
	// Keyframe returns a picture at or before a record, from which the recording can begin; or an error if there is
	// none.
	Keyframe func(ctx context.Context, seq uint64) (fold.Keyframe, error)
	// Breaches returns the broken promises found at records after seq, in the order of the log.
	Breaches func(seq uint64) []rules.Breach
	// Say is called with one line about every file, and once if none can be written, until one can.
	Say func(line string)

	// Owned by Run.
	seq     uint64    // looked at up to here
	story   bool      // one is played, which leads to faults on purpose
	broken  uint64    // record of the newest breach that was looked at
	files   int       // saved
	failing bool      // the last file could not be saved, and Say was called with that
	resting time.Time // until then nothing is saved
}

// Run watches the log until ctx is done. It is called once.
func (f *Flight) Run(ctx context.Context) {
	f.seq = f.Log.Last()
	routine.Every(ctx, clock.RealClock{}, interval, f.look)
}

// trigger is what a file is written for.
type trigger struct {
	record probe.Record
	reason string // "": nothing has happened that is worth one
}

// look saves a recording if one is due.
func (f *Flight) look(ctx context.Context) {
	trigger := f.due()
	if trigger.reason == "" || f.files >= maxFlights || time.Now().Before(f.resting) {
		return
	}
	if routine.Sleep(ctx, clock.RealClock{}, flightAfter) != nil {
		return
	}
	f.resting = time.Now().Add(flightRest)
	name, err := f.save(ctx, trigger)
	if err != nil {
		if !f.failing {
			f.Say(fmt.Sprintf("the flight recording of %q could not be saved: %v", trigger.reason, err))
		}
		f.failing = true
		return
	}
	f.failing = false
	f.files++
	f.Say(fmt.Sprintf("%s The last %v are in %s: look at them with -replay, or drop the file onto the page.",
		trigger.reason, flightWindow, name))
}

// played means that a story begins or ends.
var played = probe.Query{Points: []probe.Point{probe.KnobTurned},
	Fields: map[probe.Field]string{probe.FieldName: "story"}}

// due returns the first since the last look that is worth a file. A broken promise comes first: it should never happen.
// What the log has overrun is left out: what led there is gone, too.
func (f *Flight) due() (first trigger) {
	for r := range f.Log.Between(f.seq, f.Log.Last()) {
		f.seq = r.Seq
		if played.Matches(r) {
			f.story = r.Field(probe.FieldValue) == "true"
		}
		if first.reason == "" && !f.story {
			first = trigger{*r, f.reason(r)}
		}
	}
	if breaches := f.Breaches(f.broken); len(breaches) > 0 {
		f.broken = breaches[len(breaches)-1].Record.Seq
		broken := breaches[0]
		return trigger{broken.Record, fmt.Sprintf("Promise %d was broken: %s.", broken.Rule, broken.Text)}
	}
	return first
}

// reason says what went wrong, if a record tells of a fault that people ask about afterwards; otherwise it is "".
func (f *Flight) reason(r *probe.Record) string {
	switch point := r.Point; {
	case point == probe.FrameWritten && r.Anomaly(): // 410
		return "A watch was answered with an error in its stream, and its client has to begin again."
	case point == probe.WatcherForced, point == probe.WatchChanError, point == probe.RequestAnswered && r.Anomaly():
		return f.Log.Names().Sentence(r)
	}
	return ""
}

// save writes the window before the fault and what came after, and returns the file's name. If writing fails, it
// removes the file.
func (f *Flight) save(ctx context.Context, t trigger) (string, error) {
	header := NewHeader(time.Now(), f.Switches)
	header.Reason = t.reason
	var records []probe.Record
	records, header.Keyframe = f.window(ctx, t.record.Time-flightWindow)
	name := fmt.Sprintf("listwatch-flight-%s-%s-*.lw.gz", header.Started.Format("20060102-150405"),
		strings.ToLower(t.record.Point.String()))
	file, err := os.CreateTemp(f.Dir, name)
	if err != nil {
		return "", err
	}
	err = errors.Join(WriteAll(file, header, records), file.Close())
	if err != nil {
		return "", errors.Join(err, os.Remove(file.Name()))
	}
	return filepath.Clean(file.Name()), nil
}

// window returns what the log holds since a time on its clock, with the picture before it: from the last keyframe
// before that time on. If the log no longer holds what leads from there, it begins at the newest keyframe.
func (f *Flight) window(ctx context.Context, since time.Duration) ([]probe.Record, json.RawMessage) {
	first, last := f.Log.Oldest(), f.Log.Last()
	for r := range f.Log.Between(first-1, last) {
		if first = r.Seq; r.Time >= since {
			break
		}
	}
	for _, seq := range []uint64{first - 1, last} {
		frame, err := f.Keyframe(ctx, seq)
		if err != nil {
			continue
		}
		if records, ok := f.Log.Since(nil, frame.Seq, int(last-frame.Seq)); ok && len(records) > 0 {
			return records, frame.State
		}
	}
	records, _ := f.Log.Since(nil, first-1, int(last-first+1))
	return records, nil // it begins with a gap, and says so when it is shown
}
