// Package scheme has the program's object types, by group, and their encodings. Nothing changes after init. To add a
// kind, add its group here, and the kind in chapter 07's table.
package scheme

import (
	"fmt"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

var (
	// Scheme maps kinds to Go types and back.
	Scheme = runtime.NewScheme()
	// Codecs reads and writes objects as JSON, YAML and protobuf. It writes lists in JSON item by item.
	Codecs = serializer.NewCodecFactory(Scheme, serializer.WithStreamingCollectionEncodingToJSON())
	// ParameterCodec reads and writes the options of metav1 as URL queries.
	ParameterCodec = runtime.NewParameterCodec(Scheme)
)

func init() {
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, autoscalingv1.AddToScheme, authenticationv1.AddToScheme,
		authorizationv1.AddToScheme, coordinationv1.AddToScheme, eventsv1.AddToScheme, policyv1.AddToScheme,
		resourcev1.AddToScheme, storagev1.AddToScheme,
	} {
		utilruntime.Must(add(Scheme))
	}
	metav1.AddToGroupVersion(Scheme, schema.GroupVersion{Version: "v1"})
}

// ClearKind clears kind and apiVersion in obj, because obj's Go type implies them, and returns obj.
func ClearKind(obj runtime.Object) runtime.Object {
	obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return obj
}

// WithKind returns obj with kind and apiVersion. If they are missing, it returns a shallow copy that has them, because
// other watchers may share obj. It returns an error if the scheme lacks obj's type.
func WithKind(obj runtime.Object) (runtime.Object, error) {
	if !obj.GetObjectKind().GroupVersionKind().Empty() {
		return obj, nil
	}
	kinds, _, err := Scheme.ObjectKinds(obj)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", obj, err)
	}
	shallow := reflect.New(reflect.TypeOf(obj).Elem())
	shallow.Elem().Set(reflect.ValueOf(obj).Elem())
	out := shallow.Interface().(runtime.Object)
	out.GetObjectKind().SetGroupVersionKind(kinds[0])
	return out, nil
}

// Events have two kinds, one in core/v1 and one in events.k8s.io/v1, for the same objects. They are stored as core/v1.

// renamed are the fields whose name in core/v1 differs from the name in events.k8s.io/v1.
var renamed = [][2]string{
	{"involvedObject", "regarding"}, {"message", "note"}, {"reportingComponent", "reportingController"},
	{"source", "deprecatedSource"}, {"firstTimestamp", "deprecatedFirstTimestamp"},
	{"lastTimestamp", "deprecatedLastTimestamp"}, {"count", "deprecatedCount"},
}

// Stored returns obj in its stored form: an event of events.k8s.io/v1 as one of core/v1, any other object unchanged.
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

// FromStored converts a stored event to the form of events.k8s.io/v1, in out.
func FromStored(stored *corev1.Event, out *eventsv1.Event) error {
	return convertEvent(stored, out, 0, 1)
}

// convertEvent copies an event's fields by their JSON names. from and to are the columns of [renamed] for in and out.
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
