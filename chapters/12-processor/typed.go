package processor

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	reflector "listwatch/chapters/03-reflector"
	deltafifo "listwatch/chapters/10-deltafifo"
)

// Object is what every API type is.
//
// Upstream: k8s.io/client-go/tools/cache/controller.go: Object
type Object interface {
	metav1.Object
	runtime.Object
}

// TypedResourceEventHandler is a [ResourceEventHandler] without type assertions and without tombstones.
//
// Upstream: k8s.io/client-go/tools/cache/controller.go: TypedResourceEventHandler
type TypedResourceEventHandler[T Object] interface {
	OnAdd(obj T, isInInitialList bool)
	OnUpdate(old, obj T)
	OnDelete(deleted DeletedObject[T])
}

// DeletedObject is what is known of a deletion.
//
// Upstream: k8s.io/client-go/tools/cache/controller.go: DeletedObject
// Differs: no GetName and GetNamespace beside GetKey.
type DeletedObject[T Object] struct {
	// OptionalObj is the last state, or an older one, or nothing.
	OptionalObj T
	// FinalStateUnknown is set if the deletion was missed.
	FinalStateUnknown *deltafifo.DeletedFinalStateUnknown
}

// GetKey returns the key of what was deleted, which is always known.
//
// Upstream: k8s.io/client-go/tools/cache/controller.go: DeletedObject.GetKey
func (d DeletedObject[T]) GetKey() string {
	if d.FinalStateUnknown != nil {
		return d.FinalStateUnknown.Key
	}
	key, _ := reflector.MetaNamespaceKeyFunc(d.OptionalObj) // every T has one
	return key
}

// Untyped returns h as a [ResourceEventHandler]. It panics when it is given anything but a T.
//
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go: typedResourceEventHandler
func Untyped[T Object](h TypedResourceEventHandler[T]) ResourceEventHandler {
	return typedResourceEventHandler[T]{handler: h}
}

type typedResourceEventHandler[T Object] struct {
	handler TypedResourceEventHandler[T]
}

func (t typedResourceEventHandler[T]) OnAdd(obj any, isInInitialList bool) {
	t.handler.OnAdd(obj.(T), isInInitialList)
}

func (t typedResourceEventHandler[T]) OnUpdate(old, obj any) {
	t.handler.OnUpdate(old.(T), obj.(T))
}

func (t typedResourceEventHandler[T]) OnDelete(obj any) {
	tombstone, unknown := obj.(deltafifo.DeletedFinalStateUnknown)
	if !unknown {
		t.handler.OnDelete(DeletedObject[T]{OptionalObj: obj.(T)})
		return
	}
	deleted := DeletedObject[T]{FinalStateUnknown: &tombstone}
	if tombstone.Obj != nil {
		deleted.OptionalObj = tombstone.Obj.(T)
	}
	t.handler.OnDelete(deleted)
}
