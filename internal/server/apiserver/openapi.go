package apiserver

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	_ "embed" // for the documents
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
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
	v3 map[string]document // by path, such as "api/v1"
	v2 document
}

// document is one description in each of its forms, by the media type as which clients ask for it.
type document map[string]*form

// form is a description as it is sent.
type form struct {
	contentType       string
	plain, compressed []byte // compressed is nil of custom resources
	hash              string // of plain; part of the URL of a v3 document, so that the URL's answer never changes
}

// loadOpenAPI unpacks the documents, once for all servers of the process.
var loadOpenAPI = sync.OnceValue(newOpenAPI)

func newOpenAPI() *openAPI {
	proto := newForm(mediaTypeOpenAPIv2Proto, gunzip(openAPIv2Proto), openAPIv2Proto)
	return &openAPI{
		v3: map[string]document{"api/v1": {negotiation.JSON: newForm(negotiation.JSON, gunzip(openAPIv3), openAPIv3)}},
		v2: document{negotiation.JSON: newForm(negotiation.JSON, gunzip(openAPIv2), openAPIv2),
			mediaTypeOpenAPIv2Proto: proto, mediaTypeOpenAPIv2ProtoDeprecated: proto},
	}
}

func newForm(contentType string, plain, compressed []byte) *form {
	return &form{contentType, plain, compressed, fmt.Sprintf("%X", sha256.Sum256(plain))}
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

// install registers the documents, and the index of those of v3, in which a hash makes clients keep theirs until it
// changes.
func (o *openAPI) install(server *handlers.Server) {
	paths := map[string]any{}
	for path, document := range o.v3 {
		url := "/openapi/v3/" + path
		paths[path] = map[string]string{"serverRelativeURL": url + "?hash=" + document[negotiation.JSON].hash}
		server.Handle(nil, http.MethodGet, url, "get", document.serve)
	}
	server.Handle(nil, http.MethodGet, "/openapi/v3", "get", serveJSON(map[string]any{"paths": paths}))
	server.Handle(nil, http.MethodGet, "/openapi/v2", "get", o.v2.serve)
}

// serve answers with the form that the client likes best, JSON if it does not say, unless the client says that it has
// it.
//
// Upstream: k8s.io/kube-openapi/pkg/handler/handler.go: (*OpenAPIService).RegisterOpenAPIVersionedService
func (d document) serve(w http.ResponseWriter, r *http.Request) {
	types := slices.Sorted(maps.Keys(d))
	slices.Reverse(types) // JSON first, for a client that takes anything
	chosen := d[goautoneg.Negotiate(cmp.Or(r.Header.Get("Accept"), negotiation.JSON), types)]
	if chosen == nil {
		handlers.WriteError(w, r, negotiation.NewNotAcceptable(types))
		return
	}
	w.Header().Set("Etag", `"`+chosen.hash+`"`)
	w.Header().Set("Vary", "Accept, Accept-Encoding")
	if r.URL.Query().Get("hash") == chosen.hash {
		w.Header().Set("Cache-Control", "public, immutable, max-age=31536000")
	} else {
		w.Header().Set("Cache-Control", "no-cache")
	}
	w.Header().Set("Content-Type", chosen.contentType)
	body := chosen.plain
	if negotiation.AcceptsGzip(r) && chosen.compressed != nil {
		w.Header().Set("Content-Encoding", "gzip")
		body = chosen.compressed
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body)) // which compares the Etag
}
