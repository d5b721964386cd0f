package listwatch

import (
	"encoding/json"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// DecodeError means that the bytes were read but are not what they should be. It tells a server that speaks nonsense
// from a connection that broke.
type DecodeError struct {
	Err error
}

func (e *DecodeError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *DecodeError) Unwrap() error { return e.Err }

// Decoder reads events from a stream of frames. Each frame is a JSON object with a type and an object, in which the
// object says of what kind it is.
//
// Decode and Close may be called at once; otherwise a Decoder belongs to one goroutine.
//
// Upstream: k8s.io/client-go/rest/watch/decoder.go: Decoder
// Upstream: k8s.io/apimachinery/pkg/runtime/serializer/streaming/streaming.go: NewDecoder
type Decoder struct {
	frames   *frameReader
	closer   io.Closer
	embedded runtime.Decoder
}

// NewDecoder returns a decoder that reads from stream and closes it in the end. embedded decodes the objects.
func NewDecoder(stream io.ReadCloser, embedded runtime.Decoder) *Decoder {
	return &Decoder{frames: newFrameReader(stream), closer: stream, embedded: embedded}
}

// watchEvent is the frame.
//
// Upstream: k8s.io/apimachinery/pkg/apis/meta/v1/watch.go: WatchEvent
type watchEvent struct {
	Type   watch.EventType `json:"type"`
	Object json.RawMessage `json:"object"`
}

// Decode blocks until it can return the next event. A [DecodeError] or [ErrObjectTooLarge]
// means that the server sent something unusable; other errors are those of the stream, io.EOF
// for its orderly end.
//
// Upstream: k8s.io/client-go/rest/watch/decoder.go: (*Decoder).Decode
func (d *Decoder) Decode() (watch.EventType, runtime.Object, error) {
	frame, err := d.frames.ReadFrame()
	if err != nil {
		return "", nil, err
	}
	var event watchEvent
	if err := json.Unmarshal(frame, &event); err != nil {
		return "", nil, &DecodeError{fmt.Errorf("decode frame: %w", err)}
	}
	switch event.Type {
	case watch.Added, watch.Modified, watch.Deleted, watch.Bookmark, watch.Error:
	default:
		return "", nil, &DecodeError{fmt.Errorf("got invalid watch event type: %q", event.Type)}
	}
	obj, err := runtime.Decode(d.embedded, event.Object)
	if err != nil {
		return "", nil, &DecodeError{
			fmt.Errorf("decode object of %s event: %w", event.Type, err)}
	}
	return event.Type, obj, nil
}

// Close closes the stream, which makes a Decode that is waiting for it return.
func (d *Decoder) Close() { _ = d.closer.Close() }
