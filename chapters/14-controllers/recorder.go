package controllers

import (
	"context"
	"fmt"
	"sync/atomic"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	listwatch "listwatch/chapters/09-listwatch"
	processor "listwatch/chapters/12-processor"
	"listwatch/internal/kube/scheme"
)

// The bounds of an [EventRecorder]: this many events at once, and in the long run so many a second.
const (
	eventBurst = 25
	eventQPS   = 1
)

// EventRecorder writes objects of the kind Event, by which controllers tell people what they have done. A controller
// never waits for it: events that are too many, and those that the server refuses, are lost. A nil recorder records
// nothing. Safe for concurrent use.
//
// Upstream: k8s.io/client-go/tools/record/event.go: EventRecorder
// Differs: writes each event as an object of its own, where upstream counts up one that repeats. One bucket bounds all
// events; upstream has one for each object.
type EventRecorder struct {
	client  *listwatch.RESTClient
	clock   clock.PassiveClock
	limiter *rate.Limiter
	n       atomic.Int64       // events so far: no two of one moment have one name
	events  chan *corev1.Event // sent by Event, received by Run, never closed; room for a burst
}

// NewEventRecorder returns a recorder that keeps a burst of events until [EventRecorder.Run] writes them.
func NewEventRecorder(client *listwatch.RESTClient, clk clock.PassiveClock) *EventRecorder {
	return &EventRecorder{client: client, clock: clk, limiter: rate.NewLimiter(eventQPS, eventBurst),
		events: make(chan *corev1.Event, eventBurst)}
}

// Event records what source has done about obj. It does not block.
//
// Upstream: k8s.io/client-go/tools/record/event.go: (*recorderImpl).Eventf
func (r *EventRecorder) Event(source corev1.EventSource, obj processor.Object, eventtype, reason, messageFmt string,
	args ...any) {
	if r == nil || !r.limiter.AllowN(r.clock.Now(), 1) {
		return
	}
	kinds, _, err := scheme.Scheme.ObjectKinds(obj)
	if err != nil {
		return
	}
	apiVersion, kind := kinds[0].ToAPIVersionAndKind()
	now := metav1.NewTime(r.clock.Now())
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: obj.GetNamespace(),
			Name: fmt.Sprintf("%s.%x", obj.GetName(), now.UnixNano()+r.n.Add(1))}, // names of one second sort by time
		InvolvedObject: corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: obj.GetNamespace(),
			Name: obj.GetName(), UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion()},
		Type: eventtype, Reason: reason, Message: fmt.Sprintf(messageFmt, args...), Count: 1,
		FirstTimestamp: now, LastTimestamp: now,
		Source: source, ReportingController: source.Component, ReportingInstance: source.Host,
	}
	select {
	case r.events <- event:
	default:
	}
}

// Run writes events until ctx is done.
func (r *EventRecorder) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-r.events:
			_ = r.client.Post().Namespace(event.Namespace).Resource("events").Body(event).Do(ctx).Error()
		}
	}
}
