package apiserver

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
)

const aggregatedAccept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList," +
	"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"

func TestDiscoveryInOnePieceNamesEveryResource(t *testing.T) {
	a := newAPI(t)
	w := a.do("GET", "/api", "", "Accept", aggregatedAccept)
	assert.Equal(t, w.Header().Get("Content-Type"), aggregatedType, "content type")
	list := into[apidiscoveryv2.APIGroupDiscoveryList](t, w.Body)
	var names []string
	for _, r := range list.Items[0].Versions[0].Resources {
		names = append(names, r.Resource)
		for _, sub := range r.Subresources {
			names = append(names, r.Resource+"/"+sub.Subresource)
		}
		if r.Resource == "pods" && !slices.Equal(r.Verbs, []string{"create", "delete", "deletecollection", "get",
			"list", "patch", "update", "watch"}) {
			t.Errorf("verbs of pods: got %v", r.Verbs)
		}
	}
	want := []string{"configmaps", "events", "namespaces", "namespaces/finalize", "namespaces/status", "nodes",
		"nodes/status", "pods", "pods/binding", "pods/status"}
	assert.EqualSlices(t, names, want)
	groups := into[apidiscoveryv2.APIGroupDiscoveryList](t, a.do("GET", "/apis", "", "Accept", aggregatedAccept).Body)
	var named []string
	for _, group := range groups.Items {
		for _, r := range group.Versions[0].Resources {
			kind := r.ResponseKind
			named = append(named, group.Name+" "+r.Resource+" "+kind.Group+"/"+kind.Version+" "+kind.Kind)
		}
	}
	if !slices.Equal(named, []string{
		"authentication.k8s.io selfsubjectreviews authentication.k8s.io/v1 SelfSubjectReview",
		"authorization.k8s.io selfsubjectaccessreviews authorization.k8s.io/v1 SelfSubjectAccessReview",
		"authorization.k8s.io selfsubjectrulesreviews authorization.k8s.io/v1 SelfSubjectRulesReview",
		"coordination.k8s.io leases coordination.k8s.io/v1 Lease",
	}) || groups.Kind != "APIGroupDiscoveryList" {
		t.Errorf("groups: got %q of %s", named, groups.Kind)
	}
}

func TestDiscoveryForOlderClientsSaysTheSame(t *testing.T) {
	a := newAPI(t)
	versions := into[metav1.APIVersions](t, a.do("GET", "/api", "").Body)
	assert.EqualSlices(t, versions.Versions, []string{"v1"}, "versions: got %+v", versions)
	groups := into[metav1.APIGroupList](t, a.do("GET", "/apis", "").Body)
	assert.True(t, len(groups.Groups) == 3 && groups.Kind == "APIGroupList", "groups: got %+v", groups)
	for _, group := range groups.Groups {
		alone := into[metav1.APIGroup](t, a.do("GET", "/apis/"+group.Name, "").Body)
		list := into[metav1.APIResourceList](t, a.do("GET", "/apis/"+group.PreferredVersion.GroupVersion, "").Body)
		assert.True(t, alone.Name == group.Name && list.GroupVersion == group.Name+"/v1" && len(list.APIResources) != 0,
			"%s: got %+v, %+v", group.Name, alone, list)
	}
	var lines []string
	for _, r := range into[metav1.APIResourceList](t, a.do("GET", "/api/v1", "").Body).APIResources {
		lines = append(lines, r.Name+" "+r.Kind)
	}
	want := []string{"configmaps ConfigMap", "events Event", "namespaces Namespace", "namespaces/finalize Namespace",
		"namespaces/status Namespace", "nodes Node", "nodes/status Node", "pods Pod", "pods/binding Binding",
		"pods/status Pod"}
	assert.EqualSlices(t, lines, want, "resources")
}

func TestVersionIsThatOfTheMachinery(t *testing.T) {
	info := into[version.Info](t, newAPI(t).do("GET", "/version?timeout=5s", "").Body)
	assert.True(t, info.Major == "1" && info.Minor == "37" && strings.HasPrefix(info.GitVersion, "v1.37.2"),
		"got %+v", info)
}

func TestOpenAPIDocumentIsImmutableUnderItsHash(t *testing.T) {
	a := newAPI(t)
	index := into[struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}](t, a.do("GET", "/openapi/v3", "").Body)
	w := a.do("GET", index.Paths["api/v1"].ServerRelativeURL, "")
	document := into[struct {
		Paths      map[string]map[string]any
		Components struct{ Schemas map[string]any }
	}](t, w.Body)
	if !strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
		t.Errorf("headers: got %v", w.Header())
	}
	for _, kind := range []string{"Pod", "Node", "ConfigMap", "Namespace", "Event", "Binding"} {
		assert.True(t, document.Components.Schemas["io.k8s.api.core.v1."+kind] != nil, "no schema for %s", kind)
	}
	assert.True(t, document.Paths[podsPathPattern]["patch"] != nil,
		"no PATCH of pods, by which kubectl knows that we validate fields")
	if again := a.do("GET", "/openapi/v3/api/v1", "", "If-None-Match",
		w.Header().Get("Etag")); again.Code != http.StatusNotModified {
		t.Errorf("again: got %d", again.Code)
	}
	if small := a.do("GET", "/openapi/v3/api/v1", "", "Accept-Encoding", "gzip"); small.Header().
		Get("Content-Encoding") != "gzip" || small.Body.Len() != len(openAPIv3) {
		t.Errorf("gzip: got %v, %d bytes", small.Header(), small.Body.Len())
	}
}

