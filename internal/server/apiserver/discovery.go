package apiserver

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/munnerz/goautoneg"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilversion "k8s.io/apimachinery/pkg/version"

	handlers "listwatch/chapters/08-handlers"
	"listwatch/internal/kube/negotiation"
)

// The server reports the version of the Kubernetes code that the project rewrites.
const (
	versionMajor      = "1"
	versionMinor      = "37"
	versionGitVersion = "v1.37.2-listwatch"
)

// aggregatedType is the media type of aggregated discovery.
const aggregatedType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// otherWords are the short names and categories that kubectl accepts instead of a resource's name. Resources that are
// not listed have neither.
//
// Upstream: k8s.io/apiserver/pkg/registry/rest/rest.go: ShortNamesProvider
// Differs: upstream's storages have methods for short names and for categories.
var otherWords = map[string]struct{ short, categories []string }{
	"configmaps":             {short: []string{"cm"}},
	"deployments":            {[]string{"deploy"}, inAll},
	"events":                 {short: []string{"ev"}},
	"namespaces":             {short: []string{"ns"}},
	"nodes":                  {short: []string{"no"}},
	"persistentvolumeclaims": {short: []string{"pvc"}},
	"persistentvolumes":      {short: []string{"pv"}},
	"poddisruptionbudgets":   {short: []string{"pdb"}},
	"pods":                   {[]string{"po"}, inAll},
	"replicasets":            {[]string{"rs"}, inAll},
	"replicationcontrollers": {[]string{"rc"}, inAll},
	"serviceaccounts":        {short: []string{"sa"}},
	"services":               {[]string{"svc"}, inAll},
	"statefulsets":           {[]string{"sts"}, inAll},
	"storageclasses":         {short: []string{"sc"}},
}

var inAll = []string{"all"}

// discovery lists the server's resources in two forms: aggregated, as two documents, and for older clients as lists of
// groups and one document for each group version.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/discovery/aggregated/handler.go
type discovery struct {
	core, named *apidiscoveryv2.APIGroupDiscoveryList // the documents at /api and at /apis
	groups      []metav1.APIGroup                     // the groups with a name
	resources   map[string]*metav1.APIResourceList    // by path: "/api/v1"
}

func newDiscovery(installed []*handlers.Scope) *discovery {
	d := &discovery{core: newAggregated(), named: newAggregated(), resources: map[string]*metav1.APIResourceList{}}
	// installed is sorted by path, so a subresource follows its parent. A group's preferred version comes first.
	byGroup := map[schema.GroupVersion][]*handlers.Scope{}
	for _, s := range installed {
		byGroup[s.Resource.GroupVersion] = append(byGroup[s.Resource.GroupVersion], s)
	}
	compare := func(a, b schema.GroupVersion) int {
		return cmp.Or(strings.Compare(a.Group, b.Group),
			utilversion.CompareKubeAwareVersionStrings(b.Version, a.Version))
	}
	for _, gv := range slices.SortedFunc(maps.Keys(byGroup), compare) {
		d.add(gv, byGroup[gv])
	}
	return d
}

// add adds the resources of one group version.
func (d *discovery) add(gv schema.GroupVersion, scopes []*handlers.Scope) {
	list := &metav1.APIResourceList{GroupVersion: gv.String()}
	list.Kind, list.APIVersion = "APIResourceList", "v1"
	d.resources[handlers.Root(scopes[0].Resource)] = list
	byVersion := apidiscoveryv2.APIVersionDiscovery{
		Version: gv.Version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent,
	}
	for _, s := range scopes {
		r, kind, words := s.Resource, metav1.GroupVersionKind(s.Kind), otherWords[s.Resource.Name]
		singular := strings.ToLower(r.Kind)
		if s.Subresource != "" {
			legacy := metav1.APIResource{Name: r.Name + "/" + s.Subresource, Namespaced: r.Namespaced, Kind: kind.Kind,
				Verbs: s.Verbs}
			if s.Kind.GroupVersion() != gv {
				legacy.Group, legacy.Version = kind.Group, kind.Version
			}
			list.APIResources = append(list.APIResources, legacy)
			parent := &byVersion.Resources[len(byVersion.Resources)-1]
			parent.Subresources = append(parent.Subresources, apidiscoveryv2.APISubresourceDiscovery{
				Subresource: s.Subresource, ResponseKind: &kind, Verbs: s.Verbs})
			continue
		}
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: r.Name, SingularName: singular,
			Namespaced: r.Namespaced, Kind: r.Kind, Verbs: s.Verbs,
			ShortNames: words.short, Categories: words.categories})
		scope := apidiscoveryv2.ScopeCluster
		if r.Namespaced {
			scope = apidiscoveryv2.ScopeNamespace
		}
		byVersion.Resources = append(byVersion.Resources, apidiscoveryv2.APIResourceDiscovery{Resource: r.Name,
			SingularResource: singular, ResponseKind: &kind, Scope: scope, Verbs: s.Verbs, ShortNames: words.short,
			Categories: words.categories})
	}
	group := apidiscoveryv2.APIGroupDiscovery{Versions: []apidiscoveryv2.APIVersionDiscovery{byVersion}}
	if group.Name = gv.Group; gv.Group == "" {
		d.core.Items = append(d.core.Items, group)
		return
	}
	version := metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version}
	if last := len(d.groups) - 1; last >= 0 && d.groups[last].Name == gv.Group {
		d.groups[last].Versions = append(d.groups[last].Versions, version)
		d.named.Items[last].Versions = append(d.named.Items[last].Versions, byVersion)
		return
	}
	d.named.Items = append(d.named.Items, group)
	d.groups = append(d.groups, metav1.APIGroup{
		Name: gv.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version,
	})
}

