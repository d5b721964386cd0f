package handlers

import "net/http"

// watchWriter writes the frames of a watch to the response. It is used by one goroutine.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/watch.go: watchResponseWriter
// Differs: never compressed; upstream compresses a watch-list, each flush as a gzip member of its own.
type watchWriter struct {
	http.ResponseWriter
	flusher http.Flusher
}

// newWatchWriter sends the headers at once, so that the client knows before the first event that its watch has begun.
func newWatchWriter(w http.ResponseWriter, flusher http.Flusher, mediaType string) watchWriter {
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Cache-Control", "no-cache, private")
	w.WriteHeader(http.StatusOK)
	flusher.Flush()
	return watchWriter{w, flusher}
}

func (w watchWriter) Flush() error {
	w.flusher.Flush()
	return nil
}

// Close does nothing: a chunked answer has no place for a reason.
func (watchWriter) Close(string, bool) {}
