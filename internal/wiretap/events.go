package wiretap

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxEvent is how long a frame of a watch may be for its object to be looked at. Longer ones are only counted.
const MaxEvent = 256 << 10

// ListHeadSize is how much of a list's beginning [ReadListHead] needs: a list says its version before its items.
const ListHeadSize = 4 << 10

// protobufEnvelope stands before every object in Kubernetes' protobuf.
const protobufEnvelope = "k8s\x00"

// Event is what one frame of a watch says, without its object.
type Event struct {
	Type       string `json:"type"` // "ADDED", …; "" if the frame could not be read
	Key        string `json:"key"`  // namespace/name
	RV         string `json:"rv"`
	Code       int    `json:"code,omitempty"`       // of an ERROR's Status
	InitialEnd bool   `json:"initialEnd,omitempty"` // the bookmark that ends a watch-list's first state
	Size       int    `json:"size"`                 // bytes of the frame
}

// Events takes the body of a watch's answer apart, however it is cut: lines of JSON, or protobuf with lengths before them. It
// belongs to one goroutine.
type Events struct {
	// Set by NewEvents, never changed.
	protobuf bool

	frame   []byte // what has come of the frame that is not complete, up to MaxEvent
	size    int    // of that frame so far
	length  int    // of that frame in all, if it is protobuf; 0: its length has not come
	skips   bool   // some of the body is missing: what comes is no frame until the next line
	unknown bool   // some of a protobuf body is missing: where its next frame begins cannot be known
}

// NewEvents returns a reader of bodies of that media type.
func NewEvents(mediaType string) *Events {
	return &Events{protobuf: strings.Contains(mediaType, "protobuf")}
}

// Read returns the events that p completes.
func (e *Events) Read(p []byte) (events []Event) {
	for len(p) > 0 && !e.unknown {
		var done bool
		if e.protobuf {
			p, done = e.readLength(p)
		} else {
			p, done = e.readLine(p)
		}
		if !done {
			continue
		}
		if !e.skips {
			events = append(events, e.event())
		}
		e.frame, e.size, e.length, e.skips = e.frame[:0], 0, 0, false
	}
	return events
}

// Lost says that some of the body is missing before what will be read next.
func (e *Events) Lost() { e.skips, e.unknown = true, e.protobuf }

// Blind reports whether nothing more can be read.
func (e *Events) Blind() bool { return e.unknown }

func (e *Events) readLine(p []byte) (rest []byte, done bool) {
	at := bytes.IndexByte(p, '\n')
	if at < 0 {
		e.keep(p)
		return nil, false
	}
	e.keep(p[:at+1])
	return p[at+1:], true
}

// readLength reads a frame of protobuf: four bytes that are its length, then so many bytes.
func (e *Events) readLength(p []byte) (rest []byte, done bool) {
	const head = 4
	if e.length == 0 {
		n := min(head-e.size, len(p))
		e.keep(p[:n])
		if e.size == head {
			e.length = head + int(binary.BigEndian.Uint32(e.frame))
		}
		return p[n:], e.length == head
	}
	n := min(e.length-e.size, len(p))
	e.keep(p[:n])
	return p[n:], e.size == e.length
}

func (e *Events) keep(p []byte) {
	e.size += len(p)
	e.frame = append(e.frame, p[:min(len(p), MaxEvent-len(e.frame))]...)
}

func (e *Events) event() Event {
	event := Event{Size: e.size}
	switch {
	case e.size > MaxEvent:
	case e.protobuf:
		event.readProtobuf(e.frame[4:])
	default:
		event.readJSON(e.frame)
	}
	return event
}

// object is what is read of a watched object. A Table has its objects in rows; a Status has a code.
type object struct {
	Code     int        `json:"code"`
	Metadata objectMeta `json:"metadata"`
	Rows     []struct {
		Object struct {
			Metadata objectMeta `json:"metadata"`
		} `json:"object"`
	} `json:"rows"`
}

type objectMeta struct {
	Namespace       string            `json:"namespace"`
	Name            string            `json:"name"`
	ResourceVersion string            `json:"resourceVersion"`
	Annotations     map[string]string `json:"annotations"`
}

