package recording

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"listwatch/internal/fold"
	"listwatch/internal/probe"
)

// What is read of a file is bounded: all of it is kept in memory.
const (
	maxLine    = 64 << 20  // bytes: a header may hold a keyframe; texts are bounded far below
	maxBytes   = 1 << 30   // of the whole file, unpacked
	maxRecords = 2_000_000 // more than half an hour at a thousand a second
)

// limits are those of Read; tests have smaller ones.
type limits struct {
	bytes   int64
	records int
}

// Read returns a whole recording. The error says what is wrong with a file that is not a recording, was cut off, holds more than can be
// shown, or says what no recording says: numbers beyond 2^53, gaps, times that go back.
func Read(in io.Reader) (Header, []probe.Record, error) {
	return limits{maxBytes, maxRecords}.read(in)
}

func (l limits) read(in io.Reader) (Header, []probe.Record, error) {
	var header Header
	zipped, err := gzip.NewReader(in)
	if err != nil {
		return header, nil, fmt.Errorf("not a recording: %w", err)
	}
	bounded := &io.LimitedReader{R: zipped, N: l.bytes}
	lines := bufio.NewScanner(bounded)
	lines.Buffer(nil, int(min(maxLine, l.bytes)))
	if !lines.Scan() {
		return header, nil, fmt.Errorf("not a recording: no header: %w", errors.Join(lines.Err(), io.ErrUnexpectedEOF))
	}
	if err := json.Unmarshal(lines.Bytes(), &header); err != nil || header.Format != format {
		return header, nil, fmt.Errorf("not a recording: the first line is not its header")
	}
	records, err := l.readRecords(lines)
	switch {
	case bounded.N <= 0:
		return header, records, fmt.Errorf("the recording is longer than the %d MB that can be shown", l.bytes>>20)
	case err != nil && header.Version != Version:
		return header, records, fmt.Errorf("the recording is of version %d, and this program, which writes version %d, cannot read it: %w", header.Version, Version, err)
	}
	return header, records, err
}

func (l limits) readRecords(lines *bufio.Scanner) ([]probe.Record, error) {
	var records []probe.Record
	for lines.Scan() {
		r, err := fold.ReadRecord(lines.Bytes())
		if err == nil {
			err = follows(records, &r)
		}
		if err != nil {
			return records, fmt.Errorf("recording, line %d: %w", len(records)+2, err)
		}
		if len(records) == l.records {
			return records, fmt.Errorf("the recording has more than the %d records that can be shown", l.records)
		}
		records = append(records, r)
	}
	if err := lines.Err(); err != nil {
		return records, fmt.Errorf("recording, after line %d: %w", len(records)+1, err)
	}
	return records, nil
}

// follows says why a record cannot come after others, nil if it can.
func follows(records []probe.Record, r *probe.Record) error {
	if r.Seq == 0 || r.Seq > fold.MaxNumber || r.Time < 0 || r.Time > fold.MaxNumber {
		return fmt.Errorf("record %d at %d ns: a number is larger than 2^53, or negative", r.Seq, r.Time)
	}
	for _, arg := range r.Args {
		if arg < -fold.MaxNumber || arg > fold.MaxNumber {
			return fmt.Errorf("record %d: %d is larger than 2^53", r.Seq, arg)
		}
	}
	if len(records) == 0 {
		return nil
	}
	before := &records[len(records)-1]
	switch {
	case r.Seq != before.Seq+1:
		return fmt.Errorf("record %d is missing", before.Seq+1)
	case r.Time < before.Time:
		return fmt.Errorf("record %d is earlier than the one before it", r.Seq)
	}
	return nil
}

// Picture returns the picture before the first record. The error says that it is of another moment.
func (h *Header) Picture(records []probe.Record) (*fold.State, error) {
	if h.Keyframe == nil {
		return fold.New(), nil
	}
	state, err := fold.Read(h.Keyframe)
	if err != nil {
		return nil, err
	}
	if len(records) > 0 && state.Seq != records[0].Seq-1 {
		return nil, fmt.Errorf("the recording's picture is of record %d, but its records begin with %d", state.Seq, records[0].Seq)
	}
	return state, nil
}

// Load puts the records into log, all at once and at the times at which they were made: the caller that shows the log moves
// through them at the pace of his choice.
func Load(log *probe.Log, records []probe.Record) {
	for i := range records {
		log.Replay(records[i])
	}
}
