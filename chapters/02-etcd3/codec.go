package etcd3

import (
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"listwatch/internal/kube/scheme"
)

// The two forms in which an object can be stored. Protobuf is what an apiserver uses; JSON can be read with etcdctl. A
// reader recognises both, whichever is written: protobuf by the four bytes "k8s\x00" at its beginning.
const (
	MediaTypeProtobuf = runtime.ContentTypeProtobuf
	MediaTypeJSON     = runtime.ContentTypeJSON
)

// NewCodec returns a codec that writes objects of version in the form of mediaType, and reads both forms.
//
// Differs: objects are kept as the version that is stored; upstream converts to an internal version in between.
func NewCodec(codecs serializer.CodecFactory, version schema.GroupVersion, mediaType string) (runtime.Codec, error) {
	info, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), mediaType)
	if !ok {
		return nil, fmt.Errorf("storage media type %q is not supported", mediaType)
	}
	if version == eventsv1.SchemeGroupVersion {
		version = corev1.SchemeGroupVersion // see [scheme.Stored]
	}
	encoder := codecs.EncoderForVersion(info.Serializer, version)
	return storageCodec{encoder, codecs.UniversalDeserializer()}, nil
}

// storageCodec is a pair of an encoder and a decoder. Upstream's pair is runtime.NewCodec, without the changes below.
type storageCodec struct {
	runtime.Encoder
	decoder runtime.Decoder
}

func (c storageCodec) Encode(obj runtime.Object, w io.Writer) error {
	stored, err := scheme.Stored(obj)
	if err != nil {
		return err
	}
	return c.Encoder.Encode(stored, w)
}

// Decode leaves apiVersion and kind empty, as they are in every Go object: a caller that writes the object out again
// sets them again.
func (c storageCodec) Decode(data []byte, defaults *schema.GroupVersionKind,
	into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if event, ok := into.(*eventsv1.Event); ok {
		stored := &corev1.Event{}
		_, kind, err := c.Decode(data, defaults, stored)
		if err == nil {
			err = scheme.FromStored(stored, event)
		}
		return event, kind, err
	}
	obj, kind, err := c.decoder.Decode(data, defaults, into)
	if err != nil {
		return obj, kind, err
	}
	return scheme.ClearKind(obj), kind, nil
}
