package handlers

import (
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
)

// The version we say we are: that of the machinery this is a rewriting of.
const (
	versionMajor      = "1"
	versionMinor      = "37"
	versionGitVersion = "v1.37.2-listwatch"
)

// aggregatedType is how discovery in one piece is asked for, and answered.
const aggregatedType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// discovery is what a client is told about what there is. It comes in two ages: one answer that says everything, and
// a chain of answers, group by group, that older clients follow.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/discovery/aggregated/handler.go
type discovery struct {
	aggregated    *apidiscoveryv2.APIGroupDiscoveryList
	aggregatedAll *apidiscoveryv2.APIGroupDiscoveryList // of /apis: no groups
	resources     *metav1.APIResourceList
}

func newDiscovery(installed []apiResource) *discovery {
	d := &discovery{
		aggregated:    newAggregated(),
		aggregatedAll: newAggregated(),
		resources:     &metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{}},
	}
	d.resources.Kind, d.resources.APIVersion = "APIResourceList", "v1"
	byVersion := apidiscoveryv2.APIVersionDiscovery{Version: "v1", Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
	for _, installed := range installed {
		d.resources.APIResources = append(d.resources.APIResources, legacyResource(installed))
		if installed.scope.subresource == "" {
			byVersion.Resources = append(byVersion.Resources, aggregatedResource(installed))
			continue
		}
		// Paths are sorted: a subresource follows its parent.
		parent := &byVersion.Resources[len(byVersion.Resources)-1]
		parent.Subresources = append(parent.Subresources, aggregatedSubresource(installed))
	}
	d.aggregated.Items = []apidiscoveryv2.APIGroupDiscovery{{Versions: []apidiscoveryv2.APIVersionDiscovery{byVersion}}}
	return d
}

// missing says which part of a path there is not, and what there is instead; "" if that cannot be told.
func (d *discovery) missing(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "apis":
		return fmt.Sprintf("there is no %q here, only \"v1\"", parts[1]+"/"+parts[2])
	case len(parts) > 2 && parts[0] == "api" && parts[1] == "v1":
		return d.missingResource(parts[2:])
	}
	return ""
}

// missingResource is missing for a path below /api/v1.
func (d *discovery) missingResource(parts []string) string {
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	wanted, parent := parts[0], ""
	if len(parts) > 2 {
		wanted, parent = parts[0]+"/"+parts[2], parts[0]
	}
	known := slices.ContainsFunc(d.resources.APIResources, func(r metav1.APIResource) bool { return r.Name == parent })
	if !known {
		parent = ""
	}
	var others []string
	for _, r := range d.resources.APIResources {
		resource, subresource, _ := strings.Cut(r.Name, "/")
		if parent == "" && subresource == "" || parent == resource {
			others = append(others, r.Name)
		}
	}
	if len(others) == 0 || slices.Contains(others, wanted) {
		return "" // it is the rest of the path that is wrong
	}
	return fmt.Sprintf("there is no %q here, only %s", wanted, strings.Join(others, ", "))
}

func newAggregated() *apidiscoveryv2.APIGroupDiscoveryList {
	list := &apidiscoveryv2.APIGroupDiscoveryList{Items: []apidiscoveryv2.APIGroupDiscovery{}}
	list.SetGroupVersionKind(apidiscoveryv2.SchemeGroupVersion.WithKind("APIGroupDiscoveryList"))
	return list
}

func legacyResource(installed apiResource) metav1.APIResource {
	s := installed.scope
	resource := metav1.APIResource{
		Name: s.resource.Name, SingularName: s.resource.Singular, Namespaced: s.resource.Namespaced, Kind: s.kind.Kind,
		Verbs: installed.verbs, ShortNames: s.resource.ShortNames, Categories: s.resource.Categories,
	}
	if s.subresource != "" {
		resource.Name += "/" + s.subresource
		resource.SingularName, resource.ShortNames, resource.Categories = "", nil, nil
	}
	return resource
}

