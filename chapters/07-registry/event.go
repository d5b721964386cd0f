package registry

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"listwatch/internal/resources"
)

// eventTTL is how long an event is kept after it was last reported. Upstream's default.
const eventTTL = time.Hour

// Events describes events: what the people who run a cluster are told, not to be taken for watch events.
func Events() *Resource {
	return &Resource{
		Name: "events", Singular: "event", Kind: "Event", ShortNames: []string{"ev"}, Namespaced: true,
		Prefix:      "/registry/events",
		NewFunc:     func() runtime.Object { return &corev1.Event{} },
		NewListFunc: func() runtime.Object { return &corev1.EventList{} },
		GetAttrs:    eventAttrs,
		Fields: []string{
			"metadata.name", "metadata.namespace", "involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
			"involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason", "reportingComponent", "source", "type",
		},
		Default:      func(runtime.Object) {},
		ValidateName: validation.NameIsDNSSubdomain,
		Columns:      resources.EventColumns(),
		Cells:        resources.EventCells,
		Strategy:     eventStrategy{},
		TTL:          eventTTL,
	}
}

func eventAttrs(obj runtime.Object) (labels.Set, fields.Fields, error) {
	event, ok := obj.(*corev1.Event)
	if !ok {
		return nil, nil, fmt.Errorf("not an event: %T", obj)
	}
	source := event.Source.Component
	if source == "" {
		source = event.ReportingController
	}
	return event.Labels, fields.Set{
		"metadata.name":                  event.Name,
		"metadata.namespace":             event.Namespace,
		"involvedObject.kind":            event.InvolvedObject.Kind,
		"involvedObject.namespace":       event.InvolvedObject.Namespace,
		"involvedObject.name":            event.InvolvedObject.Name,
		"involvedObject.uid":             string(event.InvolvedObject.UID),
		"involvedObject.apiVersion":      event.InvolvedObject.APIVersion,
		"involvedObject.resourceVersion": event.InvolvedObject.ResourceVersion,
		"involvedObject.fieldPath":       event.InvolvedObject.FieldPath,
		"reason":                         event.Reason,
		"reportingComponent":             event.ReportingController,
		"source":                         source,
		"type":                           event.Type,
	}, nil
}

type eventStrategy struct{}

var _ CreatesOnUpdate = eventStrategy{}

// AllowCreateOnUpdate: a reporter that counts up an event need not know whether it is still there.
func (eventStrategy) AllowCreateOnUpdate() bool { return true }

func (eventStrategy) PrepareForCreate(runtime.Object) {}

func (eventStrategy) PrepareForUpdate(_, _ runtime.Object) {}

// Validate checks that the event stands in the namespace of what it is about.
func (eventStrategy) Validate(obj runtime.Object) field.ErrorList {
	event := obj.(*corev1.Event)
	want := event.InvolvedObject.Namespace
	if want == "" {
		want = metav1.NamespaceDefault
	}
	if event.Namespace != want {
		return field.ErrorList{field.Invalid(field.NewPath("involvedObject", "namespace"), event.InvolvedObject.Namespace, "does not match event.namespace")}
	}
	return nil
}

func (s eventStrategy) ValidateUpdate(obj, _ runtime.Object) field.ErrorList { return s.Validate(obj) }
