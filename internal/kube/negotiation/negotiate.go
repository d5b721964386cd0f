// Package negotiation chooses the forms of requests and responses: media types by Accept and Content-Type, conversion
// to tables and metadata, and compression. Pools are its only state.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/negotiation
package negotiation

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/munnerz/goautoneg"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1beta1 "k8s.io/apimachinery/pkg/apis/meta/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"listwatch/internal/kube/scheme"
)

// The media types of responses. Requests may use any type that the scheme's codecs read, including protobuf.
//
// Differs: upstream also answers in protobuf and CBOR. A client that accepts nothing else gets a 406.
const (
	JSON = runtime.ContentTypeJSON
	YAML = runtime.ContentTypeYAML
)

// MediaType is the outcome of a negotiation: the encoding of the response, and the conversion before it.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/negotiation/negotiate.go: MediaTypeOptions
type MediaType struct {
	Name string // JSON or YAML
	// Table, PartialObjectMetadata or PartialObjectMetadataList; nil: the object is not converted.
	Convert *schema.GroupVersionKind
	Pretty  bool            // the chosen clause has pretty=1
	Encoder runtime.Encoder // set by Output and Stream
}

// Output chooses the form of the response to r. The error is a 406: the client accepts no form that we have.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/negotiation/negotiate.go: NegotiateOutputMediaType
func Output(r *http.Request) (MediaType, error) {
	media, ok := Accept(r.Header.Get("Accept"), AllowsTransform)
	if !ok {
		return MediaType{}, NewNotAcceptable([]string{JSON, YAML})
	}
	media.Encoder = EncoderFor(media.Name, media.Pretty || wantsPretty(r))
	return media, nil
}

// Accept returns the form of the best clause of an Accept header that the server can satisfy, or false if there is
// none. An empty header accepts anything. allows reports whether the endpoint can convert its objects to target; nil:
// no conversion.
//
// A clause is better if its q is larger or, at equal q, if it is more specific. A clause with a q of 0 comes last, but
// is not excluded.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/negotiation/negotiate.go: NegotiateMediaTypeOptions
func Accept(header string, allows func(target *schema.GroupVersionKind) bool) (MediaType, bool) {
	if header == "" {
		return MediaType{Name: JSON}, allows(nil)
	}
	for _, clause := range goautoneg.ParseAccept(header) {
		for _, name := range []string{JSON, YAML} {
			media := MediaType{Name: name, Convert: target(clause.Params), Pretty: clause.Params["pretty"] == "1"}
			if matches(clause, name) && knownSchema(clause.Params, name) && allows(media.Convert) {
				return media, true
			}
		}
	}
	return MediaType{}, false
}

func matches(clause goautoneg.Accept, name string) bool {
	if clause.SubType == "*" {
		return clause.Type == "*" || clause.Type == "application"
	}
	return clause.Type+"/"+clause.SubType == name
}

// target returns the kind that a clause's parameters request; nil: no conversion.
func target(params map[string]string) *schema.GroupVersionKind {
	gvk := schema.GroupVersionKind{Group: params["g"], Version: params["v"], Kind: params["as"]}
	if gvk.Empty() {
		return nil
	}
	return &gvk
}

// knownSchema reports whether the server supports a clause's stream and schema version, if any.
func knownSchema(params map[string]string, name string) bool {
	stream, version := params["stream"], params["sv"]
	return (stream == "" || stream == "watch" && name == JSON) && (version == "" || version == "v1")
}

// AllowsTransform reports whether every resource can be converted to target.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/rest.go: (*RequestScope).AllowsMediaTypeTransform
func AllowsTransform(target *schema.GroupVersionKind) bool {
	if target == nil {
		return true
	}
	if gv := target.GroupVersion(); gv != metav1.SchemeGroupVersion && gv != metav1beta1.SchemeGroupVersion {
		return false
	}
	switch target.Kind {
	case "Table", "PartialObjectMetadata", "PartialObjectMetadataList":
		return true
	}
	return false
}

// Stream returns the outcome of [Output] for a stream. The error is a 406 for YAML, which cannot be streamed: a
// document's end is visible only at the beginning of the next document.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/negotiation/negotiate.go: NegotiateOutputMediaTypeStream
func Stream(output MediaType) (MediaType, error) {
	if output.Name != JSON {
		return MediaType{}, NewNotAcceptable([]string{JSON})
	}
	output.Encoder = EncoderFor(JSON, false)
	return output, nil
}

// wantsPretty reports whether a person will read the response. It uses ?pretty, or else the user agent.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/negotiation/negotiate.go: isPrettyPrint
func wantsPretty(r *http.Request) bool {
	if value := r.URL.Query().Get("pretty"); value != "" {
		pretty, _ := strconv.ParseBool(value) // false for a malformed value
		return pretty
	}
	agent := r.UserAgent()
	return strings.HasPrefix(agent, "curl") || strings.HasPrefix(agent, "Wget") || strings.HasPrefix(agent,
		"Mozilla/5.0")
}

