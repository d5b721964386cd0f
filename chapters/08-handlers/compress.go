package handlers

import (
	"bytes"
	"compress/gzip"
	"errors"
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

// keptPool keeps what pieces of answers are gathered in.
var keptPool = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// deferredWriter puts off the header of an answer until it is known whether it is worth compressing: it keeps the
// first [gzipThreshold] bytes. Whoever fails before there are as many can still give another answer. The rest goes out
// in pieces of that size: a list is written item by item, and net/http would make a system call of every few items.
//
// It belongs to one goroutine.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/writers.go: deferredResponseWriter
type deferredWriter struct {
	// Set by the maker, never changed.
	response   http.ResponseWriter
	code       int
	compressed bool // the client can undo it

	kept    *bytes.Buffer // what was written and has not left yet; nil: nothing was written
	started bool          // the header was written
	gzip    *gzip.Writer  // nil: it leaves as it is
}

// Write keeps p, or passes on what was kept.
func (w *deferredWriter) Write(p []byte) (int, error) {
	if w.kept == nil {
		w.kept = keptPool.Get().(*bytes.Buffer)
	}
	if w.kept.Len()+len(p) <= gzipThreshold {
		return w.kept.Write(p)
	}
	if !w.started {
		w.start()
	}
	if err := w.send(w.kept.Bytes()); err != nil {
		return 0, err
	}
	w.kept.Reset()
	if len(p) <= gzipThreshold {
		return w.kept.Write(p)
	}
	return len(p), w.send(p)
}

// start writes the header of a large answer.
func (w *deferredWriter) start() {
	w.started = true
	if w.compressed {
		w.response.Header().Set("Content-Encoding", "gzip")
		w.response.Header().Add("Vary", "Accept-Encoding")
		w.gzip = gzipPool.Get().(*gzip.Writer)
		w.gzip.Reset(w.response)
	}
	w.response.WriteHeader(w.code)
}

func (w *deferredWriter) send(p []byte) error {
	if w.gzip != nil {
		_, err := w.gzip.Write(p)
		return err
	}
	_, err := w.response.Write(p)
	return err
}

// close writes what is still kept, and the end. It is called once, also after an error.
func (w *deferredWriter) close() error {
	if !w.started {
		w.response.WriteHeader(w.code)
	}
	var err error
	if w.kept != nil {
		err = w.send(w.kept.Bytes())
		w.kept.Reset()
		keptPool.Put(w.kept)
	}
	if w.gzip != nil {
		err = errors.Join(err, w.gzip.Close())
		gzipPool.Put(w.gzip)
	}
	return err
}

// acceptsGzip reports whether the client can undo compression.
func acceptsGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, params, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.TrimSpace(name) == "gzip" && strings.ReplaceAll(params, " ", "") != "q=0" {
			return true
		}
	}
	return false
}