func newAggregated() *apidiscoveryv2.APIGroupDiscoveryList {
	list := &apidiscoveryv2.APIGroupDiscoveryList{Items: []apidiscoveryv2.APIGroupDiscovery{}}
	list.SetGroupVersionKind(aggregatedKind)
	return list
}

// install registers the routes of discovery and of the server's version.
func (d *discovery) install(server *handlers.Server) {
	get := func(path string, handler http.HandlerFunc) {
		server.Handle(nil, http.MethodGet, path, "get", handler)
	}
	get("/api", d.api)
	get("/apis", d.apis)
	for root, list := range d.resources {
		get(root, serveJSON(list))
	}
	for _, group := range d.groups {
		group.Kind, group.APIVersion = "APIGroup", "v1"
		get("/apis/"+group.Name, serveJSON(group))
	}
	get("/version", serveJSON(utilversion.Info{
		Major: versionMajor, Minor: versionMinor, GitVersion: versionGitVersion, GitTreeState: "clean",
		GoVersion: runtime.Version(), Compiler: runtime.Compiler, Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}))
}

// aggregatedKind is the kind in the Accept header of a client that wants aggregated discovery.
var aggregatedKind = apidiscoveryv2.SchemeGroupVersion.WithKind("APIGroupDiscoveryList")

// wantsAggregated reports whether the client prefers aggregated discovery.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/discovery/aggregated/negotiation.go: DiscoveryEndpointRestrictions
func wantsAggregated(r *http.Request) bool {
	media, ok := negotiation.Accept(r.Header.Get("Accept"), func(target *schema.GroupVersionKind) bool {
		return target == nil || *target == aggregatedKind
	})
	return ok && media.Name == negotiation.JSON && media.Convert != nil
}

func (d *discovery) api(w http.ResponseWriter, r *http.Request) {
	if wantsAggregated(r) {
		writeJSON(w, r, aggregatedType, d.core)
		return
	}
	versions := &metav1.APIVersions{Versions: []string{"v1"},
		ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0",
			ServerAddress: r.Host}}}
	versions.Kind = "APIVersions"
	writeJSON(w, r, negotiation.JSON, versions)
}

func (d *discovery) apis(w http.ResponseWriter, r *http.Request) {
	if wantsAggregated(r) {
		writeJSON(w, r, aggregatedType, d.named)
		return
	}
	groups := &metav1.APIGroupList{Groups: d.groups}
	groups.Kind, groups.APIVersion = "APIGroupList", "v1"
	writeJSON(w, r, negotiation.JSON, groups)
}

// serveJSON returns a handler that answers with value, always as JSON.
func serveJSON(value any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { writeJSON(w, r, negotiation.JSON, value) }
}

// writeJSON writes a value that is not an API object. Differs: discovery is always JSON.
func writeJSON(w http.ResponseWriter, r *http.Request, contentType string, value any) {
	body, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		handlers.WriteError(w, r, err)
		return
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Vary", "Accept")
	handlers.WriteBody(w, r, http.StatusOK, append(body, '\n'))
}

// documents are a kube-apiserver's OpenAPI documents, gzipped, with our version and only the paths that we serve. A
// test in internal/check/compat/kubectl, part of `make full`, compares them with the original; -update writes them.
//
//go:embed openapi
var documents embed.FS

// The media type of OpenAPI v2 as protobuf, and the deprecated spelling that clients send. The deprecated one is not a
// valid media type, so parsing fails for it.
const (
	mediaTypeOpenAPIv2Proto           = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
	mediaTypeOpenAPIv2ProtoDeprecated = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
)

// openAPI serves the documents with which kubectl explains fields and checks objects: v3, and v2 for older clients.
//
// Upstream: k8s.io/kube-openapi/pkg/handler3/handler.go: OpenAPIService
// Differs: the documents are fixed; upstream builds them from its routes. v3 is JSON only.
type openAPI struct {
	v3 map[string]document // by path, such as "api/v1"
	v2 document
}

// document is one OpenAPI document in each form that can be served, by media type.
type document map[string]*form

// form is a document in one media type. A client that does not accept gzip gets it unpacked.
type form struct {
	contentType string
	zipped      []byte
	hash        string // the Etag; also part of a v3 document's URL, so that a URL's response never changes
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
		panic(fmt.Sprintf("apiserver: documents: %v", err)) // the documents are part of the program
	}
	return all
}

func embedded(contentType, file string) *form {
	zipped, err := documents.ReadFile(file)
	if err != nil {
		panic(fmt.Sprintf("apiserver: document: %v", err)) // the file is part of the program
	}
	return &form{contentType, zipped, fmt.Sprintf("%X", sha256.Sum256(zipped))}
}

// gunzip unpacks embedded data. It panics if the data is not a gzip file.
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

// install registers the documents, and the index of v3. The index has a hash for each document: a client uses its copy
// until the hash changes.
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

// serve answers with the form that the client prefers, by default JSON. It answers 304 if the client has this form
// already, and 406 if the client accepts no form.
//
// Upstream: k8s.io/kube-openapi/pkg/handler/handler.go: (*OpenAPIService).RegisterOpenAPIVersionedService
func (d document) serve(w http.ResponseWriter, r *http.Request) {
	types := slices.Sorted(maps.Keys(d))
	slices.Reverse(types) // JSON first, for a client that accepts anything
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
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body)) // compares the Etag with If-None-Match
}
