// Package console is the room where a viewer writes a raw HTTP request, which the sandbox sends, and reads the answer:
// a list in pieces, a watch frame by frame. kubectl.txt has prepared requests, in kubectl's own form.
package console

import (
	"bufio"
	"cmp"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"listwatch/viz/reply"
)

// kubectl holds kubectl's requests in blocks: a line "$ kubectl …", then the request. A test compares them with the
// output of kubectl -v=8.
//
//go:embed kubectl.txt
var kubectl string

const (
	maxPiece = 16 << 10 // bytes in a piece; a longer frame arrives in several pieces
	maxHex   = 1 << 10  // bytes shown, in hexadecimal, of a binary piece
)

// Room serves the console. It has no routes without Ask.
type Room struct {
	// Ask sends a viewer's request to the API server. Answer closes the response. An APIStatus error keeps its status.
	Ask func(r *http.Request) (*http.Response, error)
}

// Mount adds the room's route.
func (c Room) Mount(router chi.Router) {
	if c.Ask != nil {
		router.Handle("POST /viz/console", reply.Body(c.answer))
	}
}

// asked is the body of POST /viz/console.
type asked struct {
	Request string `json:"request"` // "GET /api/v1/pods\n…"
}

// answer sends a request and streams the server's response (see [Answer]). The error is 400 for a malformed request,
// and otherwise Ask's.
func (c Room) answer(r *http.Request, written *asked) (any, error) {
	request, err := Read(written.Request)
	if err != nil {
		return nil, reply.Refuse(http.StatusBadRequest, "%v", err)
	}
	response, err := c.Ask(request.WithContext(r.Context()))
	return Answer{Response: response}, err
}

// ready is a command with the requests that it sends.
type ready struct {
	command  string
	requests []string
}

// readyMade returns the commands of kubectl.txt, in order.
func readyMade() (all []ready) {
	for block := range strings.SplitSeq(strings.TrimPrefix(kubectl, "$ "), "\n$ ") {
		command, request, _ := strings.Cut(block, "\n")
		if len(all) == 0 || all[len(all)-1].command != command {
			all = append(all, ready{command: command})
		}
		last := &all[len(all)-1]
		last.requests = append(last.requests, strings.TrimSuffix(request, "\n"))
	}
	return all
}

// said is one line of the stream to the page: first the answer's head, then its pieces, last its end.
type said struct {
	Agent  string `json:"agent,omitempty"`  // the console's user agent, which names its lane
	Status string `json:"status,omitempty"` // "200 OK"
	Header string `json:"header,omitempty"`
	Text   string `json:"text,omitempty"` // a piece; if binary, its first bytes in hexadecimal
	Size   int    `json:"size,omitempty"` // the number of bytes in the piece
	End    string `json:"end,omitempty"`  // the reason why the answer ended
}

// Answer streams the server's response to the page as lines of JSON until the response ends or the page disconnects,
// then closes the response. It holds one piece, and reads the next only after it has written that piece to the page.
type Answer struct{ Response *http.Response }

// ServeHTTP implements [http.Handler].
func (a Answer) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	response := a.Response
	defer response.Body.Close()
	w.Header().Set("Content-Type", "application/jsonl")
	w.Header().Set("Cache-Control", "no-store")
	lines, flush := json.NewEncoder(w), http.NewResponseController(w).Flush
	tell := func(line said) bool { return lines.Encode(line) == nil && flush() == nil }
	var header strings.Builder
	_ = response.Header.Write(&header) // cannot fail: header is in memory
	agent := response.Request.UserAgent()
	text := isText(response.Header)
	next := pieces(response)
	on := tell(said{Agent: agent, Status: response.Status, Header: strings.ReplaceAll(header.String(), "\r\n", "\n")})
	for on {
		piece, err := next()
		if len(piece) > 0 {
			line := said{Text: strings.ToValidUTF8(string(piece), "\ufffd"), Size: len(piece)}
			if !text {
				line.Text = hex.Dump(piece[:min(len(piece), maxHex)])
			}
			on = tell(line)
		}
		if err == nil {
			continue
		}
		on = false
		if err == io.EOF {
			err = errors.New("the server has ended its answer")
		}
		tell(said{End: err.Error()}) // fails only if the page has disconnected
	}
}

// isText reports whether an answer's header names neither a compression nor a binary encoding.
func isText(header http.Header) bool {
	mediaType := header.Get("Content-Type")
	return header.Get("Content-Encoding") == "" && !strings.Contains(mediaType, "protobuf") &&
		!strings.Contains(mediaType, "cbor")
}

// pieces returns a function that returns the next piece of a response, at most maxPiece bytes, valid until the next
// call. For a watch in text, a piece is a frame or part of one; for any other response, it is what has arrived.
func pieces(response *http.Response) func() ([]byte, error) {
	body, buffer := response.Body, make([]byte, maxPiece)
	watch := response.Request.URL.Query().Get("watch")
	if (watch == "true" || watch == "1") && isText(response.Header) {
		lines := bufio.NewReaderSize(body, maxPiece)
		return func() ([]byte, error) {
			line, err := lines.ReadSlice('\n')
			if err == bufio.ErrBufferFull {
				err = nil
			}
			return line, err
		}
	}
	return func() ([]byte, error) {
		n, err := body.Read(buffer)
		return buffer[:n], err
	}
}

// methods are the HTTP methods that Read accepts.
var methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
	http.MethodDelete, http.MethodOptions}

// Read parses a request: the method and the path, header lines, an empty line, and a body. Its errors are for the
// viewer. It drops the headers that belong to the connection, and by default requests an uncompressed answer.
func Read(text string) (*http.Request, error) {
	text = strings.TrimLeft(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	head, body, _ := strings.Cut(text, "\n\n")
	line, header, _ := strings.Cut(strings.TrimRight(head, "\n"), "\n")
	words := strings.Fields(line)
	if len(words) < 2 || len(words) > 3 || len(words) == 3 && !strings.HasPrefix(words[2], "HTTP/") {
		return nil, fmt.Errorf("first line %.80q: want a method and a path, as in GET /api/v1/pods", line)
	}
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(
		fmt.Sprintf("%s %s HTTP/1.1\n%s\n\n", words[0], words[1], header))))
	if err != nil {
		return nil, fmt.Errorf("the request: %w", err)
	}
	switch path := r.URL.Path; {
	case !slices.Contains(methods, r.Method):
		return nil, fmt.Errorf("method %.20q: want one of %s", r.Method, strings.Join(methods, ", "))
	case !strings.HasPrefix(words[1], "/"):
		return nil, fmt.Errorf("path %.80q: it begins with /", words[1])
	case strings.HasPrefix(path, "/viz/"), strings.HasPrefix(path, "/book/"):
		return nil, fmt.Errorf("path %.80q: that is the page's own; the console asks the API server", path)
	}
	if r.Header.Get("Upgrade") != "" {
		return nil, errors.New("header Upgrade: the console reads answers, and has no second direction")
	}
	for _, name := range []string{"Connection", "Content-Length", "Transfer-Encoding", "Expect", "Trailer"} {
		r.Header.Del(name)
	}
	r.RequestURI, r.TransferEncoding, r.Trailer, r.Close = "", nil, nil, true
	r.Body, r.ContentLength = http.NoBody, int64(len(body))
	if body != "" {
		r.Body = io.NopCloser(strings.NewReader(body))
	}
	// Otherwise net/http would request gzip and decompress it, and the page would not show the bytes on the wire.
	r.Header.Set("Accept-Encoding", cmp.Or(r.Header.Get("Accept-Encoding"), "identity"))
	return r, nil
}
