package listwatch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// The buffer for one frame begins small, because most watches see small objects and a server's clients may hold
// thousands, and doubles as needed.
const (
	initialFrameSize = 1 << 10
	maxFrameSize     = 16 << 20
)

// ErrObjectTooLarge means that a frame does not fit into 16 MiB. The stream cannot go on after it.
//
// Upstream: k8s.io/apimachinery/pkg/runtime/serializer/streaming/streaming.go: ErrObjectTooLarge
var ErrObjectTooLarge = errors.New("object to decode was longer than maximum allowed size")

// frameReader cuts a stream into JSON objects. Where the objects lie in the stream says nothing
// about where the network cut it: a read may end in the middle of a number, or bring three
// frames and a half.
//
//	buf  ┌────────┬─────────────────────────┬───────────────────┐
//	     │ before │ {"type":"ADDED","obj…   │ free              │
//	     └────────┴─────────────────────────┴───────────────────┘
//	              start                     end
//
// Upstream: k8s.io/apimachinery/pkg/util/framer/framer.go: NewJSONFramedReader
// Differs: finds the end of an object itself, by counting braces, so that the limit bounds what
// is held in memory. Upstream lets a json.Decoder find it, which holds the whole object however
// large, and applies the limit when copying it out.
type frameReader struct {
	reader     io.Reader
	buf        []byte
	start, end int   // buf[start:end] was read and not yet returned
	err        error // of the reader, to be returned when the buffer has nothing more to give
}

func newFrameReader(reader io.Reader) *frameReader {
	return &frameReader{reader: reader, buf: make([]byte, initialFrameSize)}
}

// ReadFrame returns the next object, which is valid until the next call. Its braces are
// balanced, but it may not be valid JSON. The error is io.EOF between objects,
// io.ErrUnexpectedEOF inside one, [ErrObjectTooLarge], a [DecodeError] if something else than
// an object begins, or the reader's.
func (f *frameReader) ReadFrame() ([]byte, error) {
	var scan braceScanner
	for {
		if scan.depth == 0 {
			f.skipSpace() // or a frame of exactly the limit would not fit behind it
		}
		n, done, err := scan.scan(f.buf[f.start:f.end], scan.n)
		if err != nil {
			return nil, err
		}
		if done {
			frame := f.buf[f.start : f.start+n]
			f.start += n
			return frame, nil
		}
		if err := f.fill(); err != nil {
			return nil, f.readError(err, scan.depth > 0)
		}
	}
}

func (f *frameReader) skipSpace() {
	for f.start < f.end && bytes.IndexByte([]byte(" \t\r\n"), f.buf[f.start]) >= 0 {
		f.start++
	}
}

// fill reads more into the buffer, making room first: by moving what is there to the front, or
// by growing.
func (f *frameReader) fill() error {
	if f.err != nil {
		return f.err
	}
	if f.end == len(f.buf) && f.start > 0 {
		f.end = copy(f.buf, f.buf[f.start:f.end])
		f.start = 0
	}
	if f.end == len(f.buf) {
		if len(f.buf) >= maxFrameSize {
			return ErrObjectTooLarge
		}
		f.buf = append(f.buf, make([]byte, len(f.buf))...)
	}
	n, err := f.reader.Read(f.buf[f.end:])
	f.end += n
	f.err = err
	if n > 0 {
		return nil // the error, if any, waits until these bytes are used up
	}
	return err
}

func (f *frameReader) readError(err error, inside bool) error {
	if err == io.EOF && inside {
		return io.ErrUnexpectedEOF
	}
	return err
}

// braceScanner finds the end of a JSON object in bytes that come piecemeal. Braces inside strings do not count.
type braceScanner struct {
	n        int // bytes looked at
	depth    int // open braces
	inString bool
	escaped  bool // the last byte was a backslash inside a string
}

// scan looks at data[from:] and reports whether data[:n] ends the object. Until then it must be
// given the same bytes again, followed by more.
func (s *braceScanner) scan(data []byte, from int) (n int, done bool, err error) {
	for i := from; i < len(data); i++ {
		switch b := data[i]; {
		case s.escaped:
			s.escaped = false
		case s.inString:
			s.escaped = b == '\\'
			s.inString = b != '"'
		case b == '{':
			s.depth++
		case s.depth == 0:
			return 0, false, &DecodeError{
				fmt.Errorf("invalid character %q where an object should begin", b)}
		case b == '"':
			s.inString = true
		case b == '}':
			s.depth--
			if s.depth == 0 {
				return i + 1, true, nil
			}
		}
	}
	s.n = len(data)
	return 0, false, nil
}
