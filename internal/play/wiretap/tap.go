// Package wiretap parses the watches of an HTTP client for the page: a [Wire] below net/http, as chunks; [Events] above
// it, as events.
//
// The lock of a [Wire] is innermost. The package starts no goroutine.
package wiretap

import (
	"bufio"
	"bytes"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Bounds of what is kept of each stream.
const (
	maxChunks = 16       // the newest chunks
	maxData   = 1 << 10  // bytes of each chunk, from its start
	maxHeader = 16 << 10 // bytes of a header; an answer with a longer one is not understood
)

// Chunk is one chunk as it was on the wire, with at most 1 KiB of its data.
type Chunk struct {
	SizeLine string `json:"sizeLine"` // with its line end
	Data     string `json:"data"`     // its beginning, if it is long
	Size     int    `json:"size"`     // of all its data, in bytes
	End      string `json:"end"`      // the line end behind the data; empty while it has not come
}

// Stream is one answer and its request.
type Stream struct {
	ID      int     `json:"id"`      // for the caller to set
	Request string  `json:"request"` // as it was sent, to the empty line
	Header  string  `json:"header"`  // of the answer, to the empty line
	Bytes   int64   `json:"bytes"`   // read so far, all in all
	Count   int     `json:"count"`   // of chunks so far
	Chunks  []Chunk `json:"chunks"`  // the newest
}

// OpenedBy returns the user agent, path and query of the request; empty if it is incomplete.
func (s *Stream) OpenedBy() (agent, path, query string) {
	request, err := http.ReadRequest(bufio.NewReader(strings.NewReader(s.Request)))
	if err != nil {
		return "", "", "" // cut off, or never HTTP
	}
	return request.UserAgent(), request.URL.EscapedPath(), request.URL.RawQuery
}

// state is the next part on the wire.
type state int

const (
	inHeader   state = iota
	inSizeLine       // of a chunk
	inData           // and in the line end behind it
	done             // the stream has ended, or cannot be parsed
)

// Wire parses one answer, in pieces of any size. The reader of a response sees a stream of bytes; on the wire it is cut
// into chunks, each with its size before it and a line end behind it:
//
//	1a4\r\n                                 the size line, in hexadecimal
//	{"type":"ADDED","object":{…}}\n         so many bytes
//	\r\n
//
// A chunk of size 0 ends the stream. A Wire keeps the newest chunks, and may be used from any goroutine.
type Wire struct {
	mu     sync.Mutex // guards the fields below; innermost
	stream Stream     // its Request is set by Begin, never changed
	state  state
	line   []byte // the incomplete header or size line
	left   int    // bytes of a chunk and its line end that are missing
}

// Begin returns the Wire of a new request if p, written to a connection, begins one of HTTP/1.1; otherwise nil.
//
// Differs: upstream has nothing of the kind; people use tcpdump.
func Begin(p []byte) *Wire {
	header, _, ok := bytes.Cut(p, []byte("\r\n\r\n"))
	if !ok || !bytes.Contains(header, []byte(" HTTP/1.1\r\n")) {
		return nil
	}
	return &Wire{stream: Stream{Request: string(header[:min(len(header), maxHeader)]) + "\r\n\r\n"}}
}

// IsWatch reports whether the request is a watch.
func (w *Wire) IsWatch() bool {
	line, _, _ := strings.Cut(w.stream.Request, "\r\n")
	return strings.Contains(line, "watch=true")
}

// Watching reports whether the answer to a watch has begun, and has not ended.
func (w *Wire) Watching() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.IsWatch() && w.state != inHeader && w.state != done
}

// Snapshot returns the answer so far. The caller owns it.
func (w *Wire) Snapshot() Stream {
	w.mu.Lock()
	defer w.mu.Unlock()
	stream := w.stream
	stream.Chunks = slices.Clone(stream.Chunks)
	return stream
}

// Read parses the next piece.
func (w *Wire) Read(p []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stream.Bytes += int64(len(p))
	for len(p) > 0 && w.state != done {
		if w.state == inData {
			p = w.readDataLocked(p, &w.stream.Chunks[len(w.stream.Chunks)-1])
			continue
		}
		w.line = append(w.line, p[0])
		p = p[1:]
		end := "\r\n"
		if w.state == inHeader {
			end = "\r\n\r\n"
		}
		if bytes.HasSuffix(w.line, []byte(end)) {
			w.readLineLocked(string(w.line))
			w.line = nil
		} else if len(w.line) == maxHeader {
			w.line, w.state = nil, done
		}
	}
}

// readLineLocked parses a header or a line once it is complete.
func (w *Wire) readLineLocked(line string) {
	switch w.state {
	case inHeader:
		w.stream.Header, w.state = line, done
		if strings.Contains(strings.ToLower(line), "transfer-encoding: chunked") {
			w.state = inSizeLine
		}
	case inSizeLine:
		digits, _, _ := strings.Cut(strings.TrimSpace(line), ";")
		size, err := strconv.ParseUint(digits, 16, 31)
		if err != nil {
			w.state = done
			return
		}
		w.stream.Count++
		w.left, w.state = int(size)+len("\r\n"), inData
		kept := w.stream.Chunks[max(0, len(w.stream.Chunks)+1-maxChunks):]
		w.stream.Chunks = append(kept, Chunk{SizeLine: line, Size: int(size)})
	}
}

// readDataLocked parses the rest of a chunk and its line end, and returns the bytes after them. It keeps the beginning
// of the data.
func (w *Wire) readDataLocked(p []byte, chunk *Chunk) []byte {
	n := min(w.left, len(p))
	data := max(0, min(w.left-len("\r\n"), n))
	chunk.Data += string(p[:min(data, max(0, maxData-len(chunk.Data)))])
	chunk.End += string(p[data:n])
	if w.left -= n; w.left == 0 {
		w.state = inSizeLine
		if chunk.Size == 0 {
			w.state = done
		}
	}
	return p[n:]
}
