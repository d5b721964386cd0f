package scheme

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Events have two kinds, of core/v1 and of events.k8s.io/v1, for the same objects. They are stored as core/v1.

// renamed are the fields that have one name in core/v1 and another in events.k8s.io/v1.
var renamed = [][2]string{
	{"involvedObject", "regarding"}, {"message", "note"}, {"reportingComponent", "reportingController"},
	{"source", "deprecatedSource"}, {"firstTimestamp", "deprecatedFirstTimestamp"},
	{"lastTimestamp", "deprecatedLastTimestamp"}, {"count", "deprecatedCount"},
}

// Stored returns obj as it is stored: an event of events.k8s.io/v1 as one of core/v1, all others as they are.
//
// Upstream: k8s.io/apimachinery/pkg/runtime/scheme.go: (*Scheme).ConvertToVersion
func Stored(obj runtime.Object) (runtime.Object, error) {
	event, ok := obj.(*eventsv1.Event)
	if !ok {
		return obj, nil
	}
	stored := &corev1.Event{}
	return stored, convertEvent(event, stored, 1, 0)
}

// FromStored converts stored to out.
func FromStored(stored *corev1.Event, out *eventsv1.Event) error {
	return convertEvent(stored, out, 0, 1)
}

// convertEvent copies an event field by field, by the names in JSON. from and to are the columns of [renamed] for in
// and out.
func convertEvent(in, out runtime.Object, from, to int) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(in)
	if err != nil {
		return fmt.Errorf("convert event: %w", err)
	}
	for _, names := range renamed {
		if value, ok := fields[names[from]]; ok {
			delete(fields, names[from])
			fields[names[to]] = value
		}
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, out); err != nil {
		return fmt.Errorf("convert event: %w", err)
	}
	out.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return nil
}
