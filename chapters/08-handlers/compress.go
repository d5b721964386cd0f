package handlers

import (
	"compress/gzip"
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

// deferredWriter puts off the header of an answer until it is known whether it is worth compressing: it keeps the
// first [gzipThreshold] bytes. Whoever fails before there are as many can still give another answer.
//
// It belongs to one goroutine.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/writers.go: deferredResponseWriter
type deferredWriter struct {
	// Set by the maker, never changed.
	response   http.ResponseWriter
	code       int
	compressed bool // the client can undo it

	kept    []byte // what was written before the header was
	started bool   // the header was written
	gzip    *gzip.Writer
}

// Write keeps p, or passes it on.
func (w *deferredWriter) Write(p []byte) (int, error) {
	if !w.started {
		if len(w.kept)+len(p) <= gzipThreshold {
			w.kept = append(w.kept, p...)
			return len(p), nil
		}
		if err := w.start(); err != nil {
			return 0, err
		}
	}
	if w.gzip != nil {
		return w.gzip.Write(p)
	}
	return w.response.Write(p)
}

// start writes the header of a large answer, and what was kept of it.
func (w *deferredWriter) start() error {
	w.started = true
	kept := w.kept
	w.kept = nil
	if !w.compressed {
		w.response.WriteHeader(w.code)
		_, err := w.response.Write(kept)
		return err
	}
	w.response.Header().Set("Content-Encoding", "gzip")
	w.response.Header().Add("Vary", "Accept-Encoding")
	w.response.WriteHeader(w.code)
	w.gzip = gzipPool.Get().(*gzip.Writer)
	w.gzip.Reset(w.response)
	_, err := w.gzip.Write(kept)
	return err
}

// close writes what is still kept, and the end. It is called once, also after an error.
func (w *deferredWriter) close() error {
	if w.gzip != nil {
		err := w.gzip.Close()
		gzipPool.Put(w.gzip)
		return err
	}
	if w.started {
		return nil
	}
	w.response.WriteHeader(w.code)
	_, err := w.response.Write(w.kept)
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
