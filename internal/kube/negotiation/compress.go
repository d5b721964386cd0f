package negotiation

import (
	"bytes"
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
var keptPool = sync.Pool{New: func() any { return new(bytes.Buffer) }}

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

	kept    *bytes.Buffer // what was written and has not left yet; nil: nothing was written
	started bool          // the header was written
	gzip    *gzip.Writer  // nil: it leaves as it is
	to      io.Writer     // what it leaves by: gzip, or response
}

// NewWriter returns the writer of an answer with a status code. compressed: the client can undo it.
func NewWriter(response http.ResponseWriter, code int, compressed bool) *Writer {
	return &Writer{response: response, code: code, compressed: compressed, to: response}
}

// Started reports whether the header was written, so that no other answer can be given any more.
func (w *Writer) Started() bool { return w.started }

// Write keeps p, or passes on what was kept.
func (w *Writer) Write(p []byte) (int, error) {
	if w.kept == nil {
		w.kept = keptPool.Get().(*bytes.Buffer)
	}
	if w.kept.Len()+len(p) <= gzipThreshold {
		return w.kept.Write(p)
	}
	if !w.started {
		w.start()
	}
	if _, err := w.to.Write(w.kept.Bytes()); err != nil {
		return 0, err
	}
	w.kept.Reset()
	if len(p) <= gzipThreshold {
		return w.kept.Write(p)
	}
	return w.to.Write(p)
}

// start writes the header of a large answer.
func (w *Writer) start() {
	w.started = true
	if w.compressed {
		w.response.Header().Set("Content-Encoding", "gzip")
		w.response.Header().Add("Vary", "Accept-Encoding")
		w.gzip = gzipPool.Get().(*gzip.Writer)
		w.gzip.Reset(w.response)
		w.to = w.gzip
	}
	w.response.WriteHeader(w.code)
}

// Close writes what is still kept, and the end. It is called once, also after an error.
func (w *Writer) Close() error {
	if !w.started {
		w.response.WriteHeader(w.code)
	}
	var err error
	if w.kept != nil {
		_, err = w.to.Write(w.kept.Bytes())
		w.kept.Reset()
		keptPool.Put(w.kept)
	}
	if w.gzip != nil {
		err = errors.Join(err, w.gzip.Close())
		putGzip(w.gzip)
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
