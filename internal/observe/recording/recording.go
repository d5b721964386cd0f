// Package recording writes the probe log to a file while the program runs, and loads such a file back into a log when
// nothing runs. A recording is gzip over lines of JSON: a [Header], then one record a line.
//
// [Write] follows the log from its beginning, because the command line asked for it. A [Flight] watches the log and,
// when something goes wrong, writes what led there. [Read] reads such a file and bounds what it takes into memory.
//
// This package has no lock; a Flight belongs to the goroutine that runs it.
package recording

import (
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"k8s.io/utils/clock"

	"listwatch/internal/kube/redact"
	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
)

// Version is the version of the format. [Read] takes a recording of another version if it understands every line.
const Version = 1

const (
	interval = 100 * time.Millisecond // how often a writer looks at the log
	batch    = 4096                   // records folded at once
)

// Header is the first line of a recording.
type Header struct {
	Format   string    `json:"format"` // "listwatch recording"
	Version  int       `json:"version"`
	Started  time.Time `json:"started"`            // when the file was begun, in UTC
	Reason   string    `json:"reason,omitempty"`   // why, if the command line did not ask for it
	Revision string    `json:"revision,omitempty"` // of the source, where the build knows it
	// Table has the points by name, each with the names of its args: a reader that knows them in another order, or not
	// all, finds its own. nil: the reader's.
	Table    Texts `json:"table,omitempty"`
	Switches Texts `json:"switches,omitempty"` // the command line's, for later readers
	// Keyframe is the picture before the first record, as [fold.Read] reads it; nil: the recording begins with an empty
	// picture.
	Keyframe json.RawMessage `json:"keyframe,omitempty"`
}

// Texts are texts by name, as a header holds them.
type Texts map[string]string

// maxTexts is how many bytes of JSON they may be.
const maxTexts = 1 << 16

// UnmarshalJSON implements [json.Unmarshaler].
func (t *Texts) UnmarshalJSON(written []byte) error {
	if len(written) > maxTexts {
		return fmt.Errorf("texts of more than %d bytes", maxTexts)
	}
	return json.Unmarshal(written, (*map[string]string)(t))
}

// NewHeader returns the header of a recording that was begun at started, by this program with these switches. It takes
// switches.
func NewHeader(started time.Time, switches map[string]string) Header {
	return Header{
		Format: format, Version: Version, Started: started.UTC(), Revision: revision(), Table: table(),
		Switches: switches,
	}
}

// table returns the table of points as a header holds it.
func table() Texts {
	table := Texts{}
	for _, p := range probe.Points() {
		table[p.String()] = string(p.Info().Args)
	}
	return table
}

// revision returns the version that the go command gives to what it builds, which names the commit; "" if it does not.
func revision() string {
	build, ok := debug.ReadBuildInfo()
	if !ok || build.Main.Version == "(devel)" {
		return ""
	}
	return build.Main.Version
}

// Hash returns the name by which links know a recording: the beginning of the SHA-256 of its file.
func Hash(file []byte) string { return nameOf(sha256.Sum256(file)) }

// nameOf returns the beginning of a hash as text.
func nameOf(sum [sha256.Size]byte) string { return hex.EncodeToString(sum[:8]) }

const format = "listwatch recording"

// ErrGap is returned by [Write] when the log dropped records before they were written.
var ErrGap = errors.New("the log moved on faster than it could be written")

// Write writes the log to out from its oldest record on until ctx is done, and then the rest. It returns when
// everything is written and flushed; it does not close out. The error is out's, or [ErrGap]. After an error, a reader
// can still read what was written before, provided that out takes the end of the file.
func Write(ctx context.Context, log *probe.Log, switches map[string]string, out io.Writer) error {
	zipped := gzip.NewWriter(out)
	err := writeHeader(zipped, NewHeader(time.Now(), switches))
	if err == nil {
		err = zipped.Flush() // a file says what it is from the beginning, also if the program is killed
	}
	if err != nil {
		return err
	}
	writing, cancel := context.WithCancel(ctx)
	defer cancel()
	seq := log.Oldest() - 1 // the last one written
	routine.Every(writing, clock.RealClock{}, interval, func(context.Context) {
		if seq, err = drain(log, seq, zipped); err != nil {
			cancel()
		}
	})
	if err == nil {
		_, err = drain(log, seq, zipped)
	}
	return cmp.Or(err, zipped.Close()) // one: Close fails again for what has failed before
}

// drain writes everything the log holds beyond seq, and returns the last record it has written.
func drain(log *probe.Log, seq uint64, out io.Writer) (uint64, error) {
	for r := range log.Between(seq, log.Last()) {
		if r.Seq != seq+1 {
			return seq, fmt.Errorf("write recording after record %d: %w", seq, ErrGap)
		}
		if err := writeRecord(out, *r); err != nil {
			return seq, err
		}
		seq = r.Seq
	}
	return seq, nil
}

// writeRecord writes a record as a line, with secrets in its text redacted.
func writeRecord(out io.Writer, r probe.Record) error {
	r.Texts = r.Texts.With(func(name probe.Field, text string) string {
		if name == probe.FieldQuery {
			return redact.Query(text)
		}
		return redact.Text(text)
	})
	if _, err := out.Write(append(fold.AppendRecord(nil, &r), '\n')); err != nil {
		return fmt.Errorf("write recording: %w", err)
	}
	return nil
}

func writeHeader(out io.Writer, header Header) error {
	if json.Valid(header.Keyframe) { // what is not JSON is refused just below
		header.Keyframe = redact.JSON(header.Keyframe)
	}
	if err := json.NewEncoder(out).Encode(header); err != nil {
		return fmt.Errorf("write recording: %w", err)
	}
	return nil
}

// WriteAll writes a whole recording: a header, and records that follow each other. It redacts secrets in their texts
// and in the keyframe, and does not close out.
func WriteAll(out io.Writer, header Header, records []probe.Record) error {
	zipped, err := gzip.NewWriterLevel(out, gzip.BestCompression) // a recording is read more often than it is written
	if err == nil {
		err = writeHeader(zipped, header)
	}
	if err != nil {
		return err
	}
	for _, r := range records {
		if err := writeRecord(zipped, r); err != nil {
			return err
		}
	}
	return zipped.Close()
}
