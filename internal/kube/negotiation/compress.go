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

// gzipPool keeps compressors for the next answer: one is a quarter of a megabyte of tables. They favour speed, because
// a server on the same network is rather limited by its processors.
var gzipPool = sync.Pool{New: func() any {
	compressor, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // the only error is a level that does not exist
	}
	return compressor
}}

// putGzip gives a compressor back. It must not keep alive what it wrote to: an answer holds a connection and its
// buffers.
func putGzip(compressor *gzip.Writer) {
	compressor.Reset(nil)
	gzipPool.Put(compressor)
}

// keptPool keeps what pieces of answers are gathered in.
var keptPool = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, gzipThreshold) }}

// Writer puts off the header of an answer until it is known whether it is worth compressing: it keeps the
// first [gzipThreshold] bytes. A handler that fails before that can still give another answer. The rest goes out
// in pieces of that size: a list is written item by item, and net/http would make a system call of every few items.
//
// It belongs to one goroutine.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/writers.go: deferredResponseWriter
type Writer struct {
	// Set by NewWriter, never changed.
	response   http.ResponseWriter
	code       int
	compressed bool // the client can undo it

	kept    *bufio.Writer // what was written and has not left yet; nil: nothing was written
	started bool          // the header was written
	gzip    *Members      // nil: it leaves as it is
}

// NewWriter returns the writer of an answer with a status code. compressed: the client can undo it.
func NewWriter(response http.ResponseWriter, code int, compressed bool) *Writer {
	return &Writer{response: response, code: code, compressed: compressed}
}

// Started reports whether the header was written, so that no other answer can be given any more.
func (w *Writer) Started() bool { return w.started }

// Write keeps p, or passes on what was kept.
func (w *Writer) Write(p []byte) (int, error) {
	if w.kept == nil {
		w.kept = keptPool.Get().(*bufio.Writer)
		w.kept.Reset(pieces{w})
	}
	return w.kept.Write(p)
}

// pieces is by where the pieces of an answer leave. What leaves before the end begins a large answer.
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

// Close writes what is still kept, and the end. It is called once, also after an error.
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

// Members compresses a stream that is written now and then: each Flush ends one gzip member, and the next write begins
// another; a reader takes them for one stream. So a stream on which nothing happens holds no compressor, which would be
// a quarter of a megabyte for each. It belongs to one goroutine.
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

// Flush passes on what was written, and ends the open member. These are two steps: a reader that waits for the next
// member must have got the whole of this one before.
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

// AcceptsGzip reports whether the client can undo compression.
func AcceptsGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, params, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.TrimSpace(name) == "gzip" && strings.ReplaceAll(params, " ", "") != "q=0" {
			return true
		}
	}
	return false
}
