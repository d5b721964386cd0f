package cachewatcher

import (
	"bytes"
	"errors"
	"io"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	watchcache "listwatch/chapters/04-watchcache"
)

// cachingObject is an object that remembers how it was encoded, so that a thousand watchers who
// are sent it in the same form have it encoded once. Nothing is encoded before a WatchServer
// asks, and nothing is kept for longer than the object is on its way: the ring holds the plain
// object.
//
//	ShareEncodings ─┬─► w1.input ─► WatchServer ─► CacheEncode("JSON, ADDED") ── encodes
//	 one            ├─► w2.input ─► WatchServer ─► CacheEncode("JSON, ADDED") ── copies bytes
//	 cachingObject  └─► w3.input ─► WatchServer ─► CacheEncode("Table, ADDED") ─ encodes
//
// In every other respect it is the object: its metadata are the object's, a copy of it is a
// copy of the object, without encodings. A caller that needs the object as its own type asks
// for [cachingObject.GetObject]. As with every object that comes out of a cache, callers must
// not write to it.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/caching_object.go: cachingObject
// Differs: upstream's can be written to, and then copies the object and drops the encodings;
// here the one thing that was ever written, the version of a deletion, is in the object
// already. The object is encoded as it is, upstream encodes a copy; and a copy of ours is a
// plain object, upstream's a cachingObject again.
type cachingObject struct {
	metaRuntimeInterface // shared with the cache, never written to

	// Guards the field below; a leaf, and not held while anything is encoded.
	mu        sync.Mutex
	encodings []*encoding // one for each form in which the object is wanted, which are few
}

// metaRuntimeInterface is an object with metadata.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/caching_object.go: metaRuntimeInterface
type metaRuntimeInterface interface {
	runtime.Object
	metav1.Object
}

var _ runtime.CacheableObject = (*cachingObject)(nil)

// encoding is one form of the object.
type encoding struct {
	// Set by getEncoding, never changed.
	id runtime.Identifier

	once sync.Once // guards the fields below: a goroutine that comes while another encodes waits for it
	raw  []byte
	err  error
}

// errEncodingPanicked is what is left of an encoding that did not return.
var errEncodingPanicked = errors.New("encode object: an earlier attempt panicked")

// CacheEncode writes the object as encode does, and calls encode only if no caller has done so
// for id before. What was written is kept, and so is an error: the same object would meet it
// again.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/caching_object.go: (*cachingObject).CacheEncode
func (o *cachingObject) CacheEncode(
	id runtime.Identifier, encode func(runtime.Object, io.Writer) error, w io.Writer,
) error {
	e := o.getEncoding(id)
	e.once.Do(func() { e.fill(o.metaRuntimeInterface, encode) })
	if e.err != nil {
		return e.err
	}
	if splice, ok := w.(runtime.Splice); ok {
		splice.Splice(e.raw) // takes the bytes without copying them
		return nil
	}
	_, err := w.Write(e.raw)
	return err
}

func (e *encoding) fill(obj runtime.Object, encode func(runtime.Object, io.Writer) error) {
	e.err = errEncodingPanicked // until it is known better: a once is done after a panic, too
	var buffer bytes.Buffer
	e.err = encode(obj, &buffer)
	e.raw = buffer.Bytes()
}

// getEncoding returns the encoding for id, which may be empty yet, and adds it if it is not there.
func (o *cachingObject) getEncoding(id runtime.Identifier) *encoding {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.encodings {
		if e.id == id {
			return e
		}
	}
	e := &encoding{id: id}
	o.encodings = append(o.encodings, e)
	return e
}

// GetObject returns a copy of the object, which belongs to the caller.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/caching_object.go: (*cachingObject).GetObject
func (o *cachingObject) GetObject() runtime.Object { return o.DeepCopyObject() }

// ShareEncodings returns a copy of event in which the object that watchers will be sent is
// wrapped in a [cachingObject]. The event itself stays in the ring as it is. The previous
// object of a deletion carries the deletion's version already: [watchcache.WatchCache] has
// stamped it. When an object merely stops matching, its watcher stamps a copy for itself; that
// is rare, and not shared.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/cacher.go: setCachingObjects
func ShareEncodings(event *watchcache.Event) *watchcache.Event {
	shared := *event
	object := &shared.Object
	if event.Type == watch.Deleted {
		object = &shared.PrevObject
	}
	if plain, ok := (*object).(metaRuntimeInterface); ok {
		*object = &cachingObject{metaRuntimeInterface: plain}
	}
	return &shared
}
