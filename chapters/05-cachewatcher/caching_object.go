package cachewatcher

import (
	"bytes"
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
	mu sync.Mutex
	// one for each form in which the object is wanted, which are few
	encodings map[runtime.Identifier]encoding
}

// metaRuntimeInterface is an object with metadata.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/caching_object.go: metaRuntimeInterface
type metaRuntimeInterface interface {
	runtime.Object
	metav1.Object
}

var _ runtime.CacheableObject = (*cachingObject)(nil)

// encoding returns one form of the object. Its first caller makes it, and a goroutine that comes
// meanwhile waits for it. If that panicked, so does every later call.
type encoding func() (raw []byte, err error)

// CacheEncode writes the object as encode does, and calls encode only if no caller has done so
// for id before. What was written is kept, and so is an error: the same object would meet it
// again.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/caching_object.go: (*cachingObject).CacheEncode
func (o *cachingObject) CacheEncode(
	id runtime.Identifier, encode func(runtime.Object, io.Writer) error, w io.Writer,
) error {
	raw, err := o.getEncoding(id, encode)()
	if err != nil {
		return err
	}
	if splice, ok := w.(runtime.Splice); ok {
		splice.Splice(raw) // takes the bytes without copying them
		return nil
	}
	_, err = w.Write(raw)
	return err
}

// getEncoding returns the encoding for id, and adds it, yet to be made by encode, if it is not there.
func (o *cachingObject) getEncoding(id runtime.Identifier, encode func(runtime.Object, io.Writer) error) encoding {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.encodings == nil {
		o.encodings = map[runtime.Identifier]encoding{}
	}
	if o.encodings[id] == nil {
		o.encodings[id] = sync.OnceValues(func() ([]byte, error) {
			var buffer bytes.Buffer
			err := encode(o.metaRuntimeInterface, &buffer)
			return buffer.Bytes(), err
		})
	}
	return o.encodings[id]
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
	shared := &struct { // one allocation
		event  watchcache.Event
		object cachingObject
	}{event: *event}
	object := &shared.event.Object
	if event.Type == watch.Deleted {
		object = &shared.event.PrevObject
	}
	if plain, ok := (*object).(metaRuntimeInterface); ok {
		shared.object.metaRuntimeInterface = plain
		*object = &shared.object
	}
	return &shared.event
}
