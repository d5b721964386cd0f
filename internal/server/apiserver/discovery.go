package apiserver

import (
	"encoding/json"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"

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

// discovery tells a client which resources the server has. It comes in two forms: two answers that say everything, and
// a chain of answers, group by group, that older clients follow.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/discovery/aggregated/handler.go
type discovery struct {
	core, named *apidiscoveryv2.APIGroupDiscoveryList // at /api, at /apis
	groups      []metav1.APIGroup                     // those that have a name
	resources   map[string]*metav1.APIResourceList    // by the root of their group: "/api/v1"
}

func newDiscovery(installed []*handlers.Scope) *discovery {
	d := &discovery{core: newAggregated(), named: newAggregated(), resources: map[string]*metav1.APIResourceList{}}
	// Paths are sorted: a subresource follows its parent.
	byGroup := map[schema.GroupVersion][]*handlers.Scope{}
	for _, s := range installed {
		byGroup[s.Resource.GroupVersion] = append(byGroup[s.Resource.GroupVersion], s)
	}
	compare := func(a, b schema.GroupVersion) int { return strings.Compare(a.String(), b.String()) }
	for _, gv := range slices.SortedFunc(maps.Keys(byGroup), compare) {
		d.add(gv, byGroup[gv])
	}
	return d
}

// add notes the resources of one group.
func (d *discovery) add(gv schema.GroupVersion, scopes []*handlers.Scope) {
	list := &metav1.APIResourceList{GroupVersion: gv.String()}
	list.Kind, list.APIVersion = "APIResourceList", "v1"
	d.resources[scopes[0].Resource.Root()] = list
	byVersion := apidiscoveryv2.APIVersionDiscovery{
		Version: gv.Version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent,
	}
	for _, s := range scopes {
		list.APIResources = append(list.APIResources, legacyResource(s))
		if s.Subresource == "" {
			byVersion.Resources = append(byVersion.Resources, aggregatedResource(s))
			continue
		}
		parent := &byVersion.Resources[len(byVersion.Resources)-1]
		parent.Subresources = append(parent.Subresources, aggregatedSubresource(s))
	}
	group := apidiscoveryv2.APIGroupDiscovery{Versions: []apidiscoveryv2.APIVersionDiscovery{byVersion}}
	if group.Name = gv.Group; gv.Group == "" {
		d.core.Items = append(d.core.Items, group)
		return
	}
	d.named.Items = append(d.named.Items, group)
	version := metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version}
	d.groups = append(d.groups, metav1.APIGroup{
		Name: gv.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version,
	})
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
	if s.Kind.GroupVersion() != s.Resource.GroupVersion {
		resource.Group, resource.Version = s.Kind.Group, s.Kind.Version
	}
	return resource
}

func responseKind(s *handlers.Scope) *metav1.GroupVersionKind {
	return &metav1.GroupVersionKind{Group: s.Kind.Group, Version: s.Kind.Version, Kind: s.Kind.Kind}
}

func scopeName(s *handlers.Scope) apidiscoveryv2.ResourceScope {
	if s.Resource.Namespaced {
		return apidiscoveryv2.ScopeNamespace
	}
	return apidiscoveryv2.ScopeCluster
}

func aggregatedResource(s *handlers.Scope) apidiscoveryv2.APIResourceDiscovery {
	return apidiscoveryv2.APIResourceDiscovery{
		Resource: s.Resource.Name, ResponseKind: responseKind(s), Scope: scopeName(s),
		SingularResource: s.Resource.Singular,
		Verbs:            s.Verbs, ShortNames: s.Resource.ShortNames, Categories: s.Resource.Categories,
	}
}

func aggregatedSubresource(s *handlers.Scope) apidiscoveryv2.APISubresourceDiscovery {
	return apidiscoveryv2.APISubresourceDiscovery{Subresource: s.Subresource, ResponseKind: responseKind(s),
		Verbs: s.Verbs}
}

// installDiscovery registers everything that tells clients about the API.
func (a *apiServer) installDiscovery() {
	get := func(path string, handler http.HandlerFunc) {
		a.server.Handle(nil, http.MethodGet, path, "get", handler)
	}
	get("/api", a.api)
	get("/apis", a.apis)
	for root, list := range a.discovery.resources {
		get(root, func(w http.ResponseWriter, r *http.Request) { writeJSON(w, r, negotiation.JSON, list) })
	}
	for _, group := range a.discovery.groups {
		group.Kind, group.APIVersion = "APIGroup", "v1"
		get("/apis/"+group.Name, func(w http.ResponseWriter, r *http.Request) {
			writeJSON(w, r, negotiation.JSON,
				group)
		})
	}
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
		writeJSON(w, r, aggregatedType, a.discovery.core)
		return
	}
	versions := &metav1.APIVersions{Versions: []string{"v1"},
		ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0",
			ServerAddress: r.Host}}}
	versions.Kind = "APIVersions"
	writeJSON(w, r, negotiation.JSON, versions)
}

func (a *apiServer) apis(w http.ResponseWriter, r *http.Request) {
	if wantsAggregated(r) {
		writeJSON(w, r, aggregatedType, a.discovery.named)
		return
	}
	groups := &metav1.APIGroupList{Groups: a.discovery.groups}
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
