// Package recording writes the probe log to a file while the program runs, and reads such a file later. A recording is
// a gzip file of JSON lines: a [Header], then one record a line.
//
// [Write] follows the log from its oldest record, for the flag -record. A [Flight] watches it and, when something goes
// wrong, writes the records that led to it. [Read] reads such a file, and limits the memory that it takes. The page
// reads the same files (viz/log/recording.js): format and limits must be changed in both.
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

// Version is the version of the format. [Read] refuses a recording of another version.
const Version = 1

const (
	interval = 100 * time.Millisecond // the period at which Write and Flight read the log
	batch    = 4096                   // records folded at once
)

// Header is the first line of a recording.
type Header struct {
	Format   string    `json:"format"` // "listwatch recording"
	Version  int       `json:"version"`
	Started  time.Time `json:"started"`            // when the file was begun, in UTC; records may be older
	Reason   string    `json:"reason,omitempty"`   // the fault that caused the recording; "" for -record
	Revision string    `json:"revision,omitempty"` // the source's version, if the build contains it
	// Table maps each point's name to the names of its args. A reader that has other points or another order of args
	// uses it to arrange the args. nil: the reader's own table applies.
	Table    Texts `json:"table,omitempty"`
	Switches Texts `json:"switches,omitempty"` // the switches of the command line, for later readers
	// Keyframe is the picture before the first record, for [fold.Read]; nil: an empty picture.
	Keyframe json.RawMessage `json:"keyframe,omitempty"`
}

// Texts are a header's texts, by name. In JSON they have at most [maxTexts] bytes.
type Texts map[string]string

// maxTexts is the maximum number of bytes in the JSON form of a header's Texts.
const maxTexts = 1 << 16

// UnmarshalJSON implements [json.Unmarshaler].
func (t *Texts) UnmarshalJSON(written []byte) error {
	if len(written) > maxTexts {
		return fmt.Errorf("texts of more than %d bytes", maxTexts)
	}
	return json.Unmarshal(written, (*map[string]string)(t))
}

// NewHeader returns the header of a file that this program, with these switches, begins to write at the time started.
// The header keeps the map switches.
func NewHeader(started time.Time, switches map[string]string) Header {
	table := Texts{}
	for _, p := range probe.Points() {
		table[p.String()] = string(p.Info().Args)
	}
	return Header{Format: format, Version: Version, Started: started.UTC(), Revision: Revision(), Table: table,
		Switches: switches}
}

// Revision returns the build's version and commit, as the go command records them, or "" if it records none.
func Revision() string {
	build, ok := debug.ReadBuildInfo()
	if !ok || build.Main.Version == "(devel)" {
		return ""
	}
	return build.Main.Version
}

// Hash returns the name of a recording in links: the beginning of the SHA-256 of its file.
func Hash(file []byte) string { return nameOf(sha256.Sum256(file)) }

// nameOf returns the first eight bytes of a hash as hex digits.
func nameOf(sum [sha256.Size]byte) string { return hex.EncodeToString(sum[:8]) }

const format = "listwatch recording"

// ErrGap is the error of [Write] if the log drops records before Write has written them.
var ErrGap = errors.New("the log moved on faster than it could be written")

// Write writes the log to out, from its oldest record until ctx is done, and then the rest. It returns when everything
// is written and flushed; it does not close out. The error is out's, or [ErrGap]. After an error, the records written
// before it are still readable if out accepts the end of the file.
func Write(ctx context.Context, log *probe.Log, switches map[string]string, out io.Writer) error {
	zipped := gzip.NewWriter(out)
	err := writeHeader(zipped, NewHeader(time.Now(), switches))
	if err == nil {
		err = zipped.Flush() // now, so that the file is recognizable even if the program is killed
	}
	if err != nil {
		return err
	}
	writing, cancel := context.WithCancel(ctx)
	defer cancel()
	seq := log.Oldest() - 1 // the last record written
	routine.Every(writing, clock.RealClock{}, interval, func(context.Context) {
		if seq, err = drain(log, seq, zipped); err != nil {
			cancel()
		}
	})
	if err == nil {
		_, err = drain(log, seq, zipped)
	}
	return cmp.Or(err, zipped.Close()) // only the first error: after a failed write, Close fails too
}

// drain writes the log's records after seq, up to a gap, and returns the number of the last one written.
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

// writeRecord writes a record as a line, with secrets in its texts redacted.
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
	if json.Valid(header.Keyframe) { // Encode refuses anything else
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
	zipped, err := gzip.NewWriterLevel(out, gzip.BestCompression) // files are read more often than written
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
