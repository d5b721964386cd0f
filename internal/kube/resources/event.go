package resources

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"listwatch/internal/kube/scheme"
)

// EventAttrs returns what selectors see of an event.
func EventAttrs(obj runtime.Object) (labels.Set, fields.Fields, error) {
	event, ok := obj.(*corev1.Event)
	if !ok {
		return nil, nil, fmt.Errorf("not an event: %T", obj)
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
		"source":                         cmp.Or(event.Source.Component, event.ReportingController),
		"type":                           event.Type,
	}, nil
}

// EventV1Fields are the fields that events of events.k8s.io/v1 can be selected by, and what [EventAttrs] calls them.
var EventV1Fields = map[string]string{
	"metadata.name": "metadata.name", "metadata.namespace": "metadata.namespace", "reason": "reason", "type": "type",
	"regarding.kind": "involvedObject.kind", "regarding.namespace": "involvedObject.namespace",
	"regarding.name": "involvedObject.name", "regarding.uid": "involvedObject.uid",
	"regarding.apiVersion":      "involvedObject.apiVersion",
	"regarding.resourceVersion": "involvedObject.resourceVersion",
	"regarding.fieldPath":       "involvedObject.fieldPath", "reportingController": "reportingComponent",
}

// EventV1Attrs returns what selectors see of an event of events.k8s.io/v1.
func EventV1Attrs(obj runtime.Object) (labels.Set, fields.Fields, error) {
	stored, err := scheme.Stored(obj)
	if err != nil {
		return nil, nil, err
	}
	set, attrs, err := EventAttrs(stored)
	if err != nil {
		return nil, nil, err
	}
	renamed := fields.Set{}
	for name, old := range EventV1Fields {
		renamed[name] = attrs.Get(old)
	}
	return set, renamed, nil
}

// EventStrategy is for events.
type EventStrategy struct{ freely }

// AllowCreateOnUpdate: a reporter that counts up an event need not know whether it is still there.
func (EventStrategy) AllowCreateOnUpdate() bool { return true }

// Validate checks that the event is in the namespace of the object it is about.
func (EventStrategy) Validate(obj runtime.Object) field.ErrorList {
	event := obj.(*corev1.Event)
	if event.Namespace != cmp.Or(event.InvolvedObject.Namespace, metav1.NamespaceDefault) {
		return field.ErrorList{field.Invalid(field.NewPath("involvedObject", "namespace"),
			event.InvolvedObject.Namespace, "does not match event.namespace")}
	}
	return nil
}

// ValidateUpdate is Validate.
func (s EventStrategy) ValidateUpdate(obj, _ runtime.Object) field.ErrorList { return s.Validate(obj) }

// EventV1Strategy is [EventStrategy] for events of events.k8s.io/v1.
type EventV1Strategy struct{ EventStrategy }

// Validate checks the event as it will be stored.
func (s EventV1Strategy) Validate(obj runtime.Object) field.ErrorList {
	stored, err := scheme.Stored(obj)
	if err != nil {
		return field.ErrorList{field.Invalid(field.NewPath(""), "", err.Error())}
	}
	return s.EventStrategy.Validate(stored)
}

// ValidateUpdate is Validate.
func (s EventV1Strategy) ValidateUpdate(obj, _ runtime.Object) field.ErrorList {
	return s.Validate(obj)
}

// EventV1Columns are [EventColumns], read off events of events.k8s.io/v1.
func EventV1Columns() []Column {
	columns := slices.Clone(EventColumns)
	for i := range columns {
		cell := columns[i].Cell
		columns[i].Cell = func(r *Row) any {
			stored, err := scheme.Stored(r.Object)
			if err != nil {
				return err.Error()
			}
			return cell(&Row{Object: stored, Now: r.Now})
		}
	}
	return columns
}
