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
	flightWindow = 30 * time.Second // the time before the fault that a file covers
	flightAfter  = 2 * time.Second  // the time after the fault that a file covers
	flightRest   = 30 * time.Second // the pause between two files, so that a lasting fault makes few files
	maxFlights   = 20               // maximum number of files that one recorder writes
)

// Flight is the flight recorder: it watches the log and, when something goes wrong, saves the last half minute to a
// file. It reacts to an evicted watcher, an error in a watch, a 410 response, and a breach of the rules.
type Flight struct {
	// Set by its maker, never changed.
	Log      *probe.Log
	Dir      string
	Switches map[string]string
	// Keyframe returns a picture at or before a record, from which the recording can begin, or else an error.
	Keyframe func(ctx context.Context, seq uint64) (fold.Keyframe, error)
	// Breaches returns the breaches found at records after seq, in the order of the log.
	Breaches func(seq uint64) []rules.Breach
	// Say is called with one line about every saved file. After a failure, Say is called with the error, and then not
	// again for further failures until a file has been saved.
	Say func(line string)

	// Run's own state.
	seq     uint64    // the newest record that was looked at
	story   bool      // whether a story is playing; stories cause faults on purpose
	broken  uint64    // the record of the newest breach that was looked at
	files   int       // files that were saved
	failing bool      // whether saving the last file failed, which Say has reported
	resting time.Time // the time from which the next file may be saved
}

// Run watches the log until ctx is done. Call it once.
func (f *Flight) Run(ctx context.Context) {
	f.seq = f.Log.Last()
	routine.Every(ctx, clock.RealClock{}, interval, f.look)
}

// trigger is a fault; the records before and after it are to be saved to a file.
type trigger struct {
	record probe.Record
	reason string // "" if nothing has happened that deserves a file
}

// look saves a recording if one is due, flightAfter after the fault, and reports the file or the first failure.
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

// played selects the records at which a story begins or ends.
var played = probe.Query{Points: []probe.Point{probe.KnobTurned},
	Fields: map[probe.Field]string{probe.FieldName: "story"}}

// due returns the first fault since the last look. A broken rule takes precedence, because it should never happen. due
// ignores other faults during a story, and records that have left the log.
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
		f.broken = breaches[len(breaches)-1].Seq
		broken := breaches[0]
		return trigger{broken.Record, fmt.Sprintf("Promise %d was broken: %s.", broken.Rule, broken.Text)}
	}
	return first
}

// reason describes ERROR frames, evicted watchers, watch errors and 410 responses. For other records it returns "".
func (f *Flight) reason(r *probe.Record) string {
	switch point := r.Point; {
	case point == probe.FrameWritten && r.Anomaly(): // an ERROR event, as after 410
		return "A watch was answered with an error in its stream, and its client has to begin again."
	case point == probe.WatcherForced, point == probe.WatchChanError, point == probe.RequestAnswered && r.Anomaly():
		return f.Log.Names().Sentence(r)
	}
	return ""
}

// save writes the window before the fault and the records after it, and returns the file's name. If writing fails, it
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

// window returns the log's newest records, and the picture before them. The records begin after the last keyframe
// before since, or else after the newest keyframe. Without either, they begin at since, and the picture is nil.
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
	return records, nil // the recording has no picture to begin with, and the page shows that
}
