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
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// MaxEvent is how long a frame of a watch may be, in bytes, for its object to be read. Longer ones are only
	// counted.
	MaxEvent = 256 << 10
	// HeadSize is how many bytes of a body [ReadVersion] needs: a list says its version before its items, an object
	// before its spec, though perhaps behind the fields that its managers own.
	HeadSize = 16 << 10

	protobufEnvelope = "k8s\x00" // before every object in Kubernetes' protobuf

	// What an [Event] keeps of texts, in bytes. A name has up to 253, a namespace 63.
	maxType, maxVersion, maxKey = 16, 64, 320
)

// Event is what one frame of a watch says, without its object. Its texts are short, however long they were in the
// frame.
type Event struct {
	Type       string `json:"type"` // "ADDED", …; "" if the frame could not be read
	Key        string `json:"key"`  // namespace/name
	RV         string `json:"rv"`
	Code       int    `json:"code,omitempty"`       // of an ERROR's Status
	InitialEnd bool   `json:"initialEnd,omitempty"` // the bookmark that ends a watch-list's first state
	Size       int    `json:"size"`                 // bytes of the frame
}

// Events reads the body of a watch's answer, in pieces of any size: lines of JSON, or protobuf with lengths before
// them. It keeps at most MaxEvent bytes, and belongs to one goroutine.
type Events struct {
	protobuf bool // set by NewEvents, never changed

	frame  []byte // the beginning of the frame that is not complete, up to MaxEvent
	size   int    // of that frame so far
	length int    // of that frame in all, if it is protobuf; 0: its length has not come
}

// NewEvents returns a reader of bodies of that media type; "" is JSON.
func NewEvents(mediaType string) *Events {
	return &Events{protobuf: strings.Contains(mediaType, "protobuf")}
}

// Read returns the events that p completes. It does not keep p.
func (e *Events) Read(p []byte) (events []Event) {
	for len(p) > 0 {
		n, complete := e.next(p)
		e.size += n
		e.frame = append(e.frame, p[:min(n, MaxEvent-len(e.frame))]...)
		p = p[n:]
		switch {
		case complete:
			events = append(events, e.event())
			e.frame, e.size, e.length = nil, 0, 0
		case e.protobuf && e.size == lengthSize:
			e.length = lengthSize + int(binary.BigEndian.Uint32(e.frame))
		}
	}
	return events
}

const lengthSize = 4 // bytes before a frame of protobuf

// next returns how many bytes of p belong to what is being read, and whether they complete a frame.
func (e *Events) next(p []byte) (n int, complete bool) {
	switch {
	case e.protobuf && e.length == 0:
		return min(lengthSize-e.size, len(p)), false
	case e.protobuf:
		return min(e.length-e.size, len(p)), e.length-e.size <= len(p)
	}
	if at := bytes.IndexByte(p, '\n'); at >= 0 {
		return at + 1, true
	}
	return len(p), false
}

func (e *Events) event() Event {
	event := Event{Size: e.size}
	switch {
	case e.size > MaxEvent:
	case e.protobuf:
		event.readProtobuf(e.frame[lengthSize:])
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
	e.Code = read.Object.Code
	e.set(read.Type, meta.Namespace, meta.Name, meta.ResourceVersion, meta.Annotations)
}

// readProtobuf reads a WatchEvent. Its object is an Unknown within an envelope. The metadata of every object is its
// field 1, as that of a PartialObjectMetadata.
func (e *Event) readProtobuf(frame []byte) {
	var read metav1.WatchEvent
	var object runtime.Unknown
	if read.Unmarshal(frame) != nil || object.Unmarshal(bytes.TrimPrefix(read.Object.Raw,
		[]byte(protobufEnvelope))) != nil {
		return
	}
	if object.Kind == "Status" {
		var status metav1.Status
		if status.Unmarshal(object.Raw) == nil {
			e.Type, e.Code = Cut(read.Type, maxType), int(status.Code)
		}
		return
	}
	var partial metav1.PartialObjectMetadata
	if partial.Unmarshal(object.Raw) == nil {
		e.set(read.Type, partial.Namespace, partial.Name, partial.ResourceVersion, partial.Annotations)
	}
}

func (e *Event) set(kind, namespace, name, rv string, annotations map[string]string) {
	e.Type, e.RV, e.Key = Cut(kind, maxType), Cut(rv, maxVersion), Cut(strings.TrimPrefix(namespace+"/"+name, "/"),
		maxKey)
	e.InitialEnd = kind == "BOOKMARK" && annotations[metav1.InitialEventsAnnotationKey] == "true"
}

// Cut returns the first n bytes of a text, without the rest of it in memory.
func Cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(strings.Clone(text[:n]), "")
}

// ReadVersion reads the beginning of the body of a list or an object, up to HeadSize bytes of it, and returns the
// version that it says of itself; "" if that has not come.
func ReadVersion(head []byte, mediaType, encoding string, list bool) string {
	if encoding == "gzip" {
		packed, err := gzip.NewReader(bytes.NewReader(head))
		if err != nil {
			return ""
		}
		head, _ = io.ReadAll(io.LimitReader(packed, HeadSize)) // it is cut off: what has come is enough
	}
	if raw, ok := bytes.CutPrefix(head, []byte(protobufEnvelope)); ok && strings.Contains(mediaType, "protobuf") {
		version := protowire.Number(6) // of an ObjectMeta
		if list {
			version = 2
		}
		return Cut(string(field(raw, 2, 1, version)), maxVersion) // within the Unknown, the object's metadata
	}
	_, meta, _ := bytes.Cut(head, []byte(`"metadata":`))
	decoder := json.NewDecoder(bytes.NewReader(meta))
	_, _ = decoder.Token() // the bracket, or what no field follows
	for {
		name, err := decoder.Token()
		var value any
		if _, isName := name.(string); err != nil || !isName || decoder.Decode(&value) != nil {
			return ""
		}
		if text, _ := value.(string); name == "resourceVersion" {
			return Cut(text, maxVersion)
		}
	}
}

// field returns the first field of each number in the one before it, from the message on, or what has come of it; nil
// if there is none.
func field(message []byte, numbers ...protowire.Number) []byte {
	for len(message) > 0 {
		num, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return nil
		}
		message = message[n:]
		if kind == protowire.BytesType && num == numbers[0] {
			size, n := protowire.ConsumeVarint(message)
			if n < 0 {
				return nil
			}
			message = message[n:][:min(size, uint64(len(message)-n))]
			if numbers = numbers[1:]; len(numbers) == 0 {
				return message
			}
			continue
		}
		if n = protowire.ConsumeFieldValue(num, kind, message); n < 0 {
			return nil
		}
		message = message[n:]
	}
	return nil
}
