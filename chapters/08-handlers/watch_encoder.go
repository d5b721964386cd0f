package handlers

import (
	"bytes"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"listwatch/internal/kube/negotiation"
	"listwatch/internal/kube/scheme"
)

// watchEncoder writes events as frames. A frame is one line of JSON:
//
//	{"type":"ADDED","object":{"kind":"Pod",...}}
//
// A frame needs no delimiter, because the end of a JSON object is known. One goroutine uses the encoder.
//
// An object that keeps its encodings (runtime.CacheableObject) caches the whole frame under an identifier for
// everything that the frame depends on: form, conversion and event type. The first watcher encodes, the others copy.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/response.go: watchEncoder
// Differs: upstream has an encoder for the object and one for the event around it; the latter is two constants here.
type watchEncoder struct {
	// Set by newWatchEncoder, never changed.
	scope *Scope
	media negotiation.MediaType

	// Owned by Encode.
	options    *metav1.TableOptions
	frame      bytes.Buffer
	eventType  watch.EventType                        // of the current event
	out        runtime.Splice                         // the frame: encoded here, or shared with other watchers
	encode     func(runtime.Object, io.Writer) error  // doEncode, bound once and not for each event
	identifier map[watch.EventType]runtime.Identifier // emptied when options change
}

func newWatchEncoder(s *Scope, media negotiation.MediaType, options *metav1.TableOptions) *watchEncoder {
	e := &watchEncoder{scope: s, media: media, options: options, out: runtime.NewSpliceBuffer(),
		identifier: map[watch.EventType]runtime.Identifier{}}
	e.encode = e.doEncode
	return e
}

// Encode writes the frame of one event in a single Write, and returns its length.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/response.go: (*watchEncoder).Encode
func (e *watchEncoder) Encode(event watch.Event, w io.Writer) (int, error) {
	e.eventType = event.Type
	defer e.out.Reset()
	var err error
	if cacheable, ok := event.Object.(runtime.CacheableObject); ok {
		err = cacheable.CacheEncode(e.identifierOf(event.Type), e.encode, e.out)
	} else {
		err = e.encode(event.Object, e.out)
	}
	if err != nil {
		return 0, err
	}
	e.dropHeaders(event.Object)
	return w.Write(e.out.Bytes())
}

// doEncode writes the frame of one object. An object that cannot be converted to the negotiated
// kind ends the stream.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/response.go: (*watchEncoder).doEncode
// Differs: when the transformation to a Table fails, upstream logs the error and sends the
// plain object.
func (e *watchEncoder) doEncode(obj runtime.Object, w io.Writer) error {
	e.frame.Reset()
	fmt.Fprintf(&e.frame, `{"type":%q,"object":`, e.eventType)
	out, err := negotiation.Transform(obj, e.options, e.media.Convert, e.scope.rows)
	if err == nil {
		out, err = scheme.WithKind(out)
	}
	if err == nil {
		err = e.media.Encoder.Encode(out, &e.frame)
	}
	if err != nil {
		return fmt.Errorf("unable to encode watch object %T: %w", obj, err)
	}
	e.frame.Truncate(len(bytes.TrimRight(e.frame.Bytes(), "\n")))
	e.frame.WriteString("}\n")
	_, err = w.Write(e.frame.Bytes())
	return err
}

// dropHeaders leaves the column definitions out of every table after the first. [Scope.rows]
// reads NoHeaders; a bookmark is a row, too, and counts as the first. A frame with the columns
// differs from a frame without, so the identifiers change as well.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/response.go: (*watchEncoder).doEncode
// Differs: upstream sets NoHeaders while it encodes. A watcher whose first event was encoded
// for another before gets the columns a second time, with its second event.
func (e *watchEncoder) dropHeaders(obj runtime.Object) {
	if e.options == nil || e.options.NoHeaders {
		return
	}
	if _, ok := obj.(*metav1.Status); ok {
		return // the object is no table
	}
	e.options.NoHeaders = true
	clear(e.identifier)
}

// identifierOf identifies everything that a frame depends on besides the object.
func (e *watchEncoder) identifierOf(eventType watch.EventType) runtime.Identifier {
	if id, ok := e.identifier[eventType]; ok {
		return id
	}
	id := fmt.Sprintf("watch %s %s", eventType, e.media.Encoder.Identifier())
	if e.media.Convert != nil {
		id += " as " + e.media.Convert.String()
	}
	if e.options != nil {
		id += fmt.Sprintf(" %+v", *e.options)
	}
	e.identifier[eventType] = runtime.Identifier(id)
	return runtime.Identifier(id)
}