// EncoderFor returns the encoder for JSON or YAML. It panics for an unknown name.
func EncoderFor(name string, pretty bool) runtime.Encoder {
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), name)
	if !ok {
		panic(fmt.Sprintf("negotiation: no serializer for %s", name))
	}
	if pretty && info.PrettySerializer != nil {
		return info.PrettySerializer
	}
	return info.Serializer
}

// Input returns the serializer for the request's body, by default JSON's. An unknown Content-Type is a 415.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/negotiation/negotiate.go: NegotiateInputSerializer
func Input(r *http.Request) (runtime.SerializerInfo, error) {
	known := scheme.Codecs.SupportedMediaTypes()
	name, _, err := mime.ParseMediaType(cmp.Or(r.Header.Get("Content-Type"), JSON))
	if err == nil {
		if info, ok := runtime.SerializerInfoForMediaType(known, name); ok {
			return info, nil
		}
	}
	var names []string
	for _, info := range known {
		names = append(names, info.MediaType)
	}
	return runtime.SerializerInfo{}, NewUnsupportedMediaType(names)
}

// NewNotAcceptable returns a 406 for a client that accepts none of the types in have. The message lists them.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/negotiation/errors.go: NewNotAcceptableError
func NewNotAcceptable(have []string) error {
	return Refusal(http.StatusNotAcceptable, "only the following media types are accepted: %s",
		strings.Join(have, ", "))
}

// NewUnsupportedMediaType returns a 415 for a body with none of the types in have. The message lists them.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/negotiation/errors.go: NewUnsupportedMediaTypeError
func NewUnsupportedMediaType(have []string) error {
	return Refusal(http.StatusUnsupportedMediaType, "the body of the request was in an unknown format - accepted "+
		"media types include: %s", strings.Join(have, ", "))
}

// reasons has the reason for each code of [Refusal].
var reasons = map[int]metav1.StatusReason{
	http.StatusBadRequest:            metav1.StatusReasonBadRequest,
	http.StatusForbidden:             metav1.StatusReasonForbidden,
	http.StatusNotFound:              metav1.StatusReasonNotFound,
	http.StatusMethodNotAllowed:      metav1.StatusReasonMethodNotAllowed,
	http.StatusNotAcceptable:         metav1.StatusReasonNotAcceptable,
	http.StatusGone:                  metav1.StatusReasonExpired,
	http.StatusRequestEntityTooLarge: metav1.StatusReasonRequestEntityTooLarge,
	http.StatusUnsupportedMediaType:  metav1.StatusReasonUnsupportedMediaType,
	http.StatusInternalServerError:   metav1.StatusReasonInternalError,
	http.StatusBadGateway:            metav1.StatusReasonServiceUnavailable,
	http.StatusServiceUnavailable:    metav1.StatusReasonServiceUnavailable,
}

// Refusal returns an error with this code, a kube-apiserver's reason for the code, and a message.
func Refusal(code int, format string, args ...any) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: int32(code),
		Reason: reasons[code], Message: fmt.Sprintf(format, args...)}}
}

// MaxRequestBodyBytes is upstream's limit: twice etcd's limit, because JSON is larger than protobuf.
const MaxRequestBodyBytes = 3 * 1024 * 1024

// ReadBody returns the body of the request. Errors: a 413 if the body is too large, a 400 if it ends early, and the
// read's own error if r's context is done.
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
		return nil, err // toStatus distinguishes a timeout from a client that has gone
	default:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("read body: %v", err))
	}
}

// Body is the body of a request, with the serializer that reads it.
type Body struct {
	info  runtime.SerializerInfo
	bytes []byte
}

// ReadObject reads the body of a request with an object, without decoding it. Errors: a 415, or those of [ReadBody].
func ReadObject(w http.ResponseWriter, r *http.Request) (Body, error) {
	info, err := Input(r)
	if err != nil {
		return Body{}, err
	}
	body, err := ReadBody(w, r)
	return Body{info, body}, err
}

// Decode decodes the body as [DecodeObject] does, adds the warnings to w and clears the object's kind. Errors are 400s.
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

// DecodeObject decodes data, into the given object if its kind matches, and returns the kind in data. directive selects
// the treatment of unknown and duplicate fields: Strict refuses them, Warn (or "") returns warnings, Ignore drops them.
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
	if directive == metav1.FieldValidationStrict && len(warnings) > 0 {
		return nil, actual, nil, runtime.NewStrictDecodingError(warnings)
	}
	return obj, actual, warnings, nil
}

// explainDecodeError returns a 400 with err, the expected kind, and the body's kind or its first 30 bytes.
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

// maxWarningBytes is the maximum number of bytes of warnings in the header of one response.
const maxWarningBytes = 4096

// AddWarnings adds one header for each distinct problem that did not cause a refusal, up to maxWarningBytes.
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
