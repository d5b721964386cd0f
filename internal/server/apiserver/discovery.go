package apiserver

import (
	"encoding/json"
	"net/http"
	"runtime"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	handlers "listwatch/chapters/08-handlers"
	"listwatch/internal/kube/negotiation"
)

// The version we say we are: that of the machinery this is a rewriting of.
const (
	versionMajor      = "1"
	versionMinor      = "37"
	versionGitVersion = "v1.37.2-listwatch"
)

// aggregatedType is how discovery in one piece is asked for, and answered.
const aggregatedType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// discovery tells a client which resources the server has. It comes in two forms: one answer that says everything, and
// a chain of answers, group by group, that older clients follow.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/discovery/aggregated/handler.go
type discovery struct {
	aggregated    *apidiscoveryv2.APIGroupDiscoveryList
	aggregatedAll *apidiscoveryv2.APIGroupDiscoveryList // of /apis: no groups
	resources     *metav1.APIResourceList
}

func newDiscovery(installed []*handlers.Scope) *discovery {
	d := &discovery{
		aggregated:    newAggregated(),
		aggregatedAll: newAggregated(),
		resources:     &metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{}},
	}
	d.resources.Kind, d.resources.APIVersion = "APIResourceList", "v1"
	byVersion := apidiscoveryv2.APIVersionDiscovery{Version: "v1", Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
	for _, s := range installed {
		d.resources.APIResources = append(d.resources.APIResources, legacyResource(s))
		if s.Subresource == "" {
			byVersion.Resources = append(byVersion.Resources, aggregatedResource(s))
			continue
		}
		// Paths are sorted: a subresource follows its parent.
		parent := &byVersion.Resources[len(byVersion.Resources)-1]
		parent.Subresources = append(parent.Subresources, aggregatedSubresource(s))
	}
	d.aggregated.Items = []apidiscoveryv2.APIGroupDiscovery{{Versions: []apidiscoveryv2.APIVersionDiscovery{byVersion}}}
	return d
}

func newAggregated() *apidiscoveryv2.APIGroupDiscoveryList {
	list := &apidiscoveryv2.APIGroupDiscoveryList{Items: []apidiscoveryv2.APIGroupDiscovery{}}
	list.SetGroupVersionKind(aggregatedKind)
	return list
}

func legacyResource(s *handlers.Scope) metav1.APIResource {
	resource := metav1.APIResource{
		Name: s.Resource.Name, SingularName: s.Resource.Singular, Namespaced: s.Resource.Namespaced, Kind: s.Kind.Kind,
		Verbs: s.Verbs, ShortNames: s.Resource.ShortNames, Categories: s.Resource.Categories,
	}
	if s.Subresource != "" {
		resource.Name += "/" + s.Subresource
		resource.SingularName, resource.ShortNames, resource.Categories = "", nil, nil
	}
	return resource
}

func responseKind(s *handlers.Scope) *metav1.GroupVersionKind {
	return &metav1.GroupVersionKind{Version: "v1", Kind: s.Kind.Kind}
}

func scopeName(s *handlers.Scope) apidiscoveryv2.ResourceScope {
	if s.Resource.Namespaced {
		return apidiscoveryv2.ScopeNamespace
	}
	return apidiscoveryv2.ScopeCluster
}

func aggregatedResource(s *handlers.Scope) apidiscoveryv2.APIResourceDiscovery {
	return apidiscoveryv2.APIResourceDiscovery{
		Resource: s.Resource.Name, ResponseKind: responseKind(s), Scope: scopeName(s), SingularResource: s.Resource.Singular,
		Verbs: s.Verbs, ShortNames: s.Resource.ShortNames, Categories: s.Resource.Categories,
	}
}

func aggregatedSubresource(s *handlers.Scope) apidiscoveryv2.APISubresourceDiscovery {
	return apidiscoveryv2.APISubresourceDiscovery{Subresource: s.Subresource, ResponseKind: responseKind(s), Verbs: s.Verbs}
}

// installDiscovery registers everything that tells clients about the API.
func (a *apiServer) installDiscovery() {
	get := func(path string, handler http.HandlerFunc) {
		a.server.Handle(nil, http.MethodGet, path, "get", handler)
	}
	get("/api", a.api)
	get("/api/v1", a.apiV1)
	get("/apis", a.apis)
	get("/version", a.version)
	get("/openapi/v2", a.openapi.serveV2)
	get("/openapi/v3", a.openapi.serveIndex)
	get("/openapi/v3/api/v1", a.openapi.serveCoreV1)
}

// aggregatedKind is what discovery in one piece is called in an Accept header.
var aggregatedKind = apidiscoveryv2.SchemeGroupVersion.WithKind("APIGroupDiscoveryList")

// wantsAggregated reports whether the client prefers discovery in one piece.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/discovery/aggregated/negotiation.go: DiscoveryEndpointRestrictions
func wantsAggregated(r *http.Request) bool {
	media, ok := negotiation.Accept(r.Header.Get("Accept"), func(target *schema.GroupVersionKind) bool {
		return target == nil || *target == aggregatedKind
	})
	return ok && media.Name == negotiation.JSON && media.Convert != nil
}

func (a *apiServer) api(w http.ResponseWriter, r *http.Request) {
	if wantsAggregated(r) {
		writeJSON(w, r, aggregatedType, a.discovery.aggregated)
		return
	}
	versions := &metav1.APIVersions{Versions: []string{"v1"}, ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: r.Host}}}
	versions.Kind = "APIVersions"
	writeJSON(w, r, negotiation.JSON, versions)
}

func (a *apiServer) apiV1(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, r, negotiation.JSON, a.discovery.resources)
}

func (a *apiServer) apis(w http.ResponseWriter, r *http.Request) {
	if wantsAggregated(r) {
		writeJSON(w, r, aggregatedType, a.discovery.aggregatedAll)
		return
	}
	groups := &metav1.APIGroupList{Groups: []metav1.APIGroup{}}
	groups.Kind, groups.APIVersion = "APIGroupList", "v1"
	writeJSON(w, r, negotiation.JSON, groups)
}

func (a *apiServer) version(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, r, negotiation.JSON, version.Info{
		Major: versionMajor, Minor: versionMinor, GitVersion: versionGitVersion, GitTreeState: "clean",
		GoVersion: runtime.Version(), Compiler: runtime.Compiler, Platform: runtime.GOOS + "/" + runtime.GOARCH,
	})
}

// writeJSON writes what is not an API object. Differs: discovery is JSON whatever is accepted.
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
