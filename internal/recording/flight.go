package recording

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"listwatch/internal/probe"
)

const (
	flightWindow = 30 * time.Second // how much of the past is saved
	flightAfter  = 2 * time.Second  // how long what follows is waited for
	flightRest   = 30 * time.Second // after one file before the next: one fault is one file, however often it shows
	maxFlights   = 20               // files of one run
)

// Flight is the flight recorder: it looks at the log all the time, and when something has gone wrong it saves the last half
// minute to a file by itself. What is wrong is a watcher that was closed because it did not keep up, or a client that
// was told that its history is gone.
type Flight struct {
	// Set by whoever makes it, never changed.
	Log      *probe.Log
	Clock    clock.WithTicker // that of the people, not of the pipeline
	Dir      string
	Switches map[string]string
	// Keyframe returns a picture at or before a record, from which the recording can begin; ok is false if there is none.
	Keyframe func(seq uint64) (at uint64, state json.RawMessage, ok bool)
	// Say is told about every file, and about every one that could not be written, in one line.
	Say func(line string)

	// Owned by Run.
	seq     uint64 // looked at up to here
	files   int
	resting time.Time // until then nothing is saved
	records []probe.Record
}

// Run looks at the log until ctx is done. What goes wrong after that is the end of the program.
func (f *Flight) Run(ctx context.Context) {
	f.seq = f.Log.Last()
	ticker := f.Clock.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			f.look(ctx)
		}
	}
}

// look saves a recording if one is due.
func (f *Flight) look(ctx context.Context) {
	trigger, found := f.next()
	if !found || f.files >= maxFlights || f.Clock.Now().Before(f.resting) {
		return
	}
	if !f.wait(ctx, flightAfter) {
		return
	}
	f.files++
	f.resting = f.Clock.Now().Add(flightRest)
	name, err := f.save(trigger)
	if err != nil {
		f.Say(fmt.Sprintf("the flight recording of %q could not be saved: %v", reason(&trigger), err))
		return
	}
	f.Say(fmt.Sprintf("%s The last %v are in %s: look at them with -replay, or drop the file onto the page.", reason(&trigger), flightWindow, name))
}

// next returns the first record since the last look that is worth a file.
func (f *Flight) next() (trigger probe.Record, found bool) {
	for {
		var ok bool
		f.records, ok = f.Log.Since(f.records[:0], f.seq, batch)
		if !ok {
			f.seq = f.Log.Oldest() - 1 // overrun: what was there is gone, and so is what led there
			continue
		}
		if len(f.records) == 0 {
			return trigger, found
		}
		for i := range f.records {
			if !found && worthAFile(&f.records[i]) {
				trigger, found = f.records[i], true
			}
		}
		f.seq = f.records[len(f.records)-1].Seq
	}
}

// worthAFile reports whether a record is what people ask about afterwards.
func worthAFile(r *probe.Record) bool {
	switch r.Point {
	case probe.WatcherForced, probe.WatchChanError:
		return true
	case probe.RequestAnswered, probe.FrameWritten:
		return r.Anomaly() // 410, as an answer or in a stream
	}
	return false
}

// reason says what went wrong.
func reason(r *probe.Record) string {
	if r.Point == probe.FrameWritten {
		return "A watch was answered with an error in its stream, and its client has to begin again."
	}
	return r.Sentence()
}

// wait returns false if ctx was done first.
func (f *Flight) wait(ctx context.Context, d time.Duration) bool {
	timer := f.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
		return true
	}
}

// save writes the window before and what came after, and returns the name of the file.
func (f *Flight) save(trigger probe.Record) (string, error) {
	records := f.window(trigger.Time - flightWindow)
	header := NewHeader(f.Clock.Now(), f.Switches)
	header.Reason = reason(&trigger)
	if len(records) > 0 && records[0].Seq > 1 {
		records, header.Keyframe = f.fromKeyframe(records)
	}
	name := fmt.Sprintf("listwatch-flight-%s-%s-*.lw.gz", header.Started.Format("20060102-150405"), strings.ToLower(trigger.Point.String()))
	file, err := os.CreateTemp(f.Dir, name)
	if err != nil {
		return "", err
	}
	if err := WriteAll(file, header, records); err != nil {
		_ = file.Close() // the first error is the one to tell
		return "", err
	}
	return filepath.Clean(file.Name()), file.Close()
}

// window returns what the log holds since a time on its clock.
func (f *Flight) window(since time.Duration) (kept []probe.Record) {
	seq := f.Log.Oldest() - 1
	var some []probe.Record
	for {
		var ok bool
		some, ok = f.Log.Since(some[:0], seq, batch)
		if !ok {
			seq, kept = f.Log.Oldest()-1, kept[:0]
			continue
		}
		if len(some) == 0 {
			return kept
		}
		for i := range some {
			if some[i].Time >= since {
				kept = append(kept, some[i])
			}
		}
		seq = some[len(some)-1].Seq
	}
}

// fromKeyframe makes the recording begin where a picture is known: at the keyframe before its first record, with the
// records from there, or, where the log no longer leads from one, at the first one after it.
func (f *Flight) fromKeyframe(records []probe.Record) ([]probe.Record, json.RawMessage) {
	first := records[0].Seq
	if at, state, ok := f.Keyframe(first - 1); ok {
		lead, ok := f.Log.Since(nil, at, int(first-1-at))
		if ok {
			return append(lead, records...), state
		}
	}
	last := records[len(records)-1].Seq
	at, state, ok := f.Keyframe(last)
	if !ok || at < first {
		return records, nil // it begins with a gap, and says so when it is shown
	}
	return records[at-first+1:], state
}
