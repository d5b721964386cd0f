package handlers

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
	mediaTypeJSON = runtime.ContentTypeJSON
	mediaTypeYAML = runtime.ContentTypeYAML
)

// mediaType is the outcome of a negotiation: how the answer is encoded, and what it is turned into before.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/negotiation/negotiate.go: MediaTypeOptions
type mediaType struct {
	name    string                   // application/json or application/yaml
	convert *schema.GroupVersionKind // Table, PartialObjectMetadata or PartialObjectMetadataList; nil: the object as it is
	encoder runtime.Encoder
}

// accepted is one clause of an Accept header.
type accepted struct {
	name   string
	params map[string]string
	q      float64
}

// parseAccept returns the clauses of an Accept header, best first; clauses of equal quality stay in order, and what
// does not parse is left out.
func parseAccept(header string) []accepted {
	var clauses []accepted
	for part := range strings.SplitSeq(header, ",") {
		name, params, err := mime.ParseMediaType(strings.TrimSpace(part))
		if err != nil {
			continue
		}
		clause := accepted{name: name, params: params, q: 1}
		if q, err := strconv.ParseFloat(params["q"], 64); err == nil {
			clause.q = q
		}
		if clause.q > 0 {
			clauses = append(clauses, clause)
		}
	}
	sort.SliceStable(clauses, func(i, j int) bool { return clauses[i].q > clauses[j].q })
	return clauses
}

// negotiateOutput chooses the form of the answer. The error is 406 if the client accepts none of ours.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/negotiation/negotiate.go: NegotiateOutputMediaType
func negotiateOutput(r *http.Request) (mediaType, error) {
	header := r.Header.Get("Accept")
	if strings.TrimSpace(header) == "" {
		header = "*/*"
	}
	pretty := wantsPretty(r)
	for _, clause := range parseAccept(header) {
		name, ok := servedType(clause.name)
		if !ok {
			continue
		}
		convert, ok := conversion(clause.params)
		if !ok {
			continue
		}
		return mediaType{name: name, convert: convert, encoder: encoderFor(name, pretty)}, nil
	}
	return mediaType{}, newNotAcceptable([]string{mediaTypeJSON, mediaTypeYAML})
}

// negotiateStream narrows the outcome of [negotiateOutput] to what can be streamed. YAML cannot: nothing says where one
// document of a stream ends until the next begins.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/negotiation/negotiate.go: NegotiateOutputMediaTypeStream
func negotiateStream(output mediaType) (mediaType, error) {
	if output.name != mediaTypeJSON {
		return mediaType{}, newNotAcceptable([]string{mediaTypeJSON})
	}
	output.encoder = encoderFor(mediaTypeJSON, false)
	return output, nil
}

func servedType(name string) (string, bool) {
	switch name {
	case "*/*", "application/*", mediaTypeJSON:
		return mediaTypeJSON, true
	case mediaTypeYAML:
		return mediaTypeYAML, true
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

func encoderFor(name string, pretty bool) runtime.Encoder {
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), name)
	if !ok {
		panic(fmt.Sprintf("handlers: no serializer for %s", name))
	}
	if pretty && info.PrettySerializer != nil {
		return info.PrettySerializer
	}
	return info.Serializer
}

// negotiateInput returns what reads the request's body. The error is 415 for a Content-Type nobody can read.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/negotiation/negotiate.go: NegotiateInputSerializer
func negotiateInput(r *http.Request) (runtime.SerializerInfo, error) {
	known := scheme.Codecs.SupportedMediaTypes()
	header := r.Header.Get("Content-Type")
	if header == "" {
		header = mediaTypeJSON
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
	return runtime.SerializerInfo{}, newUnsupportedMediaType(names)
}
