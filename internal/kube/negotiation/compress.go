package negotiation

import (
	"bufio"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
)

// gzipThreshold is the size from which compressing costs less than sending, as upstream's defaultGzipThresholdBytes.
const gzipThreshold = 128 * 1024

// gzipPool keeps compressors for the next answer: each has a quarter of a megabyte of tables. They favour speed,
// because the processors of a server limit it before its network does.
var gzipPool = sync.Pool{New: func() any {
	compressor, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // the only error is a level that does not exist
	}
	return compressor
}}

// putGzip returns a compressor to the pool, without a reference to the answer, which holds a connection and its
// buffers.
func putGzip(compressor *gzip.Writer) {
	compressor.Reset(nil)
	gzipPool.Put(compressor)
}

// keptPool keeps buffers for the beginnings of answers.
var keptPool = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, gzipThreshold) }}

// Writer compresses large answers. It buffers the first [gzipThreshold] bytes before it writes the header, so a handler
// that fails earlier can still give another answer. It writes the rest in pieces of that size: lists are encoded item
// by item, and net/http would make a system call for every few items. A Writer belongs to one goroutine.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/writers.go: deferredResponseWriter
type Writer struct {
	// Set by NewWriter, never changed.
	response   http.ResponseWriter
	code       int
	compressed bool // the client accepts gzip

	kept    *bufio.Writer // the buffer; nil: nothing was written
	started bool          // the header was written
	gzip    *Members      // nil: it leaves as it is
}

// NewWriter returns the writer of an answer with a status code. compressed: the client accepts gzip.
func NewWriter(response http.ResponseWriter, code int, compressed bool) *Writer {
	return &Writer{response: response, code: code, compressed: compressed}
}

// Started reports whether the header was written: then the handler can give no other answer.
func (w *Writer) Started() bool { return w.started }

// Write buffers p, and writes the buffer when it is full.
func (w *Writer) Write(p []byte) (int, error) {
	if w.kept == nil {
		w.kept = keptPool.Get().(*bufio.Writer)
		w.kept.Reset(pieces{w})
	}
	return w.kept.Write(p)
}

// pieces writes what the buffer holds. If that happens before Close, the answer is large.
type pieces struct{ *Writer }

func (w pieces) Write(p []byte) (int, error) {
	if !w.started && w.compressed {
		w.response.Header().Set("Content-Encoding", "gzip")
		w.response.Header().Add("Vary", "Accept-Encoding")
		w.gzip = &Members{To: w.response}
	}
	w.start()
	if w.gzip != nil {
		return w.gzip.Write(p)
	}
	return w.response.Write(p)
}

// start writes the header, once.
func (w *Writer) start() {
	if !w.started {
		w.started = true
		w.response.WriteHeader(w.code)
	}
}

// Close writes the rest of the buffer and ends the answer. It is called once, also after an error.
func (w *Writer) Close() (err error) {
	w.start()
	if w.kept != nil {
		err = w.kept.Flush()
		w.kept.Reset(nil) // it must not keep the answer alive
		keptPool.Put(w.kept)
	}
	if w.gzip != nil {
		err = errors.Join(err, w.gzip.Close())
	}
	return err
}

// Members compresses a stream. Each Flush ends a gzip member, and the next write begins another; readers see one
// stream. So an idle stream holds no compressor, which would cost a quarter of a megabyte. It belongs to one goroutine.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/watch.go: perFlushGzipWriter
type Members struct {
	To io.Writer

	member *gzip.Writer // the open member; nil: nothing was written since the last flush
}

// Write adds to the open member.
func (m *Members) Write(p []byte) (int, error) {
	if m.member == nil {
		m.member = gzipPool.Get().(*gzip.Writer)
		m.member.Reset(m.To)
	}
	return m.member.Write(p)
}

// Flush writes everything, and then ends the open member. A reader that waits for the next member has received all of
// this one by then.
func (m *Members) Flush() error {
	if m.member == nil {
		return nil
	}
	if err := m.member.Flush(); err != nil {
		return err
	}
	return m.Close()
}

// Close ends the open member, if there is one.
func (m *Members) Close() error {
	if m.member == nil {
		return nil
	}
	err := m.member.Close()
	putGzip(m.member)
	m.member = nil
	return err
}

// AcceptsGzip reports whether the client accepts gzip.
func AcceptsGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, params, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.TrimSpace(name) == "gzip" && strings.ReplaceAll(params, " ", "") != "q=0" {
			return true
		}
	}
	return false
}
