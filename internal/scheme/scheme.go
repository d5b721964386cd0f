// Package scheme knows the object types of the program, core/v1, and how they are written as bytes.
package scheme

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

var (
	// Scheme maps core/v1 kinds to Go types and back.
	Scheme = runtime.NewScheme()
	// Codecs reads and writes them as JSON, YAML and protobuf. It writes lists item by item.
	Codecs = serializer.NewCodecFactory(Scheme, serializer.WithStreamingCollectionEncodingToJSON())
	// ParameterCodec reads and writes metav1 options as URL queries.
	ParameterCodec = runtime.NewParameterCodec(Scheme)
)

func init() {
	utilruntime.Must(corev1.AddToScheme(Scheme))
	metav1.AddToGroupVersion(Scheme, schema.GroupVersion{Version: "v1"})
}
