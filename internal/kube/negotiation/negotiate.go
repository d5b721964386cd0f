// Package negotiation chooses the forms of requests and answers: media types by Accept and Content-Type, conversion to
// tables and metadata, and compression. Its only state is pools.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/negotiation
package negotiation

import (
	"cmp"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/munnerz/goautoneg"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1beta1 "k8s.io/apimachinery/pkg/apis/meta/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"listwatch/internal/kube/scheme"
)

// The media types of answers. Requests may be in any form that the scheme's codecs read, protobuf included.
//
// Differs: upstream answers in protobuf and CBOR, too. Every client that prefers those takes JSON as well.
const (
	JSON = runtime.ContentTypeJSON
	YAML = runtime.ContentTypeYAML
)

// MediaType is the outcome of a negotiation: the encoding of the answer, and the conversion before it.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/negotiation/negotiate.go: MediaTypeOptions
type MediaType struct {
	Name string // JSON or YAML
	// Table, PartialObjectMetadata or PartialObjectMetadataList; nil: the object as it is
	Convert *schema.GroupVersionKind
	Pretty  bool            // with line breaks
	Encoder runtime.Encoder // set by Output and Stream
}

// Output chooses the form of the answer to r. The error is 406 if the client accepts none of ours.
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

// Accept returns the form of the best clause of an Accept header that the server can satisfy. An empty header accepts
// anything. allows reports whether the endpoint can convert its objects to target; nil: no conversion.
//
// A clause is better if its q is larger or, at equal q, if it is more specific. A q of 0 comes last, but counts.
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

// target returns the kind in the parameters of a clause to which the object is converted; nil: none.
func target(params map[string]string) *schema.GroupVersionKind {
	gvk := schema.GroupVersionKind{Group: params["g"], Version: params["v"], Kind: params["as"]}
	if gvk.Empty() {
		return nil
	}
	return &gvk
}

// knownSchema reports whether the server knows the stream and the schema version that a clause names, if any.
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

// Stream narrows the outcome of [Output] to forms that can be streamed. YAML cannot: the end of a document is known
// only when the next begins.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/negotiation/negotiate.go: NegotiateOutputMediaTypeStream
func Stream(output MediaType) (MediaType, error) {
	if output.Name != JSON {
		return MediaType{}, NewNotAcceptable([]string{JSON})
	}
	output.Encoder = EncoderFor(JSON, false)
	return output, nil
}

// wantsPretty reports whether a person will read the answer: by ?pretty, or else by the user agent.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/negotiation/negotiate.go: isPrettyPrint
func wantsPretty(r *http.Request) bool {
	if value := r.URL.Query().Get("pretty"); value != "" {
		pretty, _ := strconv.ParseBool(value) // "" or nonsense: false
		return pretty
	}
	agent := r.UserAgent()
	return strings.HasPrefix(agent, "curl") || strings.HasPrefix(agent, "Wget") || strings.HasPrefix(agent,
		"Mozilla/5.0")
}

// EncoderFor returns the encoder of JSON or YAML.
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

// Input returns the serializer for the request's body. The error is 415 for an unknown Content-Type.
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