func (e *Event) readJSON(frame []byte) {
	var read struct {
		Type   string `json:"type"`
		Object object `json:"object"`
	}
	var other *json.UnmarshalTypeError // a custom resource may have a "code" of its own; the rest is read all the same
	if err := json.Unmarshal(frame, &read); err != nil && !errors.As(err, &other) {
		return
	}
	meta := read.Object.Metadata
	if len(read.Object.Rows) > 0 {
		meta = read.Object.Rows[0].Object.Metadata
	}
	e.Type, e.Code, e.RV, e.Key = read.Type, read.Object.Code, meta.ResourceVersion, key(meta.Namespace, meta.Name)
	e.InitialEnd = meta.Annotations[metav1.InitialEventsAnnotationKey] == "true"
}

// readProtobuf reads a WatchEvent. Its object is an Unknown within an envelope; an object's metadata is its field 1.
func (e *Event) readProtobuf(frame []byte) {
	raw, ok := bytes.CutPrefix(field(field(frame, 2), 1), []byte(protobufEnvelope))
	if !ok {
		return
	}
	e.Type = string(field(frame, 1))
	kind, content := string(field(field(raw, 1), 2)), field(raw, 2)
	if kind == "Status" {
		e.Code = int(number(content, 6))
		return
	}
	meta := field(content, 1)
	e.RV, e.Key = string(field(meta, 6)), key(string(field(meta, 3)), string(field(meta, 1)))
	e.InitialEnd = e.Type == "BOOKMARK" && bytes.Contains(meta, []byte(metav1.InitialEventsAnnotationKey))
}

func key(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// ListHead is what a list says of itself.
type ListHead struct {
	RV       string `json:"rv"`
	Continue bool   `json:"continue,omitempty"` // there are more pages
}

// ReadListHead reads the beginning of a list's body, up to ListHeadSize bytes of it.
func ReadListHead(head []byte, mediaType, encoding string) (list ListHead) {
	if encoding == "gzip" {
		packed, err := gzip.NewReader(bytes.NewReader(head))
		if err != nil {
			return list
		}
		head, _ = io.ReadAll(io.LimitReader(packed, ListHeadSize)) // it is cut off: what has come is enough
	}
	if raw, ok := bytes.CutPrefix(head, []byte(protobufEnvelope)); ok && strings.Contains(mediaType, "protobuf") {
		meta := field(field(raw, 2), 1)
		return ListHead{RV: string(field(meta, 2)), Continue: len(field(meta, 3)) > 0}
	}
	at := bytes.Index(head, []byte(`"metadata":`))
	if at < 0 {
		return list
	}
	var meta metav1.ListMeta
	if json.NewDecoder(bytes.NewReader(head[at+len(`"metadata":`):])).Decode(&meta) != nil {
		return list
	}
	return ListHead{RV: meta.ResourceVersion, Continue: meta.Continue != ""}
}

// field returns the first field of that number in a message, or what has come of it; nil if there is none.
func field(message []byte, wanted protowire.Number) []byte {
	for len(message) > 0 {
		num, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return nil
		}
		message = message[n:]
		if kind == protowire.BytesType && num == wanted {
			size, n := protowire.ConsumeVarint(message)
			if n < 0 {
				return nil
			}
			return message[n:][:min(size, uint64(len(message)-n))]
		}
		n = protowire.ConsumeFieldValue(num, kind, message)
		if n < 0 {
			return nil
		}
		message = message[n:]
	}
	return nil
}

// number returns the first number of that field in a message; 0 if there is none.
func number(message []byte, wanted protowire.Number) uint64 {
	for len(message) > 0 {
		num, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return 0
		}
		message = message[n:]
		if kind == protowire.VarintType && num == wanted {
			value, _ := protowire.ConsumeVarint(message)
			return value
		}
		if n = protowire.ConsumeFieldValue(num, kind, message); n < 0 {
			return 0
		}
		message = message[n:]
	}
	return 0
}
