package listwatch

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

// How much of the wire is kept: enough to look at, whatever the streams do.
const (
	maxWireChunks = 16       // of each stream, the newest
	maxWireData   = 1 << 10  // bytes of each chunk, from its start
	maxWireHeader = 16 << 10 // bytes of a header; an answer with a longer one is not understood
)

// WireTap looks at watches where net/http does not let anybody look: between the HTTP client and the network. A reader
// of a response sees a stream of bytes; on the wire it is cut into chunks, each with its size in front and a line end
// behind:
//
//	1a4\r\n                                 the size line, in hexadecimal
//	{"type":"ADDED","object":{…}}\n         so many bytes
//	\r\n
//
// A size of 0 is the end of the stream. A watch over a websocket comes in frames instead, see [WireFrame]. It is there to be shown; nothing depends on it. Safe for concurrent use.
//
// Differs: upstream has nothing of the kind; people use tcpdump.
type WireTap struct {
	mu      sync.Mutex // guards the fields below and every stream in open; innermost
	lastID  int
	streams []*wireStream // that are open, oldest first
}

// NewWireTap returns a tap that sees nothing until [WireTap.Tap].
func NewWireTap() *WireTap { return &WireTap{} }

// Tap returns a client like the given one whose connections are looked at. A client with a transport of its own kind
// is returned as it is, and nothing of it is seen.
func (t *WireTap) Tap(client *http.Client) *http.Client {
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

// WireChunk is one chunk as it was on the wire.
type WireChunk struct {
	SizeLine string `json:"sizeLine"` // with its line end
	Data     string `json:"data"`     // its beginning, if it is long
	Size     int    `json:"size"`     // of all its data, in bytes
	End      string `json:"end"`      // the line end behind the data; empty while it has not come
}

// WireStream is one open watch.
type WireStream struct {
	ID      int         `json:"id"`
	Request string      `json:"request"` // as it was sent, to the empty line
	Header  string      `json:"header"`  // of the answer, to the empty line
	Bytes   int64       `json:"bytes"`   // read so far, all in all
	Count   int         `json:"count"`   // of chunks, or frames, so far
	Chunks  []WireChunk `json:"chunks"`  // the newest
	Frames  []WireFrame `json:"frames"`  // the newest, if it is a websocket
}

// OpenedBy returns who asks, and for what: the user agent and the path with its query.
func (s *WireStream) OpenedBy() string {
	request, err := http.ReadRequest(bufio.NewReader(strings.NewReader(s.Request)))
	if err != nil {
		return "" // cut off, or never HTTP
	}
	return request.UserAgent() + " " + request.URL.RequestURI()
}

// Snapshot returns what is known of every open watch.
func (t *WireTap) Snapshot() []WireStream {
	t.mu.Lock()
	defer t.mu.Unlock()
	streams := make([]WireStream, 0, len(t.streams))
	for _, stream := range t.streams {
		view := stream.WireStream
		view.Chunks, view.Frames = slices.Clone(view.Chunks), slices.Clone(view.Frames)
		streams = append(streams, view)
	}
	return streams
}

// open begins a stream.
func (t *WireTap) open(request string) *wireStream {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lastID++
	stream := &wireStream{WireStream: WireStream{ID: t.lastID, Request: request}}
	t.streams = append(t.streams, stream)
	return stream
}

func (t *WireTap) close(stream *wireStream) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.streams = slices.DeleteFunc(t.streams, func(s *wireStream) bool { return s == stream })
}

func (t *WireTap) read(stream *wireStream, p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	stream.read(p)
}

// tappedConn is a connection that shows what passes. On one connection of HTTP/1.1 one answer follows another, so what
// is read belongs to the request that was written last.
type tappedConn struct {
	net.Conn
	tap *WireTap

	mu     sync.Mutex  // guards stream; taken before WireTap.mu
	stream *wireStream // nil: the last request was no watch
}

// Write notes the beginning of requests.
func (c *tappedConn) Write(p []byte) (int, error) {
	if line, _, ok := bytes.Cut(p, []byte(" HTTP/1.1\r\n")); ok {
		header, _, _ := bytes.Cut(p, []byte("\r\n\r\n"))
		c.request(string(line), string(header[:min(len(header), maxWireHeader)])+"\r\n\r\n")
	}
	return c.Conn.Write(p)
}

