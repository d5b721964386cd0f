package handlers

import (
	"compress/gzip"
	"net/http"

	"listwatch/internal/negotiation"
)

// watchWriter is where the frames of a watch go: to the response as they are, or compressed.
//
// Compressed, each flush ends one gzip member, and the next write begins another; a reader takes them for one
// stream. So a watch on which nothing happens holds no compressor, which would be a quarter of a megabyte for each.
//
// It is used by one goroutine.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/watch.go: watchResponseWriter
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/watch.go: perFlushGzipWriter
type watchWriter struct {
	// Set by newWatchWriter, never changed.
	response   http.ResponseWriter
	flusher    http.Flusher
	compressed bool

	member *gzip.Writer // the open member; nil: nothing was written since the last flush
}

func newWatchWriter(w http.ResponseWriter, flusher http.Flusher, compressed bool) *watchWriter {
	return &watchWriter{response: w, flusher: flusher, compressed: compressed}
}

// beginStream sends the headers at once: the client learns that it is watching before anything happens.
func (w *watchWriter) beginStream(mediaType string) {
	header := w.response.Header()
	header.Set("Content-Type", mediaType)
	header.Set("Cache-Control", "no-cache, private")
	if w.compressed {
		header.Set("Content-Encoding", "gzip")
		header.Add("Vary", "Accept-Encoding")
	}
	w.response.WriteHeader(http.StatusOK)
	w.flusher.Flush()
}

// Write writes part of a frame.
func (w *watchWriter) Write(p []byte) (int, error) {
	if !w.compressed {
		return w.response.Write(p)
	}
	if w.member == nil {
		w.member = negotiation.GzipPool.Get().(*gzip.Writer)
		w.member.Reset(w.response)
	}
	return w.member.Write(p)
}

// flush sends what was written on its way.
func (w *watchWriter) flush() error {
	if w.member != nil {
		// First what was written, then the end of the member: a reader that waits for the next member must have got
		// the whole of this one before.
		if err := w.member.Flush(); err != nil {
			return err
		}
	}
	if err := w.endMember(); err != nil {
		return err
	}
	w.flusher.Flush()
	return nil
}

// close ends the stream. A chunked answer has no place for a reason.
func (w *watchWriter) close(ending) {
	_ = w.endMember() // a client that is gone does not miss the end
}

// endMember ends the open member, if there is one.
func (w *watchWriter) endMember() error {
	if w.member == nil {
		return nil
	}
	err := w.member.Close()
	negotiation.GzipPool.Put(w.member)
	w.member = nil
	return err
}
