// Package scheme knows the object types of the program, group by group, and how they are written as bytes.
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
	// Codecs reads and writes them as JSON, YAML and protobuf. It writes lists item by item.
	Codecs = serializer.NewCodecFactory(Scheme, serializer.WithStreamingCollectionEncodingToJSON())
	// ParameterCodec reads and writes metav1 options as URL queries.
	ParameterCodec = runtime.NewParameterCodec(Scheme)
)

func init() {
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, autoscalingv1.AddToScheme, authenticationv1.AddToScheme,
		authorizationv1.AddToScheme,
		coordinationv1.AddToScheme, eventsv1.AddToScheme, policyv1.AddToScheme, resourcev1.AddToScheme,
		storagev1.AddToScheme,
	} {
		utilruntime.Must(add(Scheme))
	}
	metav1.AddToGroupVersion(Scheme, schema.GroupVersion{Version: "v1"})
}

// ClearKind clears kind and apiVersion in obj, which follow from its Go type, and returns it.
func ClearKind(obj runtime.Object) runtime.Object {
	obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return obj
}

// WithKind returns obj with kind and apiVersion filled in, without changing obj, which may be shared with every other
// watcher: if they are missing it is a shallow copy that gets them.
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