func (c *tappedConn) request(line, header string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forgetLocked()
	if strings.HasPrefix(line, http.MethodGet+" ") && (strings.Contains(line, "watch=true") || strings.Contains(line, "watch=1")) {
		c.stream = c.tap.open(header)
	}
}

// forgetLocked ends the stream. The caller must hold c.mu.
func (c *tappedConn) forgetLocked() {
	if c.stream != nil {
		c.tap.close(c.stream)
		c.stream = nil
	}
}

// Read shows what was read.
func (c *tappedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stream != nil && n > 0 {
		c.tap.read(c.stream, p[:n])
	}
	return n, err
}

// Close forgets the stream.
func (c *tappedConn) Close() error {
	c.mu.Lock()
	c.forgetLocked()
	c.mu.Unlock() // before the call, which may wait
	return c.Conn.Close()
}

// wireState is what comes next on the wire.
type wireState int

const (
	wireHeader   wireState = iota
	wireSizeLine           // of a chunk
	wireData
	wireEnd       // the line end behind the data
	wireFrameHead // of a websocket
	wireFrameData
	wireDone // no more chunks, or nothing we understand
)

// wireStream takes the bytes of one answer apart, however they are cut. It is guarded by WireTap.mu.
type wireStream struct {
	WireStream
	state wireState
	line  []byte // what has come of a header, a size line or a line end
	left  int    // bytes of data that have yet to come
}

func (s *wireStream) read(p []byte) {
	s.Bytes += int64(len(p))
	for len(p) > 0 && s.state != wireDone {
		switch s.state {
		case wireData:
			p = s.readData(p, &s.Chunks[len(s.Chunks)-1].Data, wireEnd)
		case wireFrameData:
			p = s.readData(p, &s.Frames[len(s.Frames)-1].Data, wireFrameHead)
		case wireFrameHead:
			s.line = append(s.line, p[0])
			p = p[1:]
			s.readHead()
		default:
			s.line = append(s.line, p[0])
			p = p[1:]
			s.readLine()
		}
	}
}

// readLine looks at what has come of a line, and goes on if it is complete.
func (s *wireStream) readLine() {
	switch line := string(s.line); {
	case s.state == wireHeader && strings.HasSuffix(line, "\r\n\r\n"):
		s.Header = line
		s.state = wireDone
		if strings.Contains(strings.ToLower(line), "transfer-encoding: chunked") {
			s.state = wireSizeLine
		} else if upgraded(line) {
			s.state = wireFrameHead
		}
	case s.state == wireHeader && len(line) < maxWireHeader:
		return
	case s.state == wireHeader:
		s.state = wireDone
	case !strings.HasSuffix(line, "\r\n"):
		return
	case s.state == wireSizeLine:
		s.beginChunk(line)
	case s.state == wireEnd:
		s.Chunks[len(s.Chunks)-1].End = line
		s.state = wireSizeLine
	}
	s.line = nil
}

func (s *wireStream) beginChunk(line string) {
	digits, _, _ := strings.Cut(strings.TrimSpace(line), ";")
	size, err := strconv.ParseUint(digits, 16, 31)
	if err != nil {
		s.state = wireDone
		return
	}
	s.Count++
	if len(s.Chunks) == maxWireChunks {
		s.Chunks = slices.Delete(s.Chunks, 0, 1)
	}
	s.Chunks = append(s.Chunks, WireChunk{SizeLine: line, Size: int(size)})
	s.left, s.state = int(size), wireData
	if size == 0 {
		s.state = wireEnd
	}
}

// readData takes what is left of a chunk or a frame, keeps the beginning of it in data, and returns what comes after it.
// When nothing is left, next comes next.
func (s *wireStream) readData(p []byte, data *string, next wireState) []byte {
	n := min(s.left, len(p))
	if room := maxWireData - len(*data); room > 0 {
		*data += string(p[:min(n, room)])
	}
	s.left -= n
	if s.left == 0 {
		s.state = next
	}
	return p[n:]
}
