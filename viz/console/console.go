// Package console is the room where a viewer writes a request as HTTP writes it, and reads the answer as it arrives: a
// list in pieces, a watch frame by frame.
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
	"k8s.io/apimachinery/pkg/util/framer"

	"listwatch/viz/reply"
)

// kubectl is what kubectl sends, as blocks: a line "$ kubectl …", then the request. A test takes it from
// kubectl -v=8.
//
//go:embed kubectl.txt
var kubectl string

const (
	maxPiece = 16 << 10 // bytes of an answer in one piece: a longer frame comes in several
	maxHex   = 1 << 10  // bytes of a piece that is no text, of which the page is told each
)

// Room is the console. It is not mounted without Ask.
type Room struct {
	// Ask sends a request of the viewer to the API server. Errors that are an apierrors.APIStatus keep their status.
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

// answer is what the server says to a request, as it arrives: see [Answer]. 400 for what is no request, and Ask's
// errors.
func (c Room) answer(r *http.Request, written *asked) (any, error) {
	request, err := Read(written.Request)
	if err != nil {
		return nil, reply.Refuse(http.StatusBadRequest, "%v", err)
	}
	response, err := c.Ask(request.WithContext(r.Context()))
	return Answer{Response: response}, err
}

// ready is what one command sends.
type ready struct {
	command  string
	requests []string
}

// readyMade returns the commands of kubectl.txt in its order.
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

// said is one line of what the page is told: first of the answer's head, then of its pieces, at last of its end.
type said struct {
	Agent  string `json:"agent,omitempty"`  // what the console calls itself: the name of its lane
	Status string `json:"status,omitempty"` // "200 OK"
	Header string `json:"header,omitempty"`
	Text   string `json:"text,omitempty"` // of a piece; of one that is no text, its first bytes in hexadecimal
	Size   int    `json:"size,omitempty"` // of a piece, in bytes
	End    string `json:"end,omitempty"`  // why there is no more
}

// Answer tells the page of the server's response, as lines of JSON, until it ends or the page has gone, and closes it.
// It reads on only when the page has taken a piece, and holds no more than one.
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
	_ = response.Header.Write(&header) // into memory
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
		tell(said{End: err.Error()}) // the page may have gone
	}
}

// isText reports whether an answer's body is text, as far as its header says.
func isText(header http.Header) bool {
	mediaType := header.Get("Content-Type")
	return header.Get("Content-Encoding") == "" && !strings.Contains(mediaType, "protobuf") &&
		!strings.Contains(mediaType, "cbor")
}

// pieces returns a function that returns the next piece of an answer, which is good until the next call: of a watch one
// frame, or maxPiece bytes of a longer one; of anything else, what has come.
func pieces(response *http.Response) func() ([]byte, error) {
	body, buffer := response.Body, make([]byte, maxPiece)
	watch := response.Request.URL.Query().Get("watch")
	if frames := watch == "true" || watch == "1"; frames && isText(response.Header) {
		lines := bufio.NewReaderSize(body, maxPiece)
		return func() ([]byte, error) {
			line, err := lines.ReadSlice('\n')
			if err == bufio.ErrBufferFull {
				err = nil
			}
			return line, err
		}
	} else if frames && response.Header.Get("Content-Encoding") == "" {
		body = framer.NewLengthDelimitedFrameReader(body)
	}
	return func() ([]byte, error) {
		n, err := body.Read(buffer)
		if err == io.ErrShortBuffer {
			err = nil
		}
		return buffer[:n], err
	}
}

// methods are those that the API server has a meaning for.
var methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
	http.MethodDelete, http.MethodOptions}

// Read reads a request: the method and the path, header lines, an empty line, and a body. Its errors are for the
// viewer. What belongs to the connection is left out: the length is the body's, and the console names itself.
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
	// Otherwise net/http asks for gzip by itself, and unpacks it: the page would not show what has come.
	r.Header.Set("Accept-Encoding", cmp.Or(r.Header.Get("Accept-Encoding"), "identity"))
	return r, nil
}