func responseKind(s *scope) *metav1.GroupVersionKind {
	return &metav1.GroupVersionKind{Version: "v1", Kind: s.kind.Kind}
}

func scopeName(s *scope) apidiscoveryv2.ResourceScope {
	if s.resource.Namespaced {
		return apidiscoveryv2.ScopeNamespace
	}
	return apidiscoveryv2.ScopeCluster
}

func aggregatedResource(installed apiResource) apidiscoveryv2.APIResourceDiscovery {
	s := installed.scope
	return apidiscoveryv2.APIResourceDiscovery{
		Resource: s.resource.Name, ResponseKind: responseKind(s), Scope: scopeName(s), SingularResource: s.resource.Singular,
		Verbs: installed.verbs, ShortNames: s.resource.ShortNames, Categories: s.resource.Categories,
	}
}

func aggregatedSubresource(installed apiResource) apidiscoveryv2.APISubresourceDiscovery {
	s := installed.scope
	return apidiscoveryv2.APISubresourceDiscovery{Subresource: s.subresource, ResponseKind: responseKind(s), Verbs: installed.verbs}
}

// installDiscovery registers everything that tells clients about the API.
func (s *server) installDiscovery(router chi.Router) {
	get := func(path string, handler http.HandlerFunc) {
		router.Get(path, s.instrument(route{verb: "get"}, handler))
	}
	get("/api", s.api)
	get("/api/v1", s.apiV1)
	get("/apis", s.apis)
	get("/version", s.version)
	get("/openapi/v2", s.openapi.serveV2)
	get("/openapi/v3", s.openapi.serveIndex)
	get("/openapi/v3/api/v1", s.openapi.serveCoreV1)
}

// wantsAggregated reports whether the client understands discovery in one piece.
func wantsAggregated(r *http.Request) bool {
	for _, clause := range parseAccept(r.Header.Get("Accept")) {
		if clause.name != mediaTypeJSON {
			continue
		}
		if clause.params["as"] == "" {
			return false // it prefers the other kind
		}
		if clause.params["as"] == "APIGroupDiscoveryList" && clause.params["g"] == apidiscoveryv2.GroupName && clause.params["v"] == "v2" {
			return true
		}
	}
	return false
}

func (s *server) api(w http.ResponseWriter, r *http.Request) {
	if wantsAggregated(r) {
		writeJSON(w, r, aggregatedType, s.discovery.aggregated)
		return
	}
	versions := &metav1.APIVersions{Versions: []string{"v1"}, ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: r.Host}}}
	versions.Kind = "APIVersions"
	writeJSON(w, r, mediaTypeJSON, versions)
}

func (s *server) apiV1(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, r, mediaTypeJSON, s.discovery.resources)
}

func (s *server) apis(w http.ResponseWriter, r *http.Request) {
	if wantsAggregated(r) {
		writeJSON(w, r, aggregatedType, s.discovery.aggregatedAll)
		return
	}
	groups := &metav1.APIGroupList{Groups: []metav1.APIGroup{}}
	groups.Kind, groups.APIVersion = "APIGroupList", "v1"
	writeJSON(w, r, mediaTypeJSON, groups)
}

func (s *server) version(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, r, mediaTypeJSON, version.Info{
		Major: versionMajor, Minor: versionMinor, GitVersion: versionGitVersion, GitTreeState: "clean",
		GoVersion: runtime.Version(), Compiler: runtime.Compiler, Platform: runtime.GOOS + "/" + runtime.GOARCH,
	})
}

// writeJSON writes what is not an API object. Differs: discovery is JSON whatever is accepted.
func writeJSON(w http.ResponseWriter, r *http.Request, contentType string, value any) {
	body, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		writeError(w, r, err)
		return
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Vary", "Accept")
	writeBody(w, r, http.StatusOK, append(body, '\n'))
}
