package processor

// ResourceEventHandler handles the changes of one resource's objects. A goroutine of this handler's own makes the
// calls, one at a time, in the order in which the store changed; between handlers there is no order. Objects are shared
// by all handlers and listers: a handler must not write to them. It may block: what happens meanwhile waits in memory,
// without a limit. It runs under no lock, so it may read the store and remove itself. A panic ends the program.
// After RemoveEventHandler the handler gets at most one more call (client-go: several), and what waits is dropped. No
// call follows once [Registration.ShutdownChan] is closed (client-go: ShutDownEventHandler waits for that).
//
// Upstream: k8s.io/client-go/tools/cache/controller.go: ResourceEventHandler
type ResourceEventHandler interface {
	// OnAdd gets an object that is new to this handler. isInInitialList is true for those that were
	// there when the informer, or the handler, began.
	OnAdd(obj any, isInInitialList bool)
	// OnUpdate gets a new state. old is the last one that this handler got. Both may be the same: after a relist or
	// a resync nothing needs to have changed.
	OnUpdate(old, obj any)
	// OnDelete gets the last state that matched, with the version of its deletion; or, if the deletion was missed, a
	// [deltafifo.DeletedFinalStateUnknown], by value, whose Obj may be an older state or nil.
	OnDelete(obj any)
}

// ResourceEventHandlerFuncs makes a handler of functions, any of which may be nil. None of them gets isInInitialList.
//
// Upstream: k8s.io/client-go/tools/cache/controller.go: ResourceEventHandlerFuncs
// Differs: there is no ResourceEventHandlerDetailedFuncs, whose AddFunc gets isInInitialList.
type ResourceEventHandlerFuncs struct {
	AddFunc    func(obj any)
	UpdateFunc func(old, obj any)
	DeleteFunc func(obj any)
}

// OnAdd implements [ResourceEventHandler].
func (f ResourceEventHandlerFuncs) OnAdd(obj any, _ bool) {
	if f.AddFunc != nil {
		f.AddFunc(obj)
	}
}

// OnUpdate implements [ResourceEventHandler].
func (f ResourceEventHandlerFuncs) OnUpdate(old, obj any) {
	if f.UpdateFunc != nil {
		f.UpdateFunc(old, obj)
	}
}

// OnDelete implements [ResourceEventHandler].
func (f ResourceEventHandlerFuncs) OnDelete(obj any) {
	if f.DeleteFunc != nil {
		f.DeleteFunc(obj)
	}
}
