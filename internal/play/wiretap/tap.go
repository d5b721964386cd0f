// Package wiretap reads the watches of an HTTP client: a [Conn] below net/http, as chunks, byte by byte; [Events]
// above it, as events. Both are there to be shown: no other code depends on what they find.
//
// The lock of a [Wire] is innermost. The package starts no goroutine.
package wiretap

import (
	"bufio"
	"bytes"
	"context"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// Bounds of what is kept of each stream.
const (
	maxChunks = 16       // the newest chunks
	maxData   = 1 << 10  // bytes of each chunk, from its start
	maxHeader = 16 << 10 // bytes of a header; an answer with a longer one is not understood
)

// Tap returns a copy of a client whose connections are each a [Conn]. A client whose transport is no [http.Transport]
// is returned as it is.
func Tap(client *http.Client) *http.Client {
	transport, ok := client.Transport.(*http.Transport)
	if !ok {
		return client
	}
	transport = transport.Clone()
	dial := transport.DialContext
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &Conn{Conn: conn}, nil
	}
	tapped := *client
	tapped.Transport = transport
	return &tapped
}

// Conn is a connection of HTTP/1.1 whose bytes are read on their way. One answer follows another there, so that what
// comes belongs to the request that was written last.
//
// Differs: upstream has nothing of the kind; people use tcpdump.
type Conn struct {
	net.Conn
	wire atomic.Pointer[Wire] // of the newest request
}

// Wire returns what is read of the answer to the newest request, which is also given what comes later of it. It
// returns nil before the first request.
func (c *Conn) Wire() *Wire { return c.wire.Load() }

// Write notes the beginning of requests.
func (c *Conn) Write(p []byte) (int, error) {
	if header, _, ok := bytes.Cut(p, []byte("\r\n\r\n")); ok && bytes.Contains(header, []byte(" HTTP/1.1\r\n")) {
		c.wire.Store(&Wire{stream: Stream{Request: string(header[:min(len(header), maxHeader)]) + "\r\n\r\n"}})
	}
	return c.Conn.Write(p)
}

// Read implements [net.Conn].
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if wire := c.wire.Load(); wire != nil && n > 0 {
		wire.read(p[:n])
	}
	return n, err
}

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

// OpenedBy returns the user agent of the request and its path with the query, or "" if the request is not complete.
func (s *Stream) OpenedBy() string {
	request, err := http.ReadRequest(bufio.NewReader(strings.NewReader(s.Request)))
	if err != nil {
		return "" // cut off, or never HTTP
	}
	return request.UserAgent() + " " + request.URL.RequestURI()
}

// state is what comes next on the wire.
type state int

const (
	inHeader   state = iota
	inSizeLine       // of a chunk
	inData
	inEnd // the line end behind the data
	done  // the stream has ended, or is not understood
)

// Wire is one answer as it comes, in pieces of any size. A reader of a response sees a stream of bytes; on the wire it
// is cut into chunks, each with its size before it and a line end behind it:
//
//	1a4\r\n                                 the size line, in hexadecimal
//	{"type":"ADDED","object":{…}}\n         so many bytes
//	\r\n
//
// A chunk of size 0 ends the stream. A Wire keeps the newest chunks, and may be used from any goroutine.
type Wire struct {
	mu     sync.Mutex // guards the fields below; innermost
	stream Stream
	state  state
	line   []byte // what has come of a header, a size line or a line end
	left   int    // bytes of data that have yet to come
}

// Snapshot returns what has come so far. The caller owns it.
func (w *Wire) Snapshot() Stream {
	w.mu.Lock()
	defer w.mu.Unlock()
	stream := w.stream
	stream.Chunks = slices.Clone(stream.Chunks)
	return stream
}

func (w *Wire) read(p []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stream.Bytes += int64(len(p))
	for len(p) > 0 && w.state != done {
		if w.state == inData {
			p = w.readDataLocked(p, &w.stream.Chunks[len(w.stream.Chunks)-1].Data)
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

// readLineLocked reads a header, or a line that is complete.
func (w *Wire) readLineLocked(line string) {
	switch w.state {
	case inHeader:
		w.stream.Header, w.state = line, done
		if strings.Contains(strings.ToLower(line), "transfer-encoding: chunked") {
			w.state = inSizeLine
		}
	case inEnd:
		w.stream.Chunks[len(w.stream.Chunks)-1].End, w.state = line, inSizeLine
	case inSizeLine:
		digits, _, _ := strings.Cut(strings.TrimSpace(line), ";")
		size, err := strconv.ParseUint(digits, 16, 31)
		switch {
		case err != nil:
			w.state = done
			return
		case size == 0:
			w.state = inEnd
		default:
			w.state = inData
		}
		w.stream.Count++
		w.left = int(size)
		kept := w.stream.Chunks[max(0, len(w.stream.Chunks)+1-maxChunks):]
		w.stream.Chunks = append(kept, Chunk{SizeLine: line, Size: w.left})
	}
}

// readDataLocked reads what is left of a chunk, keeps its beginning in data, and returns the bytes behind it.
func (w *Wire) readDataLocked(p []byte, data *string) []byte {
	n := min(w.left, len(p))
	*data += string(p[:min(n, max(0, maxData-len(*data)))])
	if w.left -= n; w.left == 0 {
		w.state = inEnd
	}
	return p[n:]
}
