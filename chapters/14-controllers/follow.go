package controllers

import (
	"fmt"
	"reflect"

	processor "listwatch/chapters/12-processor"
	informer "listwatch/chapters/13-informer"
)

// changes is a handler for whoever only wants to know which object has changed: old is nil if it
// has come, obj if it is gone. An update without a new version is left out.
//
// Upstream: k8s.io/client-go/tools/cache/controller.go: ResourceEventHandlerFuncs
type changes[T processor.Object] func(old, obj T)

// OnAdd is called by the informer for an object that has come into view.
func (f changes[T]) OnAdd(obj T, _ bool) {
	var none T
	f(none, obj)
}

// OnUpdate is called for one that has changed, or that is only shown again.
func (f changes[T]) OnUpdate(old, obj T) {
	if old.GetResourceVersion() != obj.GetResourceVersion() {
		f(old, obj)
	}
}

// OnDelete is called for one that is gone. It may be that nothing but its key is known.
func (f changes[T]) OnDelete(deleted processor.DeletedObject[T]) {
	var none T
	if !reflect.ValueOf(deleted.OptionalObj).IsNil() {
		f(deleted.OptionalObj, none)
	}
}

// follow adds a handler to an informer, and to synced what says that it was told what there is.
// The handler is one of many in one process, and reports nothing. The error is that the informer
// has stopped.
func follow[T processor.Object](synced *[]<-chan struct{}, from informer.TypedInformer[T], f changes[T]) error {
	registration, err := from.AddTypedEventHandler(f, informer.HandlerOptions{Quiet: true})
	if err != nil {
		return fmt.Errorf("follow %T: %w", f, err)
	}
	*synced = append(*synced, registration.HasSyncedChecker())
	return nil
}
