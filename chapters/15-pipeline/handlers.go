package pipeline

import (
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	deltafifo "listwatch/chapters/10-deltafifo"
	processor "listwatch/chapters/12-processor"
	informer "listwatch/chapters/13-informer"
)

// Handlers holds the handlers that somebody added just to look. Each can be made slow: what happens meanwhile waits in
// its pending ring, and nobody else notices.
//
// Its methods may be called from any goroutine.
type Handlers struct {
	// Set by newHandlers, never changed.
	informer *informer.SharedIndexInformer
	clock    clock.WithTicker

	mu       sync.Mutex // guards the field below; innermost
	handlers []*handler
	ended    bool
}

// handler is one of them: it does nothing, for as long as it was told to.
type handler struct {
	name  string
	clock clock.WithTicker
	added processor.Registration

	mu      sync.Mutex // guards the fields below; innermost
	delay   time.Duration
	changed chan struct{} // closed when delay is another; a new one with each delay
	seen    []string      // what it was told last: "DELETED default/a", with "?" behind if nobody saw the deletion
}

// maxSeen is how much of what it was told a handler remembers.
const maxSeen = 256

var _ processor.ResourceEventHandler = (*handler)(nil)

func newHandlers(shared *informer.SharedIndexInformer, clk clock.WithTicker) *Handlers {
	return &Handlers{informer: shared, clock: clk}
}

// Add adds a handler to the shared informer, at once, whether it runs or not. The error is 409 if there is one of that
// name.
func (h *Handlers) Add(name string) error {
	if h.find(name) != nil {
		return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "handlers"}, name)
	}
	added := &handler{name: name, clock: h.clock, changed: make(chan struct{})}
	registration, err := h.informer.AddEventHandlerWithOptions(added, informer.HandlerOptions{Name: name})
	if err != nil {
		return err
	}
	added.added = registration
	h.mu.Lock()
	defer h.mu.Unlock()
	h.handlers = append(h.handlers, added)
	if h.ended {
		added.setDelay(0)
	}
	return nil
}

// Remove removes a handler. The error is 404 if there is none of that name.
func (h *Handlers) Remove(name string) error {
	found := h.take(name)
	if found == nil {
		return h.unknown(name)
	}
	found.setDelay(0) // what it waits for does not matter any more
	return h.informer.RemoveEventHandler(found.added)
}

// SetDelay says how long a handler takes for each call, from now on and also for the one it is in. The error is 404.
func (h *Handlers) SetDelay(name string, delay time.Duration) error {
	found := h.find(name)
	if found == nil {
		return h.unknown(name)
	}
	found.setDelay(delay)
	return nil
}

// Seen returns what a handler was told last, oldest first.
func (h *Handlers) Seen(name string) []string {
	found := h.find(name)
	if found == nil {
		return nil
	}
	found.mu.Lock()
	defer found.mu.Unlock()
	return slices.Clone(found.seen)
}

// HandlerInfo describes one handler.
type HandlerInfo struct {
	Name  string        `json:"name"`
	Delay time.Duration `json:"delay"` // of each call
}

// List returns the handlers in the order in which they were added.
func (h *Handlers) List() []HandlerInfo {
	h.mu.Lock()
	defer h.mu.Unlock()
	infos := make([]HandlerInfo, 0, len(h.handlers))
	for _, each := range h.handlers {
		infos = append(infos, HandlerInfo{Name: each.name, Delay: each.currentDelay()})
	}
	return infos
}

// end lets every handler return at once: their informer is about to wait for them.
func (h *Handlers) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	for _, each := range h.handlers {
		each.setDelay(0)
	}
}

func (h *Handlers) unknown(name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: "handlers"}, name)
}

func (h *Handlers) find(name string) *handler {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, each := range h.handlers {
		if each.name == name {
			return each
		}
	}
	return nil
}

// take is find, and takes it out.
func (h *Handlers) take(name string) *handler {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.IndexFunc(h.handlers, func(each *handler) bool { return each.name == name })
	if i < 0 {
		return nil
	}
	found := h.handlers[i]
	h.handlers = slices.Delete(h.handlers, i, i+1)
	return found
}

// OnAdd implements [processor.ResourceEventHandler].
func (h *handler) OnAdd(obj any, _ bool) { h.told("ADDED", obj) }

// OnUpdate implements [processor.ResourceEventHandler].
func (h *handler) OnUpdate(_, obj any) { h.told("MODIFIED", obj) }

// OnDelete implements [processor.ResourceEventHandler].
func (h *handler) OnDelete(obj any) { h.told("DELETED", obj) }

func (h *handler) told(typ string, obj any) {
	h.remember(typ, obj)
	for {
		delay, changed := h.wait()
		if delay <= 0 {
			return
		}
		timer := h.clock.NewTimer(delay)
		select {
		case <-timer.C():
			return
		case <-changed:
			timer.Stop()
		}
	}
}

func (h *handler) remember(typ string, obj any) {
	key, _ := deltafifo.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if _, unknown := obj.(deltafifo.DeletedFinalStateUnknown); unknown {
		key += "?"
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.seen) == maxSeen {
		h.seen = slices.Delete(h.seen, 0, 1)
	}
	h.seen = append(h.seen, typ+" "+key)
}

func (h *handler) wait() (delay time.Duration, changed <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.delay, h.changed
}

func (h *handler) currentDelay() time.Duration {
	delay, _ := h.wait()
	return delay
}

func (h *handler) setDelay(delay time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.delay = delay
	close(h.changed)
	h.changed = make(chan struct{})
}
