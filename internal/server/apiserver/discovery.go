package apiserver

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilversion "k8s.io/apimachinery/pkg/version"

	handlers "listwatch/chapters/08-handlers"
	"listwatch/internal/kube/negotiation"
)

// The version that the server reports: that of the rewritten machinery.
const (
	versionMajor      = "1"
	versionMinor      = "37"
	versionGitVersion = "v1.37.2-listwatch"
)

// aggregatedType is the media type of aggregated discovery.
const aggregatedType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// otherWords are the short names and categories that kubectl accepts instead of a resource's name. A resource that is
// not listed has neither.
//
// Upstream: k8s.io/apiserver/pkg/registry/rest/rest.go: ShortNamesProvider
// Differs: a method of each storage there, as are its categories.
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

// discovery lists the server's resources in two forms: aggregated, in two answers, and group by group, for older
// clients.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/discovery/aggregated/handler.go
type discovery struct {
	core, named *apidiscoveryv2.APIGroupDiscoveryList // at /api, at /apis
	groups      []metav1.APIGroup                     // those that have a name
	resources   map[string]*metav1.APIResourceList    // by the root of their group: "/api/v1"
}

func newDiscovery(installed []*handlers.Scope) *discovery {
	d := &discovery{core: newAggregated(), named: newAggregated(), resources: map[string]*metav1.APIResourceList{}}
	// Paths are sorted: a subresource follows its parent. So are versions: the first one is preferred.
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

// add adds the resources of one group and version.
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

// aggregatedKind is the kind of aggregated discovery in an Accept header.
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

// serveJSON returns a handler that always answers with value.
func serveJSON(value any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { writeJSON(w, r, negotiation.JSON, value) }
}

// writeJSON writes a value that is no API object. Differs: discovery is always JSON.
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
