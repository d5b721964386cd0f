package handlers

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed" // for the document
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// coreV1OpenAPI is the OpenAPI v3 document of core/v1, cut down to the resources there are, gzipped. It is data made
// from the document that client-go carries for its tests; internal/tools/openapi makes it.
//
//go:embed openapi_v1.json.gz
var coreV1OpenAPI []byte

// openAPI serves the documents by which kubectl explains fields and checks what it is about to send.
//
// Upstream: k8s.io/kube-openapi/pkg/handler3/handler.go: OpenAPIService
type openAPI struct {
	plain []byte
	hash  string // of plain; part of the document's URL, so that the URL's answer never changes
}

// loadOpenAPI unpacks the document, once for all servers of the process.
var loadOpenAPI = sync.OnceValue(newOpenAPI)

func newOpenAPI() *openAPI {
	plain, err := gunzip(coreV1OpenAPI)
	if err != nil {
		panic(fmt.Sprintf("handlers: embedded OpenAPI document: %v", err))
	}
	return &openAPI{plain: plain, hash: fmt.Sprintf("%X", sha256.Sum256(plain))}
}

// gunzip unpacks what is embedded.
func gunzip(data []byte) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(reader)
}

// serveIndex says which documents there are. The hash makes clients keep theirs until it changes.
func (o *openAPI) serveIndex(w http.ResponseWriter, r *http.Request) {
	type document struct {
		ServerRelativeURL string `json:"serverRelativeURL"`
	}
	paths := map[string]document{"api/v1": {ServerRelativeURL: "/openapi/v3/api/v1?hash=" + o.hash}}
	writeJSON(w, r, mediaTypeJSON, map[string]any{"paths": paths})
}

func (o *openAPI) serveCoreV1(w http.ResponseWriter, r *http.Request) {
	if !acceptsJSON(r) {
		writeError(w, r, newNotAcceptable([]string{mediaTypeJSON}))
		return
	}
	etag := `"` + o.hash + `"`
	w.Header().Set("Etag", etag)
	w.Header().Set("Vary", "Accept, Accept-Encoding")
	if r.URL.Query().Get("hash") == o.hash {
		w.Header().Set("Cache-Control", "public, immutable, max-age=31536000")
	} else {
		w.Header().Set("Cache-Control", "no-cache")
	}
	if strings.Contains(r.Header.Get("If-None-Match"), etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", mediaTypeJSON)
	if !acceptsGzip(r) {
		_, _ = w.Write(o.plain)
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	_, _ = w.Write(coreV1OpenAPI)
}

// serveV2 answers clients of before OpenAPI v3 that there is an API, and nothing about it.
func (o *openAPI) serveV2(w http.ResponseWriter, r *http.Request) {
	if !acceptsJSON(r) {
		writeError(w, r, newNotAcceptable([]string{mediaTypeJSON}))
		return
	}
	writeJSON(w, r, mediaTypeJSON, map[string]any{
		"swagger":     "2.0",
		"info":        map[string]string{"title": "listwatch", "version": versionGitVersion, "description": "See /openapi/v3."},
		"paths":       map[string]any{},
		"definitions": map[string]any{},
	})
}

func acceptsJSON(r *http.Request) bool {
	header := r.Header.Get("Accept")
	if header == "" {
		return true
	}
	for _, clause := range parseAccept(header) {
		if name, ok := servedType(clause.name); ok && name == mediaTypeJSON {
			return true
		}
	}
	return false
}
