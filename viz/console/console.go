// Package console is the room where a viewer writes a request as HTTP writes it, and reads the answer as it arrives: a
// list in pieces, a watch frame by frame.
package console

import (
	"bufio"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/util/framer"
)

// kubectl is what kubectl sends, as blocks: a line "$ kubectl …", then the request. A test takes it from kubectl -v=8.
//
//go:embed kubectl.txt
var kubectl string

const (
	maxPiece = 16 << 10 // bytes of an answer in one piece: a longer frame comes in several
	maxHex   = 1 << 10  // bytes of a piece that is no text, of which the page is told each
)

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
