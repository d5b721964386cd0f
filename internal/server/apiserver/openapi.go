package apiserver

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed" // for the documents
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/munnerz/goautoneg"

	handlers "listwatch/chapters/08-handlers"
	"listwatch/internal/kube/negotiation"
)

// The documents that describe the API, gzipped: what a kube-apiserver of the version that we are like says of the paths
// that we serve. A test in internal/check/compat/kubectl, part of `make full`, compares them with it, and writes them.
var (
	//go:embed openapi_v3.json.gz
	openAPIv3 []byte
	//go:embed openapi_v2.json.gz
	openAPIv2 []byte
	//go:embed openapi_v2.pb.gz
	openAPIv2Proto []byte
)

// The form of OpenAPI v2 that client-go asks for, in the spelling of today and the one of clients, which is no media
// type by the rules and therefore not to be found by parsing.
const (
	mediaTypeOpenAPIv2Proto           = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
	mediaTypeOpenAPIv2ProtoDeprecated = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
)

// openAPI serves the documents by which kubectl explains fields and checks what it is about to send: v3 to those of
// today, v2 to older ones.
//
// Upstream: k8s.io/kube-openapi/pkg/handler3/handler.go: OpenAPIService
// Differs: of the server's own kinds, only those of core/v1 are described, once and for all; upstream
// builds the documents from its routes. v3 is JSON only. v2 has no custom resources.
type openAPI struct {
	v3          map[string]*document // by path, such as "api/v1"
	v2, v2Proto *document
}

// document is one description in one form.
type document struct {
	contentType       string
	plain, compressed []byte // compressed is nil of custom resources
	hash              string // of plain; part of the URL of a v3 document, so that the URL's answer never changes
}

// loadOpenAPI unpacks the documents, once for all servers of the process.
var loadOpenAPI = sync.OnceValue(func() *openAPI {
	return &openAPI{
		v3:      map[string]*document{"api/v1": newDocument(negotiation.JSON, gunzip(openAPIv3), openAPIv3)},
		v2:      newDocument(negotiation.JSON, gunzip(openAPIv2), openAPIv2),
		v2Proto: newDocument(mediaTypeOpenAPIv2Proto, gunzip(openAPIv2Proto), openAPIv2Proto),
	}
})

func newDocument(contentType string, plain, compressed []byte) *document {
	return &document{contentType, plain, compressed, fmt.Sprintf("%X", sha256.Sum256(plain))}
}

// gunzip unpacks what is embedded.
func gunzip(data []byte) []byte {
	var plain []byte
	reader, err := gzip.NewReader(bytes.NewReader(data))
	if err == nil {
		plain, err = io.ReadAll(reader)
	}
	if err != nil {
		panic(fmt.Sprintf("apiserver: what is embedded cannot be unpacked: %v", err))
	}
	return plain
}

// serveIndex says which v3 documents there are. The hash makes clients keep theirs until it changes.
func (o *openAPI) serveIndex(w http.ResponseWriter, r *http.Request) {
	paths := map[string]any{}
	for path, document := range o.v3 {
		paths[path] = map[string]string{"serverRelativeURL": "/openapi/v3/" + path + "?hash=" + document.hash}
	}
	writeJSON(w, r, negotiation.JSON, map[string]any{"paths": paths})
}

func (d *document) serveJSON(w http.ResponseWriter, r *http.Request) {
	if accepted(r, negotiation.JSON) == "" {
		handlers.WriteError(w, r, negotiation.NewNotAcceptable([]string{negotiation.JSON}))
		return
	}
	d.serve(w, r)
}

// serveV2 serves the description of before OpenAPI v3.
//
// Upstream: k8s.io/kube-openapi/pkg/handler/handler.go: (*OpenAPIService).RegisterOpenAPIVersionedService
func (o *openAPI) serveV2(w http.ResponseWriter, r *http.Request) {
	switch accepted(r, negotiation.JSON, mediaTypeOpenAPIv2Proto, mediaTypeOpenAPIv2ProtoDeprecated) {
	case "":
		handlers.WriteError(w, r, negotiation.NewNotAcceptable([]string{negotiation.JSON, mediaTypeOpenAPIv2Proto}))
	case negotiation.JSON:
		o.v2.serve(w, r)
	default:
		o.v2Proto.serve(w, r)
	}
}

// accepted returns the form that the client likes best, "" if it accepts none.
func accepted(r *http.Request, forms ...string) string {
	header := r.Header.Get("Accept")
	if header == "" {
		return forms[0]
	}
	return goautoneg.Negotiate(header, forms)
}

// serve writes the document, unless the client says that it has it.
func (d *document) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Etag", `"`+d.hash+`"`)
	w.Header().Set("Vary", "Accept, Accept-Encoding")
	if r.URL.Query().Get("hash") == d.hash {
		w.Header().Set("Cache-Control", "public, immutable, max-age=31536000")
	} else {
		w.Header().Set("Cache-Control", "no-cache")
	}
	w.Header().Set("Content-Type", d.contentType)
	body := d.plain
	if negotiation.AcceptsGzip(r) && d.compressed != nil {
		w.Header().Set("Content-Encoding", "gzip")
		body = d.compressed
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body)) // which compares the Etag
}
