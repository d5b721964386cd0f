package negotiation

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"listwatch/internal/kube/scheme"
)

// MaxRequestBodyBytes is upstream's limit: twice what etcd takes, because JSON is wider than protobuf.
const MaxRequestBodyBytes = 3 * 1024 * 1024

// ReadBody returns the body of the request. The error is 413 if it is too large, and 400 if it ends early.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/rest.go: limitedReadBody
func ReadBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxRequestBodyBytes))
	var tooLarge *http.MaxBytesError
	switch {
	case err == nil:
		return body, nil
	case errors.As(err, &tooLarge):
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", int64(MaxRequestBodyBytes)))
	case r.Context().Err() != nil:
		return nil, err // timeout, or the client has gone: toStatus finds out
	default:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("read body: %v", err))
	}
}

// Body is the body of a request, with its serializer.
type Body struct {
	info  runtime.SerializerInfo
	bytes []byte
}

// ReadObject reads a body that holds an object, without decoding it. Errors: 400, 413, 415.
func ReadObject(w http.ResponseWriter, r *http.Request) (Body, error) {
	info, err := Input(r)
	if err != nil {
		return Body{}, err
	}
	body, err := ReadBody(w, r)
	return Body{info, body}, err
}

// Decode is [DecodeObject], but adds the warnings to the answer. The error is 400.
func (b Body) Decode(w http.ResponseWriter, gvk schema.GroupVersionKind, into runtime.Object,
	directive string) (runtime.Object, error) {
	obj, actual, warnings, err := DecodeObject(b.info, b.bytes, gvk, into, directive)
	AddWarnings(w, warnings)
	if err != nil {
		return nil, explainDecodeError(err, actual, gvk, b.bytes)
	}
	if actual.GroupVersion() != gvk.GroupVersion() {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the API version in the data (%s) does not match the "+
			"expected API version (%s)", actual.GroupVersion(), gvk.GroupVersion()))
	}
	return scheme.ClearKind(obj), nil
}

// DecodeObject decodes an object, perhaps into into, and returns the kind in its data. directive decides about unknown
// and duplicate fields: Strict refuses them, Warn (also "") returns warnings, Ignore drops them.
func DecodeObject(info runtime.SerializerInfo, data []byte, gvk schema.GroupVersionKind, into runtime.Object,
	directive string) (obj runtime.Object, actual *schema.GroupVersionKind, warnings []error, err error) {
	serializer := info.Serializer
	if directive != metav1.FieldValidationIgnore && info.StrictSerializer != nil {
		serializer = info.StrictSerializer
	}
	obj, actual, err = scheme.Codecs.DecoderToVersion(serializer, gvk.GroupVersion()).Decode(data, &gvk, into)
	strict, ok := runtime.AsStrictDecodingError(err)
	if err != nil && (!ok || obj == nil) {
		return nil, actual, nil, err
	}
	if ok {
		warnings = strict.Errors()
	}
	switch {
	case directive == metav1.FieldValidationIgnore:
		warnings = nil
	case directive == metav1.FieldValidationStrict && len(warnings) > 0:
		return nil, actual, nil, runtime.NewStrictDecodingError(warnings)
	}
	return obj, actual, warnings, nil
}

// explainDecodeError adds the expected kind to the error.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/rest.go: transformDecodeError
func explainDecodeError(err error, actual *schema.GroupVersionKind, want schema.GroupVersionKind, body []byte) error {
	if actual != nil && actual.Kind != "" {
		return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", actual.Kind,
			actual.Version, want.Kind, err))
	}
	const shown = 30
	summary := string(body[:min(len(body), shown)])
	if len(body) > shown {
		summary += " ..."
	}
	return apierrors.NewBadRequest(fmt.Sprintf("the object provided is unrecognized (must be of type %s): %v (%q)",
		want.Kind, err, summary))
}

// maxWarningBytes bounds the warnings in the header of one answer.
const maxWarningBytes = 4096

// AddWarnings adds problems for which a body is not refused to the header of the answer.
func AddWarnings(w http.ResponseWriter, problems []error) {
	size := 0
	for _, problem := range problems {
		header, err := utilnet.NewWarningHeader(299, "-", problem.Error())
		if err != nil || slices.Contains(w.Header()["Warning"], header) {
			continue
		}
		size += len(header)
		if size > maxWarningBytes {
			return
		}
		w.Header().Add("Warning", header)
	}
}
