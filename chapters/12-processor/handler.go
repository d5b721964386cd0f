package processor

// ResourceEventHandler is told what happened to the objects of one resource. The calls come one at a time, in the
// order in which the store changed. Objects are shared by all handlers and listers: a handler must not write to them.
// It may take as long as it likes; what happens meanwhile waits for it in memory.
//
// Upstream: k8s.io/client-go/tools/cache/controller.go: ResourceEventHandler
type ResourceEventHandler interface {
	// OnAdd is told of an object that this handler has not been told of. isInInitialList is true for those that were
	// there when the informer, or the handler, began.
	OnAdd(obj any, isInInitialList bool)
	// OnUpdate is told of a new state. old is what this handler was told last. Both may be the same: after a relist or
	// a resync nothing needs to have changed.
	OnUpdate(old, obj any)
	// OnDelete is told of the last state that matched, or is given a [deltafifo.DeletedFinalStateUnknown] if the
	// deletion was missed.
	OnDelete(obj any)
}

// ResourceEventHandlerFuncs makes a handler of functions, any of which may be nil. They are not told of
// isInInitialList; a handler that needs it implements the interface.
//
// Upstream: k8s.io/client-go/tools/cache/controller.go: ResourceEventHandlerFuncs
// Differs: there is no ResourceEventHandlerDetailedFuncs, whose AddFunc is told.
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

// FilteringResourceEventHandler shows Handler only the objects that FilterFunc lets pass. To Handler an object that
// begins to pass is added, and one that ceases to pass is deleted: the same rule by which a watch cache makes ADDED and
// DELETED of an update. FilterFunc may be given a [deltafifo.DeletedFinalStateUnknown].
//
// Upstream: k8s.io/client-go/tools/cache/controller.go: FilteringResourceEventHandler
type FilteringResourceEventHandler struct {
	FilterFunc func(obj any) bool
	Handler    ResourceEventHandler
}

// OnAdd implements [ResourceEventHandler].
func (f FilteringResourceEventHandler) OnAdd(obj any, isInInitialList bool) {
	if f.FilterFunc(obj) {
		f.Handler.OnAdd(obj, isInInitialList)
	}
}

// OnUpdate implements [ResourceEventHandler].
func (f FilteringResourceEventHandler) OnUpdate(old, obj any) {
	passed, passes := f.FilterFunc(old), f.FilterFunc(obj)
	switch {
	case passed && passes:
		f.Handler.OnUpdate(old, obj)
	case passes:
		f.Handler.OnAdd(obj, false)
	case passed:
		f.Handler.OnDelete(old)
	}
}

// OnDelete implements [ResourceEventHandler].
func (f FilteringResourceEventHandler) OnDelete(obj any) {
	if f.FilterFunc(obj) {
		f.Handler.OnDelete(obj)
	}
}
