package resources

import (
	"cmp"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"listwatch/internal/kube/scheme"
)

// coreEvent returns an event of either group in its stored form, that of core/v1.
func coreEvent(obj runtime.Object) (*corev1.Event, error) {
	stored, err := scheme.Stored(obj)
	event, ok := stored.(*corev1.Event)
	if err == nil && !ok {
		err = fmt.Errorf("not an event: %T", obj)
	}
	return event, err
}

// EventAttrs returns the labels and selectable fields of an event of either group, by their names in both.
func EventAttrs(obj runtime.Object) (labels.Set, fields.Fields, error) {
	event, err := coreEvent(obj)
	if err != nil {
		return nil, nil, err
	}
	about := map[string]string{
		"kind": event.InvolvedObject.Kind, "namespace": event.InvolvedObject.Namespace,
		"name": event.InvolvedObject.Name, "uid": string(event.InvolvedObject.UID),
		"apiVersion": event.InvolvedObject.APIVersion, "resourceVersion": event.InvolvedObject.ResourceVersion,
		"fieldPath": event.InvolvedObject.FieldPath,
	}
	attrs := fields.Set{
		"metadata.name": event.Name, "metadata.namespace": event.Namespace, "reason": event.Reason, "type": event.Type,
		"reportingComponent": event.ReportingController, "reportingController": event.ReportingController,
		"source": cmp.Or(event.Source.Component, event.ReportingController),
	}
	for name, value := range about {
		attrs["involvedObject."+name], attrs["regarding."+name] = value, value
	}
	return event.Labels, attrs, nil
}

// EventFields are the fields that events of core/v1 can be selected by, EventV1Fields those of events.k8s.io/v1.
var EventFields, EventV1Fields = eventFields()

func eventFields() (core, v1 []string) {
	_, all, _ := EventAttrs(&corev1.Event{}) // it is an event
	for name := range maps.Keys(all.(fields.Set)) {
		if !strings.HasPrefix(name, "regarding.") && name != "reportingController" {
			core = append(core, name)
		}
		if !strings.HasPrefix(name, "involvedObject.") && name != "reportingComponent" && name != "source" {
			v1 = append(v1, name)
		}
	}
	return core, v1
}

// EventStrategy is for events of either group.
type EventStrategy struct{ freely }

// AllowCreateOnUpdate returns true: a reporter that counts up an event need not know whether it still exists.
func (EventStrategy) AllowCreateOnUpdate() bool { return true }

// Validate wants the event in the namespace of its involved object.
func (EventStrategy) Validate(obj runtime.Object) field.ErrorList {
	event, err := coreEvent(obj)
	if err != nil {
		return field.ErrorList{field.Invalid(field.NewPath(""), "", err.Error())}
	}
	if event.Namespace != cmp.Or(event.InvolvedObject.Namespace, metav1.NamespaceDefault) {
		return field.ErrorList{field.Invalid(field.NewPath("involvedObject", "namespace"),
			event.InvolvedObject.Namespace, "does not match event.namespace")}
	}
	return nil
}

// ValidateUpdate is Validate.
func (s EventStrategy) ValidateUpdate(obj, _ runtime.Object) field.ErrorList { return s.Validate(obj) }
