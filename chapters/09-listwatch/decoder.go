package listwatch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// maxFrameSize is how much is read of one frame. The space before it counts.
const maxFrameSize = 16 << 20

// ErrObjectTooLarge means that a frame does not fit into 16 MiB. The stream cannot go on after it.
//
// Upstream: k8s.io/apimachinery/pkg/runtime/serializer/streaming/streaming.go: ErrObjectTooLarge
var ErrObjectTooLarge = errors.New("object to decode was longer than maximum allowed size")

// frameReader is a stream of which no more is read than may belong to the next frame.
//
// Differs: upstream applies the limit when it copies a frame out of a json.Decoder, which has
// read all of it by then, however large.
type frameReader struct {
	io.ReadCloser
	read, limit int64 // positions in the stream: what was read, and what may be
}

// Read fails with [ErrObjectTooLarge] at the limit.
func (f *frameReader) Read(p []byte) (int, error) {
	left := f.limit - f.read
	if left <= 0 {
		return 0, ErrObjectTooLarge
	}
	n, err := f.ReadCloser.Read(p[:min(int64(len(p)), left)])
	f.read += int64(n)
	return n, err
}

// Decoder reads events from a stream of frames. Each frame is a [metav1.WatchEvent], a type and
// an object, in which the object says of what kind it is. Where the frames lie in the stream
// says nothing about where the network cut it: a read may end in the middle of a number, or
// bring three frames and a half. JSON itself says where an object ends.
//
// Decode and Close may be called at once; otherwise a Decoder belongs to one goroutine.
//
// Upstream: k8s.io/client-go/rest/watch/decoder.go: Decoder
// Upstream: k8s.io/apimachinery/pkg/runtime/serializer/streaming/streaming.go: NewDecoder
// Upstream: k8s.io/apimachinery/pkg/util/framer/framer.go: NewJSONFramedReader
type Decoder struct {
	stream   *frameReader
	frames   *json.Decoder // of stream
	embedded runtime.Decoder
}

// NewDecoder returns a decoder that reads from stream and closes it in the end. embedded decodes the objects.
func NewDecoder(stream io.ReadCloser, embedded runtime.Decoder) *Decoder {
	bounded := &frameReader{ReadCloser: stream}
	return &Decoder{stream: bounded, frames: json.NewDecoder(bounded), embedded: embedded}
}

// Decode blocks until it can return the next event. A [DecodeError] or [ErrObjectTooLarge]
// means that the server sent something unusable; other errors are those of the stream, io.EOF
// for its orderly end.
//
// Upstream: k8s.io/client-go/rest/watch/decoder.go: (*Decoder).Decode
func (d *Decoder) Decode() (watch.EventType, runtime.Object, error) {
	var event metav1.WatchEvent
	if err := d.readFrame(&event); err != nil {
		return "", nil, err
	}
	typ := watch.EventType(event.Type)
	switch typ {
	case watch.Added, watch.Modified, watch.Deleted, watch.Bookmark, watch.Error:
	default:
		return "", nil, &DecodeError{fmt.Errorf("got invalid watch event type: %q", typ)}
	}
	obj, err := runtime.Decode(d.embedded, event.Object.Raw)
	if err != nil {
		return "", nil, &DecodeError{fmt.Errorf("decode object of %s event: %w", typ, err)}
	}
	return typ, obj, nil
}

// readFrame decodes the next frame. The error is io.EOF between frames, io.ErrUnexpectedEOF
// inside one, [ErrObjectTooLarge], a [DecodeError] if there is no JSON or other JSON, or the
// stream's.
func (d *Decoder) readFrame(into any) error {
	lastEnd := d.frames.InputOffset()
	d.stream.limit = lastEnd + maxFrameSize
	err := d.frames.Decode(into)
	// json's own errors are about bytes that were read, all others about the reading.
	_, noJSON := errors.AsType[*json.SyntaxError](err)
	_, noEvent := errors.AsType[*json.UnmarshalTypeError](err)
	if noJSON || noEvent {
		return &DecodeError{fmt.Errorf("decode frame: %w", err)}
	}
	return err
}

// Close closes the stream, which makes a Decode that is waiting for it return. It may be called more than once.
func (d *Decoder) Close() { _ = d.stream.Close() }
