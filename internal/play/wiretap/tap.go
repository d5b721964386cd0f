// Package wiretap reads the watches of an HTTP client: a [Tap] below net/http, as chunks, byte by byte; [Events]
// above it, as events. Both are there to be shown: no other code depends on what they find.
//
// Locks: the lock of a connection is taken before that of its [Tap], which is innermost. The package starts no
// goroutine.
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
)

// Bounds of what is kept of each stream.
const (
	maxChunks = 16       // the newest chunks
	maxData   = 1 << 10  // bytes of each chunk, from its start
	maxHeader = 16 << 10 // bytes of a header; an answer with a longer one is not understood
)

// Tap reads watches between the HTTP client and the network. A reader of a response sees a stream of bytes; on the
// wire it is cut into chunks, each with its size before it and a line end behind it:
//
//	1a4\r\n                                 the size line, in hexadecimal
//	{"type":"ADDED","object":{…}}\n         so many bytes
//	\r\n
//
// A chunk of size 0 ends the stream. A Tap keeps the newest chunks of each open watch, and may be used from any
// goroutine.
//
// Differs: upstream has nothing of the kind; people use tcpdump.
type Tap struct {
	mu      sync.Mutex // guards the fields below and every stream in open; innermost
	lastID  int
	streams []*parser // that are open, oldest first
}

// New returns a tap. It reads nothing until [Tap.Tap] is called.
func New() *Tap { return &Tap{} }

// Tap returns a copy of a client whose connections the tap reads. A client whose transport is no [http.Transport] is
// returned as it is, and the tap reads nothing of it.
func (t *Tap) Tap(client *http.Client) *http.Client {
	transport, ok := client.Transport.(*http.Transport)
	if client.Transport == nil {
		transport, ok = http.DefaultTransport.(*http.Transport)
	}
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
		return &tappedConn{Conn: conn, tap: t}, nil
	}
	tapped := *client
	tapped.Transport = transport
	return &tapped
}

// Chunk is one chunk as it was on the wire, with at most 1 KiB of its data.
type Chunk struct {
	SizeLine string `json:"sizeLine"` // with its line end
	Data     string `json:"data"`     // its beginning, if it is long
	Size     int    `json:"size"`     // of all its data, in bytes
	End      string `json:"end"`      // the line end behind the data; empty while it has not come
}

// Stream is one open watch.
type Stream struct {
	ID      int     `json:"id"`
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

// Snapshot returns the open watches, the oldest first. The caller owns it.
func (t *Tap) Snapshot() []Stream {
	t.mu.Lock()
	defer t.mu.Unlock()
	streams := make([]Stream, 0, len(t.streams))
	for _, stream := range t.streams {
		view := stream.Stream
		view.Chunks = slices.Clone(view.Chunks)
		streams = append(streams, view)
	}
	return streams
}

// open begins a stream.
func (t *Tap) open(request string) *parser {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lastID++
	stream := &parser{Stream: Stream{ID: t.lastID, Request: request}}
	t.streams = append(t.streams, stream)
	return stream
}

func (t *Tap) close(stream *parser) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.streams = slices.DeleteFunc(t.streams, func(s *parser) bool { return s == stream })
}

func (t *Tap) read(stream *parser, p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	stream.read(p)
}

// tappedConn is a connection whose bytes the tap reads. On a connection of HTTP/1.1 one answer follows another, so
// that what is read belongs to the request that was written last.
type tappedConn struct {
	net.Conn
	tap *Tap

	mu     sync.Mutex // guards stream; taken before Tap.mu
	stream *parser    // nil: the last request was no watch
}

// Write notes the beginning of requests.
func (c *tappedConn) Write(p []byte) (int, error) {
	if line, _, ok := bytes.Cut(p, []byte(" HTTP/1.1\r\n")); ok {
		header, _, _ := bytes.Cut(p, []byte("\r\n\r\n"))
		c.request(string(line), string(header[:min(len(header), maxHeader)])+"\r\n\r\n")
	}
	return c.Conn.Write(p)
}

// request ends the stream, and begins the next one if the request is a watch. No line: the connection is closed.
func (c *tappedConn) request(line, header string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stream != nil {
		c.tap.close(c.stream)
		c.stream = nil
	}
	if strings.HasPrefix(line, http.MethodGet+" ") && (strings.Contains(line, "watch=true") || strings.Contains(line,
		"watch=1")) {
		c.stream = c.tap.open(header)
	}
}

// Read implements [net.Conn].
func (c *tappedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stream != nil && n > 0 {
		c.tap.read(c.stream, p[:n])
	}
	return n, err
}

// Close implements [net.Conn].
func (c *tappedConn) Close() error {
	c.request("", "")
	return c.Conn.Close()
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

// parser reads the bytes of one answer, in pieces of any size. Tap.mu guards it.
type parser struct {
	Stream
	state state
	line  []byte // what has come of a header, a size line or a line end
	left  int    // bytes of data that have yet to come
}

func (s *parser) read(p []byte) {
	s.Bytes += int64(len(p))
	for len(p) > 0 && s.state != done {
		if s.state == inData {
			p = s.readData(p, &s.Chunks[len(s.Chunks)-1].Data)
			continue
		}
		s.line = append(s.line, p[0])
		p = p[1:]
		end := "\r\n"
		if s.state == inHeader {
			end = "\r\n\r\n"
		}
		if bytes.HasSuffix(s.line, []byte(end)) {
			s.readLine(string(s.line))
			s.line = nil
		} else if len(s.line) == maxHeader {
			s.line, s.state = nil, done
		}
	}
}

// readLine reads a header, or a line that is complete.
func (s *parser) readLine(line string) {
	switch s.state {
	case inHeader:
		s.Header, s.state = line, done
		if strings.Contains(strings.ToLower(line), "transfer-encoding: chunked") {
			s.state = inSizeLine
		}
	case inEnd:
		s.Chunks[len(s.Chunks)-1].End, s.state = line, inSizeLine
	case inSizeLine:
		digits, _, _ := strings.Cut(strings.TrimSpace(line), ";")
		size, err := strconv.ParseUint(digits, 16, 31)
		switch {
		case err != nil:
			s.state = done
			return
		case size == 0:
			s.state = inEnd
		default:
			s.state = inData
		}
		s.Count++
		s.left = int(size)
		s.Chunks = append(s.Chunks[max(0, len(s.Chunks)+1-maxChunks):], Chunk{SizeLine: line, Size: s.left})
	}
}

// readData reads what is left of a chunk, keeps its beginning in data, and returns the bytes behind it.
func (s *parser) readData(p []byte, data *string) []byte {
	n := min(s.left, len(p))
	*data += string(p[:min(n, max(0, maxData-len(*data)))])
	if s.left -= n; s.left == 0 {
		s.state = inEnd
	}
	return p[n:]
}