const podsPathPattern = "/api/v1/namespaces/{namespace}/pods/{name}"

// Every route we serve is in the document, and the document promises none that we do not serve.
func TestOpenAPIDocumentAndRoutesAgree(t *testing.T) {
	a := newAPI(t)
	document := into[struct{ Paths map[string]map[string]any }](t, a.do("GET", "/openapi/v3/api/v1", "").Body)
	fill := strings.NewReplacer("{namespace}", "default", "{name}", "a")
	for path, operations := range document.Paths {
		for method := range operations {
			if method == "parameters" {
				continue
			}
			target := fill.Replace(path)
			if strings.Contains(target, "/watch/") {
				target += "?timeoutSeconds=-1" // refused before it becomes a stream
			}
			if w := a.do(strings.ToUpper(method), target, ""); w.Code == http.StatusMethodNotAllowed ||
				strings.Contains(w.Body.String(), "requested resource") {
				t.Errorf("%s %s: got %d, no such route", method, path, w.Code)
			}
		}
	}
}

func TestHealthSaysWhetherTheCachesAreFilledAndEtcdTakesWrites(t *testing.T) {
	var problem, full error
	a := &api{t: t, handler: New(Config{
		Clock: clock.RealClock{}, Ready: func() error { return problem }, EtcdReady: func() error { return full },
	})}
	for _, path := range []string{"/healthz", "/livez", "/readyz"} {
		w := a.do("GET", path, "")
		assert.True(t, w.Code == 200 && w.Body.String() == "ok", "%s: got %d %s", path, w.Code, w.Body)
		if w := a.do("GET", path+"?verbose", ""); w.Code != 200 || !strings.Contains(w.Body.String(),
			"[+]ping ok\n") || !strings.HasSuffix(w.Body.String(), path[1:]+" check passed\n") {
			t.Errorf("%s?verbose: got %d %s", path, w.Code, w.Body)
		}
	}
	problem = errors.New("pods are not cached")
	if w := a.do("GET", "/readyz", ""); w.Code != 500 || !strings.Contains(w.Body.String(), "pods are not cached") {
		t.Errorf("not ready: got %d %s", w.Code, w.Body)
	}
	problem, full = nil, errors.New("etcd is full")
	if w := a.do("GET", "/readyz", ""); w.Code != 500 || w.Body.String() != "[+]ping ok\n[-]etcd failed: etcd is "+
		"full\n[+]watch-cache ok\nreadyz check failed\n" {
		t.Errorf("etcd is full: got %d %s", w.Code, w.Body)
	}
	w := a.do("GET", "/livez", "")
	assert.Equal(t, w.Code, 200, "not ready, but alive")
}

func TestMetricsCountRequestsUnderUpstreamsNames(t *testing.T) {
	a := newAPI(t)
	a.create(podA)
	a.do("GET", podsPath+"/b", "")
	a.do("GET", podsPath, "")
	a.do("GET", "/api/v1/pods", "")
	a.do("POST", podsPath+"?dryRun=All", strings.Replace(podA, `"a"`, `"b"`, 1))
	a.do("POST", podsPath+"?dryRun=Some", podA)
	body := a.do("GET", "/metrics", "").Body.String()
	for _, want := range []string{
		`apiserver_request_total{code="201",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="",verb="POST",version="v1"} 1`,
		`apiserver_request_total{code="404",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="",verb="GET",version="v1"} 1`,
		`apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="pods",scope="namespace",subresource="",verb="LIST",version="v1"} 1`,
		`apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="pods",scope="cluster",subresource="",verb="LIST",version="v1"} 1`,
		`apiserver_request_total{code="201",component="apiserver",dry_run="All",group="",resource="pods",scope="resource",subresource="",verb="POST",version="v1"} 1`,
		`apiserver_request_total{code="422",component="apiserver",dry_run="invalid",group="",resource="pods",scope="resource",subresource="",verb="POST",version="v1"} 1`,
		`apiserver_request_duration_seconds_count{`,
		`apiserver_response_sizes_count{component="apiserver",group="",resource="pods",scope="namespace",subresource="",verb="LIST",version="v1"} 1`,
		`apiserver_current_inflight_requests{request_kind="readOnly"} 0`,
		`apiserver_current_inflight_requests{request_kind="mutating"} 0`,
	} {
		assert.True(t, strings.Contains(body, want), "no line %s in\n%s", want, body)
	}
}
