// Package negotiation settles in which form a request is read and answered: media types by Accept and Content-Type, what an
// answer is turned into, and whether it is compressed. It is called by the handlers of requests and keeps nothing but pools.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/negotiation
package negotiation

import (
	"fmt"
	"mime"
	"net/http"
	"sort"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1beta1 "k8s.io/apimachinery/pkg/apis/meta/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"listwatch/internal/scheme"
)

// What we answer with. Requests may be in any form the scheme's codecs read, protobuf included.
// Differs: upstream answers in protobuf and CBOR too. Every client that prefers those takes JSON as well.
const (
	JSON = runtime.ContentTypeJSON
	YAML = runtime.ContentTypeYAML
)

// MediaType is the outcome of a negotiation: how the answer is encoded, and what it is turned into before.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/negotiation/negotiate.go: MediaTypeOptions
type MediaType struct {
	Name    string                   // application/json or application/yaml
	Convert *schema.GroupVersionKind // Table, PartialObjectMetadata or PartialObjectMetadataList; nil: the object as it is
	Encoder runtime.Encoder
}

// Clause is one clause of an Accept header.
type Clause struct {
	Name   string
	Params map[string]string
	Q      float64
}

// ParseAccept returns the clauses of an Accept header, best first; clauses of equal quality stay in order, and what
// does not parse is left out.
func ParseAccept(header string) []Clause {
	var clauses []Clause
	for part := range strings.SplitSeq(header, ",") {
		name, params, err := mime.ParseMediaType(strings.TrimSpace(part))
		if err != nil {
			continue
		}
		clause := Clause{Name: name, Params: params, Q: 1}
		if q, err := strconv.ParseFloat(params["q"], 64); err == nil {
			clause.Q = q
		}
		if clause.Q > 0 {
			clauses = append(clauses, clause)
		}
	}
	sort.SliceStable(clauses, func(i, j int) bool { return clauses[i].Q > clauses[j].Q })
	return clauses
}

// Output chooses the form of the answer. The error is 406 if the client accepts none of ours.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/negotiation/negotiate.go: NegotiateOutputMediaType
func Output(r *http.Request) (MediaType, error) {
	header := r.Header.Get("Accept")
	if strings.TrimSpace(header) == "" {
		header = "*/*"
	}
	pretty := wantsPretty(r)
	for _, clause := range ParseAccept(header) {
		name, ok := ServedType(clause.Name)
		if !ok {
			continue
		}
		convert, ok := conversion(clause.Params)
		if !ok {
			continue
		}
		return MediaType{Name: name, Convert: convert, Encoder: EncoderFor(name, pretty)}, nil
	}
	return MediaType{}, NewNotAcceptable([]string{JSON, YAML})
}

// Stream narrows the outcome of [Output] to what can be streamed. YAML cannot: nothing says where one
// document of a stream ends until the next begins.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/negotiation/negotiate.go: NegotiateOutputMediaTypeStream
func Stream(output MediaType) (MediaType, error) {
	if output.Name != JSON {
		return MediaType{}, NewNotAcceptable([]string{JSON})
	}
	output.Encoder = EncoderFor(JSON, false)
	return output, nil
}

// ServedType returns the media type with which an accepted one is answered.
func ServedType(name string) (string, bool) {
	switch name {
	case "*/*", "application/*", JSON:
		return JSON, true
	case YAML:
		return YAML, true
	default:
		return "", false
	}
}

// conversion returns what the parameters of an Accept clause ask the object to be turned into, or false if that is
// something we do not know.
func conversion(params map[string]string) (*schema.GroupVersionKind, bool) {
	kind := params["as"]
	if kind == "" {
		return nil, params["g"] == "" && params["v"] == ""
	}
	gvk := schema.GroupVersionKind{Group: params["g"], Version: params["v"], Kind: kind}
	if gv := gvk.GroupVersion(); gv != metav1.SchemeGroupVersion && gv != metav1beta1.SchemeGroupVersion {
		return nil, false
	}
	switch kind {
	case "Table", "PartialObjectMetadata", "PartialObjectMetadataList":
		return &gvk, true
	default:
		return nil, false
	}
}

// wantsPretty reports whether a person is reading: asked for by ?pretty, or known by the tool they use.
func wantsPretty(r *http.Request) bool {
	if values, ok := r.URL.Query()["pretty"]; ok && len(values) > 0 {
		return values[0] != "0" && !strings.EqualFold(values[0], "false")
	}
	agent := r.UserAgent()
	return strings.HasPrefix(agent, "curl") || strings.HasPrefix(agent, "Wget") || strings.HasPrefix(agent, "Mozilla/5.0")
}

// EncoderFor returns what writes objects as JSON or YAML.
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

// Input returns what reads the request's body. The error is 415 for a Content-Type that the server cannot read.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/negotiation/negotiate.go: NegotiateInputSerializer
func Input(r *http.Request) (runtime.SerializerInfo, error) {
	known := scheme.Codecs.SupportedMediaTypes()
	header := r.Header.Get("Content-Type")
	if header == "" {
		header = JSON
	}
	name, _, err := mime.ParseMediaType(header)
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
