package sandbox

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	processor "listwatch/chapters/12-processor"
	informer "listwatch/chapters/13-informer"
)

const (
	observer    = "observer" // the handler that New adds
	maxHandlers = 64
)

// handlers holds the observer, and the handlers that viewers have added to the shared informer. A viewer can make a
// handler slow: its notifications then wait in its pending ring, and no other handler waits.
//
// The list changes in New, in the command that has the machine to itself, and after the informer has refused a handler.
// Adding a handler to the informer, or removing one, may wait for the informer's locks, so a command first calls begun.
type handlers struct {
	*Config // shared with the Sandbox; never changed

	mu   sync.Mutex // guards list; innermost
	list []*handler // oldest first
}

// handler is an event handler that waits for its pace's delay at each notification, and does nothing else.
type handler struct {
	// Set by reserve, never changed.
	in   *handlers
	name string
	// Sent once, by register; buffered. It carries nil if the informer has refused the handler.
	registered chan processor.Registration

	pace atomic.Pointer[pace] // replaced by setDelay
}

// pace is a handler's delay until changed is closed.
type pace struct {
	delay   time.Duration // for each notification
	changed chan struct{} // closed by setDelay, never sent on
}

// check returns an error, 400, 409 or 429, if no handler of that name can be added.
func (h *handlers) check(name string) error {
	switch {
	case name == "" || len(name) > 32:
		return badRequest("a handler has a name of 1 to 32 characters")
	case h.find(name) != nil:
		return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "handlers"}, name)
	case len(h.all()) >= maxHandlers:
		return apierrors.NewTooManyRequests(fmt.Sprintf("there are %d handlers: remove one", maxHandlers), 0)
	}
	return nil
}

// reserve adds a new handler to the list, so that its name is taken. The caller must then call register.
func (h *handlers) reserve(name string) *handler {
	added := &handler{in: h, name: name, registered: make(chan processor.Registration, 1)}
	added.pace.Store(&pace{changed: make(chan struct{})})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, added)
	return added
}

// register adds a handler of the list to the shared informer, which need not run yet. If the informer has stopped,
// register removes the handler from the list and returns an error.
func (h *handler) register() error {
	added, err := h.in.Pipeline.Client.Pods().AddTypedEventHandler(h, informer.HandlerOptions{Name: h.name})
	if err != nil {
		added = nil
		h.in.take(h)
	}
	h.registered <- added
	return err
}

// take removes a handler from the list, and sets its delay to 0.
func (h *handlers) take(found *handler) {
	found.setDelay(0)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = slices.DeleteFunc(h.list, func(each *handler) bool { return each == found })
}

// unregister waits until register is over, and removes the handler from the informer. Call it once, after take.
func (h *handler) unregister() error {
	if added := <-h.registered; added != nil {
		return h.in.Pipeline.Client.Pods().Informer().RemoveEventHandler(added)
	}
	return nil
}

// HandlerInfo describes one handler.
type HandlerInfo struct {
	Name  string        `json:"name"`
	Delay time.Duration `json:"delay"` // for each notification; nanoseconds in JSON
}

// info returns the handlers, oldest first.
func (h *handlers) info() []HandlerInfo {
	infos := []HandlerInfo{}
	for _, each := range h.all() {
		infos = append(infos, HandlerInfo{Name: each.name, Delay: each.pace.Load().delay})
	}
	return infos
}

func (h *handlers) all() []*handler {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.list)
}

// find returns the handler of that name; nil: there is none.
func (h *handlers) find(name string) *handler {
	for _, each := range h.all() {
		if each.name == name {
			return each
		}
	}
	return nil
}

func (h *handler) OnAdd(pod *corev1.Pod, _ bool) { h.called() }

func (h *handler) OnUpdate(_, pod *corev1.Pod) { h.called() }

func (h *handler) OnDelete(processor.DeletedObject[*corev1.Pod]) { h.called() }

// called waits for the delay. If the delay changes meanwhile, called starts over with the new one.
func (h *handler) called() {
	for {
		now := h.pace.Load()
		if now.delay <= 0 {
			return
		}
		timer := h.in.Clock.NewTimer(now.delay)
		select {
		case <-timer.C():
			return
		case <-now.changed:
			timer.Stop()
		}
	}
}

func (h *handler) setDelay(delay time.Duration) {
	close(h.pace.Swap(&pace{delay, make(chan struct{})}).changed)
}
