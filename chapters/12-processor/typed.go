package processor

import deltafifo "listwatch/chapters/10-deltafifo"

// Object is what a typed handler needs of its type. Every API type has it. It is comparable so that the absence of an
// object, a nil pointer, can be told.
//
// Upstream: k8s.io/client-go/tools/cache/controller.go: Object
type Object interface {
	comparable
	GetName() string
	GetNamespace() string
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
	var none T
	switch {
	case d.FinalStateUnknown != nil:
		return d.FinalStateUnknown.Key
	case d.OptionalObj == none:
		return ""
	case d.OptionalObj.GetNamespace() == "":
		return d.OptionalObj.GetName()
	default:
		return d.OptionalObj.GetNamespace() + "/" + d.OptionalObj.GetName()
	}
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

// OnAdd implements [ResourceEventHandler].
func (t typedResourceEventHandler[T]) OnAdd(obj any, isInInitialList bool) {
	t.handler.OnAdd(obj.(T), isInInitialList)
}

// OnUpdate implements [ResourceEventHandler].
func (t typedResourceEventHandler[T]) OnUpdate(old, obj any) {
	t.handler.OnUpdate(old.(T), obj.(T))
}

// OnDelete implements [ResourceEventHandler].
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
