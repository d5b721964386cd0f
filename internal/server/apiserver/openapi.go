package apiserver

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/munnerz/goautoneg"

	handlers "listwatch/chapters/08-handlers"
	"listwatch/internal/kube/negotiation"
)

// The documents that describe the API, zipped: what a kube-apiserver of the version that we are like says of the paths
// that we serve. A test in internal/check/compat/kubectl, part of `make full`, compares them with it, and writes them.
//
//go:embed openapi
var documents embed.FS

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
// Differs: the documents are made once and for all; upstream builds them from its routes. v3 is JSON only.
type openAPI struct {
	v3 map[string]document // by path, such as "api/v1"
	v2 document
}

// document is one description in each of its forms, by media type.
type document map[string]*form

// form is a description as it is sent.
type form struct {
	contentType string
	zipped      []byte
	hash        string // part of the URL of a v3 document, so that the URL's answer never changes
}

// loadOpenAPI reads the documents, once for all servers of the process.
var loadOpenAPI = sync.OnceValue(newOpenAPI)

func newOpenAPI() *openAPI {
	proto := embedded(mediaTypeOpenAPIv2Proto, "openapi/v2.pb.gz")
	all := &openAPI{v3: map[string]document{}, v2: document{
		negotiation.JSON:        embedded(negotiation.JSON, "openapi/v2.json.gz"),
		mediaTypeOpenAPIv2Proto: proto, mediaTypeOpenAPIv2ProtoDeprecated: proto,
	}}
	err := fs.WalkDir(documents, "openapi/v3", func(file string, entry fs.DirEntry, err error) error {
		if root, ok := strings.CutSuffix(file, ".json.gz"); ok {
			all.v3[strings.TrimPrefix(root, "openapi/v3/")] = document{
				negotiation.JSON: embedded(negotiation.JSON, file)}
		}
		return err
	})
	if err != nil {
		panic(fmt.Sprintf("apiserver: documents: %v", err)) // they are part of the program
	}
	return all
}

func embedded(contentType, file string) *form {
	zipped, err := documents.ReadFile(file)
	if err != nil {
		panic(fmt.Sprintf("apiserver: document: %v", err)) // it is part of the program
	}
	return &form{contentType, zipped, fmt.Sprintf("%X", sha256.Sum256(zipped))}
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
	body := chosen.zipped
	if negotiation.AcceptsGzip(r) {
		w.Header().Set("Content-Encoding", "gzip")
	} else {
		body = gunzip(body)
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body)) // which compares the Etag
}
