package sandbox

import (
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	processor "listwatch/chapters/12-processor"
	informer "listwatch/chapters/13-informer"
)

const (
	observer    = "observer" // the handler that is always there, and does nothing
	maxSeen     = 256        // of what it was told a handler remembers
	maxHandlers = 64
)

// Handlers holds the handlers that were added just to look. Each can be made slow: what happens meanwhile waits in its
// pending ring, and no other handler is held up.
//
// Only the sandbox's goroutine changes the list. To add a handler to the informer, and to remove it, may have to wait for
// the informer's locks, and is done elsewhere.
type Handlers struct {
	// Set by newHandlers, never changed.
	pods  informer.TypedInformer[*corev1.Pod]
	clock clock.WithTicker

	mu       sync.Mutex // guards the fields below; taken before a handler's
	handlers []*handler // in the order in which they were added
}

// handler is one of them: it does nothing, for as long as it was told to.
type handler struct {
	// Set by newHandler, never changed.
	name       string
	clock      clock.WithTicker
	registered chan struct{} // closed when the informer knows it, or has refused it; nothing is sent

	added processor.Registration // set before registered is closed; nil: the informer has refused it

	mu      sync.Mutex // guards the fields below; innermost
	delay   time.Duration
	changed chan struct{} // closed when delay is another; a new one with each delay
	seen    []string      // what it was told last: "DELETED default/a", with "?" behind if the deletion was inferred
}

var _ processor.TypedResourceEventHandler[*corev1.Pod] = (*handler)(nil)

func newHandlers(pods informer.TypedInformer[*corev1.Pod], clk clock.WithTicker) *Handlers {
	return &Handlers{pods: pods, clock: clk}
}

// check returns why there can be no handler of that name, nil if there can: 400, 409 or 429.
func (h *Handlers) check(name string) error {
	switch {
	case name == "" || len(name) > 32:
		return apierrors.NewBadRequest("a handler has a name of 1 to 32 characters")
	case h.find(name) != nil:
		return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "handlers"}, name)
	case len(h.all()) >= maxHandlers:
		return apierrors.NewTooManyRequests(fmt.Sprintf("there are %d handlers: remove one", maxHandlers), 0)
	}
	return nil
}

func (h *Handlers) newHandler(name string) *handler {
	return &handler{name: name, clock: h.clock, registered: make(chan struct{}), changed: make(chan struct{})}
}

// reserve puts a handler into the list.
func (h *Handlers) reserve(added *handler) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.handlers = append(h.handlers, added)
}

// register adds a handler that is in the list to the shared informer, whether that runs or not. The error is that it has
// stopped; then the handler is in the list no more.
func (h *Handlers) register(added *handler) error {
	defer close(added.registered)
	registration, err := h.pods.AddTypedEventHandler(added, informer.HandlerOptions{Name: added.name})
	if err != nil {
		h.take(added)
		return err
	}
	added.added = registration
	return nil
}

// take takes a handler out of the list. What it waits for does not matter any more.
func (h *Handlers) take(found *handler) {
	found.setDelay(0)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.handlers = slices.DeleteFunc(h.handlers, func(each *handler) bool { return each == found })
}

// unregister removes a handler from the informer, once it was added.
func (h *Handlers) unregister(found *handler) error {
	<-found.registered
	if found.added == nil {
		return nil
	}
	return h.pods.Informer().RemoveEventHandler(found.added)
}

// seen returns what a handler was told last, oldest first.
func (h *Handlers) seen(name string) []string {
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

// list returns the handlers in the order in which they were added.
func (h *Handlers) list() []HandlerInfo {
	infos := []HandlerInfo{}
	for _, each := range h.all() {
		infos = append(infos, HandlerInfo{Name: each.name, Delay: each.currentDelay()})
	}
	return infos
}

func (h *Handlers) all() []*handler {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.handlers)
}

// end lets every handler return at once, and those that come later: their informer is about to wait for them.
func (h *Handlers) end() {
	for _, each := range h.all() {
		each.setDelay(0)
	}
}

func (h *Handlers) find(name string) *handler {
	for _, each := range h.all() {
		if each.name == name {
			return each
		}
	}
	return nil
}

// OnAdd implements [processor.TypedResourceEventHandler].
func (h *handler) OnAdd(pod *corev1.Pod, _ bool) { h.told("ADDED " + keyOf(pod)) }

// OnUpdate implements [processor.TypedResourceEventHandler].
func (h *handler) OnUpdate(_, pod *corev1.Pod) { h.told("MODIFIED " + keyOf(pod)) }

// OnDelete implements [processor.TypedResourceEventHandler].
func (h *handler) OnDelete(deleted processor.DeletedObject[*corev1.Pod]) {
	text := "DELETED " + deleted.GetKey()
	if deleted.FinalStateUnknown != nil {
		text += "?"
	}
	h.told(text)
}

func keyOf(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

func (h *handler) told(text string) {
	h.remember(text)
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

func (h *handler) remember(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.seen) == maxSeen {
		h.seen = slices.Delete(h.seen, 0, 1)
	}
	h.seen = append(h.seen, text)
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
