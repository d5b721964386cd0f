package negotiation

import (
	"bufio"
	"compress/gzip"
	"errors"
	"net/http"
	"strings"
	"sync"
)

// gzipThreshold is the size in bytes above which a response is compressed: upstream's defaultGzipThresholdBytes.
const gzipThreshold = 128 * 1024

// gzipPool keeps compressors for later responses: each takes more than a megabyte. The compressors favor speed over
// size, because a server runs out of CPU before it runs out of bandwidth.
var gzipPool = sync.Pool{New: func() any {
	compressor, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // only an unknown level is an error
	return compressor
}}

// keptPool keeps buffers for later responses.
var keptPool = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, gzipThreshold) }}

// Writer compresses large responses. It buffers the first [gzipThreshold] bytes before it writes the header, so a
// handler that fails earlier can still send another response. It writes the rest in pieces of that size, because lists
// are encoded item by item, and net/http alone would make a system call for every few items. Only one goroutine may use
// a Writer.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/writers.go: deferredResponseWriter
type Writer struct {
	// Set by NewWriter, never changed.
	response   http.ResponseWriter
	code       int
	compressed bool // the client accepts gzip

	kept    *bufio.Writer // the buffer; nil: nothing has been written
	started bool          // the header has been written
	gzip    *gzip.Writer  // nil: the response is not compressed
}

// NewWriter returns the writer of a response with a status code. compressed reports whether the client accepts gzip.
func NewWriter(response http.ResponseWriter, code int, compressed bool) *Writer {
	return &Writer{response: response, code: code, compressed: compressed}
}

// Started reports whether the header has been written. After that, the handler can send no other response.
func (w *Writer) Started() bool { return w.started }

// Write buffers p, and writes the buffer when it is full.
func (w *Writer) Write(p []byte) (int, error) {
	if w.kept == nil {
		w.kept = keptPool.Get().(*bufio.Writer)
		w.kept.Reset(pieces{w})
	}
	return w.kept.Write(p)
}

// pieces writes the buffer's contents to the response. A Write before Close means that the response is large.
type pieces struct{ *Writer }

func (w pieces) Write(p []byte) (int, error) {
	if !w.started && w.compressed {
		w.response.Header().Set("Content-Encoding", "gzip")
		w.response.Header().Add("Vary", "Accept-Encoding")
		w.gzip = gzipPool.Get().(*gzip.Writer)
		w.gzip.Reset(w.response)
	}
	w.start()
	if w.gzip != nil {
		return w.gzip.Write(p)
	}
	return w.response.Write(p)
}

// start writes the header, if it has not been written yet.
func (w *Writer) start() {
	if !w.started {
		w.started = true
		w.response.WriteHeader(w.code)
	}
}

// Close writes the rest of the buffer and ends the response. Call it once, unless the handler sends another response.
func (w *Writer) Close() (err error) {
	w.start()
	if w.kept != nil {
		err = w.kept.Flush()
		w.kept.Reset(nil) // the pools must not keep the response alive
		keptPool.Put(w.kept)
	}
	if w.gzip != nil {
		err = errors.Join(err, w.gzip.Close())
		w.gzip.Reset(nil)
		gzipPool.Put(w.gzip)
	}
	return err
}

// AcceptsGzip reports whether Accept-Encoding names gzip, and not with q=0. It ignores "*".
func AcceptsGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, params, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.TrimSpace(name) == "gzip" && strings.ReplaceAll(params, " ", "") != "q=0" {
			return true
		}
	}
	return false
}
