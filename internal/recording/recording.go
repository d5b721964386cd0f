// Package recording writes the probe log to a file while the program runs, and plays such a file back into a log
// when nothing runs. A recording is gzip over lines of JSON: a [Header], then one record a line.
package recording

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/utils/clock"

	"listwatch/internal/fold"
	"listwatch/internal/probe"
)

// Version is that of the format. A reader refuses others.
const Version = 1

const (
	interval = 100 * time.Millisecond // how often a writer looks at the log
	batch    = 4096                   // records taken from the log at once
	maxLine  = 1 << 20                // bytes; texts are bounded far below
)

// Header is the first line of a recording.
type Header struct {
	Format   string            `json:"format"` // "listwatch recording"
	Version  int               `json:"version"`
	Started  time.Time         `json:"started"`
	Switches map[string]string `json:"switches,omitempty"` // the command line's, for whoever looks at it later
}

const format = "listwatch recording"

// ErrGap is returned by [Write] when the log dropped records before they were written.
var ErrGap = errors.New("the log moved on faster than it could be written")

// Write writes the log to out from its oldest record on, until ctx is done, and then what is left. It returns when
// everything is written and flushed. out is not closed.
func Write(ctx context.Context, log *probe.Log, clk clock.WithTicker, switches map[string]string, out io.Writer) error {
	zipped := gzip.NewWriter(out)
	header := Header{Format: format, Version: Version, Started: clk.Now().UTC(), Switches: switches}
	line, err := json.Marshal(header)
	if err != nil {
		return fmt.Errorf("write recording: %w", err)
	}
	if _, err := zipped.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write recording: %w", err)
	}
	w := &writer{log: log, out: zipped, seq: log.Oldest() - 1}
	if err := w.follow(ctx, clk); err != nil {
		return err
	}
	return zipped.Close()
}

// writer is the state of one Write.
type writer struct {
	log     *probe.Log
	out     io.Writer
	seq     uint64 // last one written
	records []probe.Record
	bytes   []byte
}

func (w *writer) follow(ctx context.Context, clk clock.WithTicker) error {
	ticker := clk.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return w.drain()
		case <-ticker.C():
			if err := w.drain(); err != nil {
				return err
			}
		}
	}
}

// drain writes everything the log holds beyond seq.
func (w *writer) drain() error {
	for {
		var ok bool
		w.records, ok = w.log.Since(w.records[:0], w.seq, batch)
		if !ok {
			return fmt.Errorf("write recording after record %d: %w", w.seq, ErrGap)
		}
		if len(w.records) == 0 {
			return nil
		}
		w.bytes = w.bytes[:0]
		for i := range w.records {
			w.bytes = append(fold.AppendRecord(w.bytes, &w.records[i]), '\n')
		}
		if _, err := w.out.Write(w.bytes); err != nil {
			return fmt.Errorf("write recording: %w", err)
		}
		w.seq = w.records[len(w.records)-1].Seq
	}
}

// Read returns a whole recording. The error says what is wrong with a file that is none, or is of another version, or
// was cut off.
func Read(in io.Reader) (Header, []probe.Record, error) {
	var header Header
	zipped, err := gzip.NewReader(in)
	if err != nil {
		return header, nil, fmt.Errorf("not a recording: %w", err)
	}
	lines := bufio.NewScanner(zipped)
	lines.Buffer(nil, maxLine)
	if !lines.Scan() {
		return header, nil, fmt.Errorf("not a recording: no header: %w", errors.Join(lines.Err(), io.ErrUnexpectedEOF))
	}
	if err := json.Unmarshal(lines.Bytes(), &header); err != nil || header.Format != format {
		return header, nil, fmt.Errorf("not a recording: the first line is not its header")
	}
	if header.Version != Version {
		return header, nil, fmt.Errorf("the recording is of version %d, this program reads version %d", header.Version, Version)
	}
	var records []probe.Record
	for lines.Scan() {
		r, err := fold.ReadRecord(lines.Bytes())
		if err != nil {
			return header, records, fmt.Errorf("recording, line %d: %w", len(records)+2, err)
		}
		records = append(records, r)
	}
	if err := lines.Err(); err != nil {
		return header, records, fmt.Errorf("recording, after line %d: %w", len(records)+1, err)
	}
	return header, records, nil
}

// Play repeats the records into log at the pace at which they were made, and returns when all are in or ctx is done.
func Play(ctx context.Context, log *probe.Log, clk clock.WithTicker, records []probe.Record) {
	start := clk.Now()
	for i := range records {
		if wait := records[i].Time - clk.Since(start); wait > 0 {
			if !sleep(ctx, clk, wait) {
				return
			}
		}
		log.Replay(records[i])
	}
}

// sleep waits for d. It returns false if ctx was done first.
func sleep(ctx context.Context, clk clock.WithTicker, d time.Duration) bool {
	timer := clk.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
		return true
	}
}
