package recording

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
)

// The limits on a file, whose records are all kept in memory. [fold.State.Fits] has the limits on its picture.
const (
	maxLine    = 64 << 20  // bytes: a header may hold a keyframe; a record has a few hundred bytes
	maxBytes   = 512 << 20 // bytes of the whole file, unpacked
	maxRecords = 2_000_000 // more than half an hour at a thousand records a second
)

// limits are the limits on a read; tests use smaller ones.
type limits struct {
	bytes   int64
	records int
}

// Recording is a recording that was read completely. The caller owns it.
type Recording struct {
	Header  Header
	Start   *fold.State    // the picture before the first record
	Records []probe.Record // in order, without a gap
	Hash    string         // the [Hash] of the file
}

// Open reads the recording in a file, as [Read] does.
func Open(ctx context.Context, name string) (*Recording, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return Read(ctx, file)
}

// Begins reads the beginning of a file, and reports whether the file begins like a recording. The rest may be missing.
func Begins(file io.Reader) bool {
	zipped, err := gzip.NewReader(file)
	if err != nil {
		return false
	}
	const beginning = `{"format":"` + format + `"`
	head := make([]byte, len(beginning))
	_, err = io.ReadFull(zipped, head)
	return err == nil && string(head) == beginning
}

// Read reads a whole recording. It returns an error if ctx is done, or if the file is not a recording of this
// [Version], is truncated, is inconsistent (numbers beyond 2^53, gaps, times that go back, a picture that does not
// precede the first record), or is too large to show, in bytes, in records, or in its picture.
func Read(ctx context.Context, in io.Reader) (*Recording, error) {
	return limits{maxBytes, maxRecords}.read(ctx, in)
}

func (l limits) read(ctx context.Context, in io.Reader) (*Recording, error) {
	sum := sha256.New()
	file := io.TeeReader(in, sum)
	zipped, err := gzip.NewReader(file)
	if err != nil {
		return nil, fmt.Errorf("not a recording: %w", err)
	}
	bounded := &io.LimitedReader{R: zipped, N: l.bytes}
	rec, err := l.readLines(ctx, bounded)
	if bounded.N <= 0 {
		return nil, fmt.Errorf("the recording is longer than the %d MB that can be shown", l.bytes>>20)
	}
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(io.Discard, file); err != nil { // the hash includes any bytes after the recording's end
		return nil, err
	}
	rec.Hash = nameOf([sha256.Size]byte(sum.Sum(nil)))
	return rec, nil
}

// readLines reads the unpacked lines of the file.
func (l limits) readLines(ctx context.Context, in io.Reader) (*Recording, error) {
	lines := &lineReader{in: bufio.NewReaderSize(in, 64<<10)}
	header, err := lines.next(ctx)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fmt.Errorf("not a recording: no header: %w", err)
	}
	rec := &Recording{Start: fold.New()}
	if err := json.Unmarshal(header, &rec.Header); err != nil || rec.Header.Format != format {
		return nil, fmt.Errorf("not a recording: the first line is not its header")
	}
	if rec.Header.Version != Version {
		return nil, fmt.Errorf("the recording is of version %d, and this program reads version %d", rec.Header.Version,
			Version)
	}
	if rec.Header.Keyframe != nil {
		rec.Start, err = fold.Read(rec.Header.Keyframe)
	}
	if err == nil {
		err = l.readRecords(ctx, rec, lines)
	}
	return rec, err
}

// readRecords reads the records and folds them in batches, so that it can stop when the picture has become too large.
func (l limits) readRecords(ctx context.Context, rec *Recording, lines *lineReader) error {
	picture := rec.Start.Clone()
	places := rec.Header.places()
	for {
		line, err := lines.next(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("recording, after line %d: %w", len(rec.Records)+1, err)
		}
		r, err := fold.ReadRecord(line)
		if err == nil {
			err = rec.takes(&r)
		}
		if err != nil {
			return fmt.Errorf("recording, line %d: %w", len(rec.Records)+2, err)
		}
		if from, moved := places[r.Point]; moved {
			r.Args = arranged(r.Args, from)
		}
		if len(rec.Records) == l.records {
			return fmt.Errorf("the recording has more than the %d records that can be shown", l.records)
		}
		rec.Records = append(rec.Records, r)
		if len(rec.Records)%batch == 0 {
			picture.Apply(rec.Records[len(rec.Records)-batch:])
			if err := picture.Fits(); err != nil {
				return err
			}
		}
	}
	picture.Apply(rec.Records[max(0, len(rec.Records)-batch):])
	return picture.Fits()
}

// lineReader reads lines of at most [maxLine] bytes. It looks at each byte once; a bufio.Scanner would search a long
// line from its beginning after each piece, which would take seconds.
type lineReader struct {
	in   *bufio.Reader
	line []byte // the line that next has returned; the next call overwrites it
}

// next returns the next line without its newline; the next call overwrites it. It returns ctx's error when ctx is done,
// even in the middle of a line, and io.EOF after the last line.
func (l *lineReader) next(ctx context.Context) ([]byte, error) {
	l.line = l.line[:0]
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		piece, err := l.in.ReadSlice('\n')
		if l.line = append(l.line, piece...); len(l.line) > maxLine {
			return nil, fmt.Errorf("a line is longer than the %d MB that can be shown", maxLine>>20)
		}
		switch {
		case err == bufio.ErrBufferFull:
		case err == nil || err == io.EOF && len(l.line) > 0:
			return bytes.TrimSuffix(l.line, []byte("\n")), nil
		default:
			return nil, err
		}
	}
}

// places compares the recording's table with this program's. For each point whose args differ, it returns the
// recording's index of each of this program's args, or -1.
func (h *Header) places() map[probe.Point][]int {
	places := map[probe.Point][]int{}
	for name, args := range h.Table {
		point, known := probe.PointNamed(name)
		if !known || args == string(point.Info().Args) {
			continue
		}
		there := strings.Fields(args)
		from := []int{}
		for _, arg := range point.Info().Args.List() {
			from = append(from, slices.Index(there, arg))
		}
		places[point] = from
	}
	return places
}

// arranged returns args in this program's order, given their places in the recording; an arg without a place is 0.
func arranged(args [4]int, from []int) (arranged [4]int) {
	for i, place := range from {
		if place >= 0 && place < len(args) {
			arranged[i] = args[place]
		}
	}
	return arranged
}

// takes returns an error if a record cannot follow the records read so far.
func (r *Recording) takes(next *probe.Record) error {
	if next.Seq == 0 || next.Seq > fold.MaxNumber || next.Time < 0 || next.Time > fold.MaxNumber {
		return fmt.Errorf("record %d at %d ns: a number is larger than 2^53, or negative", next.Seq, next.Time)
	}
	for _, arg := range next.Args {
		if arg < -fold.MaxNumber || arg > fold.MaxNumber {
			return fmt.Errorf("record %d: %d is larger than 2^53", next.Seq, arg)
		}
	}
	if len(r.Records) == 0 {
		if start := r.Start.Seq; r.Header.Keyframe != nil && start != next.Seq-1 {
			return fmt.Errorf("the recording's picture is of record %d, but its records begin with %d", start, next.Seq)
		}
		return nil
	}
	last := &r.Records[len(r.Records)-1]
	switch {
	case next.Seq != last.Seq+1:
		return fmt.Errorf("record %d is missing", last.Seq+1)
	case next.Time < last.Time:
		return fmt.Errorf("record %d is earlier than the one before it", next.Seq)
	}
	return nil
}
