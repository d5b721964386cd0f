package handlers

import (
	"io"
	"net/http"

	"listwatch/internal/kube/negotiation"
)

// watchWriter writes the frames of a watch to the response, perhaps compressed. It is used by one goroutine.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/watch.go: watchResponseWriter
type watchWriter struct {
	io.Writer // the response, or members

	flusher http.Flusher
	members *negotiation.Members // nil: not compressed
}

var _ stream = (*watchWriter)(nil)

// newWatchWriter sends the headers at once, so that the client knows that it watches before the first event.
func newWatchWriter(w http.ResponseWriter, flusher http.Flusher, mediaType string, compressed bool) *watchWriter {
	out := &watchWriter{Writer: w, flusher: flusher}
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Cache-Control", "no-cache, private")
	if compressed {
		out.members = &negotiation.Members{To: w}
		out.Writer = out.members
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Add("Vary", "Accept-Encoding")
	}
	w.WriteHeader(http.StatusOK)
	flusher.Flush()
	return out
}

// Flush sends what was written.
func (w *watchWriter) Flush() error {
	if w.members != nil {
		if err := w.members.Flush(); err != nil {
			return err
		}
	}
	w.flusher.Flush()
	return nil
}

// Close ends the stream. A chunked answer has no place for a reason.
func (w *watchWriter) Close(string, bool) {
	if w.members != nil {
		_ = w.members.Close() // an error: the client has gone
	}
}
