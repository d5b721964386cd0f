package lens

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// MaxEvent is the longest frame of a watch, in bytes, that is parsed. Longer frames are only counted.
	MaxEvent = 256 << 10
	// HeadSize is the number of bytes in which [ReadVersion] looks for a body's version. A list has it before its
	// items, an object before its spec; a custom resource has it after its managed fields, which may be longer.
	HeadSize = 16 << 10

	// Maximum numbers of bytes of the texts in an [Event]. A name has up to 253 bytes, a namespace 63.
	maxType, maxVersion, maxKey = 16, 64, 320
)

// Event is one frame of a watch, without its object. Long texts are cut.
type Event struct {
	Type       string // "ADDED", …; "" if the frame could not be read
	Key        string // namespace/name, or the name alone
	RV         string
	Code       int  // the code of an ERROR's Status
	InitialEnd bool // whether it is the bookmark that ends a watch-list's initial state
	Size       int  // bytes in the frame
}

// Events parses the body of a watch's response: lines of JSON, which arrive in pieces of any size. It buffers at most
// MaxEvent bytes. Only one goroutine may use it.
type Events struct {
	frame []byte // the beginning of the incomplete frame, up to MaxEvent
	size  int    // bytes of the incomplete frame so far
}

// Read returns the events of the frames that p completes. It does not retain p.
func (e *Events) Read(p []byte) (events []Event) {
	for len(p) > 0 {
		line, rest, complete := bytes.Cut(p, []byte("\n"))
		if complete {
			line = p[:len(line)+1]
		}
		e.size += len(line)
		e.frame = append(e.frame, line[:min(len(line), MaxEvent-len(e.frame))]...)
		p = rest
		if !complete {
			break
		}
		event := Event{Size: e.size}
		if e.size <= MaxEvent {
			event.read(e.frame)
		}
		events = append(events, event)
		e.frame, e.size = nil, 0
	}
	return events
}

// object has the parsed fields of a watched object. A Table has its objects in rows; a Status has a code.
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

func (e *Event) read(frame []byte) {
	var read struct {
		Type   string `json:"type"`
		Object object `json:"object"`
	}
	var other *json.UnmarshalTypeError // a custom resource may have a "code" of another type
	if err := json.Unmarshal(frame, &read); err != nil && !errors.As(err, &other) {
		return
	}
	meta := read.Object.Metadata
	if len(read.Object.Rows) > 0 {
		meta = read.Object.Rows[0].Object.Metadata
	}
	e.Type, e.Code, e.RV = cut(read.Type, maxType), read.Object.Code, cut(meta.ResourceVersion, maxVersion)
	e.Key = cut(strings.TrimPrefix(meta.Namespace+"/"+meta.Name, "/"), maxKey)
	e.InitialEnd = read.Type == "BOOKMARK" && meta.Annotations[metav1.InitialEventsAnnotationKey] == "true"
}

// cut returns a text or, if the text is longer than n bytes, a copy of the whole runes among its first n bytes.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(strings.Clone(text[:n]), "")
}

// ReadVersion returns the version of a list or an object from the first HeadSize bytes of its JSON, which may be
// gzipped; "" if it finds none.
func ReadVersion(head []byte, encoding string) string {
	if encoding == "gzip" {
		packed, err := gzip.NewReader(bytes.NewReader(head))
		if err != nil {
			return ""
		}
		head, _ = io.ReadAll(io.LimitReader(packed, HeadSize)) // on an error, head ends in the middle of the body
	}
	_, meta, _ := bytes.Cut(head, []byte(`"metadata":`))
	decoder := json.NewDecoder(bytes.NewReader(meta))
	_, _ = decoder.Token() // reads the opening brace, or a token that no field follows
	for {
		name, err := decoder.Token()
		var value any
		if _, isName := name.(string); err != nil || !isName || decoder.Decode(&value) != nil {
			return ""
		}
		if text, _ := value.(string); name == "resourceVersion" {
			return cut(text, maxVersion)
		}
	}
}
