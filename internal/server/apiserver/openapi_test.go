package apiserver

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	registry "listwatch/chapters/07-registry"
	handlers "listwatch/chapters/08-handlers"
	"listwatch/internal/check/apitest"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/kube/negotiation"
)

func TestTheOlderDocumentIsToBeHadAsClientsAskForIt(t *testing.T) {
	a := newAPI(t)
	for accept, want := range map[string]string{
		mediaTypeOpenAPIv2ProtoDeprecated: mediaTypeOpenAPIv2Proto, mediaTypeOpenAPIv2Proto: mediaTypeOpenAPIv2Proto,
		"application/json": negotiation.JSON, "": negotiation.JSON, "*/*": negotiation.JSON,
	} {
		w := a.Do("GET", "/openapi/v2", "", "Accept", accept)
		assert.True(t, w.Code == 200 && w.Header().Get("Content-Type") == want && w.Body.Len() >= 100_000,
			"%q: got %d %s, %d bytes", accept, w.Code, w.Header().Get("Content-Type"), w.Body.Len())
	}
	wantStatus(t, a.Do("GET", "/openapi/v2", "", "Accept", "text/html"), 406, metav1.StatusReasonNotAcceptable)
	first := a.Do("GET", "/openapi/v2", "")
	assert.Equal(t, 304, a.Do("GET", "/openapi/v2", "", "If-None-Match", first.Header().Get("Etag")).Code, "again")
}

// TestTheOlderDocumentHasTheSameOperations: v2 and v3 must describe the same operations, each in its version's format.
func TestTheOlderDocumentHasTheSameOperations(t *testing.T) {
	a := newAPI(t)
	var v2 struct {
		Swagger string
		Paths   map[string]map[string]any
	}
	body := a.Do("GET", "/openapi/v2", "").Body.String()
	require.NoError(t, json.Unmarshal([]byte(body), &v2))
	n := 0
	for _, path := range openAPIPaths(a) {
		v3 := into[struct{ Paths map[string]map[string]any }](t, a.Do("GET", path, "").Body).Paths
		n += len(v3)
		for path, operations := range v3 {
			for method := range operations {
				assert.True(t, v2.Paths[path][method] != nil, "no %s %s", method, path)
			}
		}
	}
	assert.True(t, v2.Swagger == "2.0" && len(v2.Paths) == n && !strings.Contains(body, "#/components/"),
		"swagger %s, %d paths, want %d", v2.Swagger, len(v2.Paths), n)
	patch, _ := v2.Paths["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"].(map[string]any)
	consumes, _ := patch["consumes"].([]any)
	assert.Equal(t, len(patchTypes), len(consumes), "a patch consumes %v", consumes)
}

const aggregatedAccept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList," +
	"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"

// TestDiscoverySaysTheSameInBothForms compares the two forms with each other; docs/KINDS.md shows their content.
func TestDiscoverySaysTheSameInBothForms(t *testing.T) {
	a := newAPI(t)
	var aggregated, legacy []string
	line := func(group, name, kind string, verbs []string) string {
		return strings.Join(append([]string{group, name, kind}, verbs...), " ")
	}
	for _, path := range []string{"/api", "/apis"} {
		w := a.Do("GET", path, "", "Accept", aggregatedAccept)
		list := into[apidiscoveryv2.APIGroupDiscoveryList](t, w.Body)
		if got := w.Header().Get("Content-Type"); got != aggregatedType || list.Kind != "APIGroupDiscoveryList" {
			t.Errorf("%s: got content type %s, kind %s", path, got, list.Kind)
		}
		for _, group := range list.Items {
			for _, r := range group.Versions[0].Resources {
				aggregated = append(aggregated, line(group.Name, r.Resource, r.ResponseKind.Kind,
					slices.Concat(r.Verbs, r.ShortNames)))
				for _, sub := range r.Subresources {
					aggregated = append(aggregated, line(group.Name, r.Resource+"/"+sub.Subresource,
						sub.ResponseKind.Kind, sub.Verbs))
				}
			}
		}
	}
	roots := []string{"/api/v1"}
	for _, group := range into[metav1.APIGroupList](t, a.Do("GET", "/apis", "").Body).Groups {
		alone := into[metav1.APIGroup](t, a.Do("GET", "/apis/"+group.Name, "").Body)
		assert.True(t, alone.Kind == "APIGroup" && alone.PreferredVersion == group.PreferredVersion,
			"%s: got %+v", group.Name, alone)
		roots = append(roots, "/apis/"+group.PreferredVersion.GroupVersion)
	}
	for _, root := range roots {
		list := into[metav1.APIResourceList](t, a.Do("GET", root, "").Body)
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		assert.True(t, err == nil && strings.HasSuffix(root, "/"+list.GroupVersion),
			"%s: got %s, %v", root, list.GroupVersion, err)
		for _, r := range list.APIResources {
			legacy = append(legacy, line(gv.Group, r.Name, r.Kind, slices.Concat(r.Verbs, r.ShortNames)))
		}
	}
	diff := cmp.Diff(aggregated, legacy)
	assert.True(t, diff == "" && len(legacy) >= 30, "%d resources (-in one piece +piece by piece):\n%s", len(legacy),
		diff)
	for _, want := range []string{" pods Pod create delete deletecollection get list patch update watch po",
		" pods/binding Binding create", "coordination.k8s.io leases Lease create delete deletecollection get list " +
			"patch update watch", "storage.k8s.io volumeattachments/status VolumeAttachment get patch update"} {
		assert.True(t, slices.Contains(legacy, want), "no %q", want)
	}
	versions := into[metav1.APIVersions](t, a.Do("GET", "/api", "").Body)
	assert.True(t, slices.Equal(versions.Versions, []string{"v1"}), "versions: got %+v", versions)
}

func TestOpenAPIDocumentIsImmutableUnderItsHash(t *testing.T) {
	a := newAPI(t)
	index := into[struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}](t, a.Do("GET", "/openapi/v3", "").Body)
	w := a.Do("GET", index.Paths["api/v1"].ServerRelativeURL, "")
	assert.True(t, strings.Contains(w.Header().Get("Cache-Control"), "immutable"), "headers: got %v", w.Header())
	again := a.Do("GET", "/openapi/v3/api/v1", "", "If-None-Match", w.Header().Get("Etag"))
	assert.True(t, again.Code == http.StatusNotModified, "again: got %d", again.Code)
	small := a.Do("GET", "/openapi/v3/api/v1", "", "Accept-Encoding", "gzip")
	assert.True(t, small.Header().Get("Content-Encoding") == "gzip" && small.Body.Len() <= w.Body.Len()/5,
		"gzip: got %v, %d bytes", small.Header(), small.Body.Len())
}

// TestOpenAPIDocumentsAndRoutesAgree: each operation of a document must have a route, and each kind a PATCH.
func TestOpenAPIDocumentsAndRoutesAgree(t *testing.T) {
	a := newAPI(t)
	fill := strings.NewReplacer("{namespace}", "default", "{name}", "a")
	described := map[string]map[string]any{}
	for _, path := range openAPIPaths(a) {
		document := into[struct{ Paths map[string]map[string]any }](t, a.Do("GET", path, "").Body)
		maps.Copy(described, document.Paths)
		for path, operations := range document.Paths {
			for method := range operations {
				if method == "parameters" {
					continue
				}
				target := fill.Replace(path)
				if strings.Contains(target, "/watch/") {
					target += "?timeoutSeconds=-1" // refused before the stream begins
				}
				w := a.Do(strings.ToUpper(method), target, "")
				assert.True(t, w.Code != http.StatusMethodNotAllowed &&
					!strings.Contains(w.Body.String(), "requested resource"),
					"%s %s: got %d, no such route", method, path, w.Code)
			}
		}
	}
	for _, r := range registry.Resources() {
		path := handlers.Root(r) + "/" + r.Name + "/{name}"
		if r.Namespaced {
			path = handlers.Root(r) + "/namespaces/{namespace}/" + r.Name + "/{name}"
		}
		// The description of a kind's PATCH shows kubectl whether the server validates fields.
		assert.True(t, described[path]["patch"] != nil, "no document describes %s: in internal/check/compat run "+
			"go test -tags full ./kubectl -run TestTheDocuments -update", path)
	}
}

// openAPIPaths returns the paths of the v3 documents.
func openAPIPaths(a *api) (paths []string) {
	index := into[struct{ Paths map[string]any }](a.T, a.Do("GET", "/openapi/v3", "").Body)
	for path := range index.Paths {
		paths = append(paths, "/openapi/v3/"+path)
	}
	return paths
}

func TestHealthSaysWhetherTheCachesAreFilledAndEtcdTakesWrites(t *testing.T) {
	var problem, full error
	a := &api{apitest.API{T: t, Handler: New(Config{
		Config: handlers.Config{Clock: clock.RealClock{}},
		Ready:  func() error { return problem }, EtcdReady: func() error { return full },
	})}}
	for _, path := range []string{"/healthz", "/livez", "/readyz"} {
		w := a.Do("GET", path, "")
		assert.True(t, w.Code == 200 && w.Body.String() == "ok", "%s: got %d %s", path, w.Code, w.Body)
		w = a.Do("GET", path+"?verbose", "")
		assert.True(t, w.Code == 200 && strings.Contains(w.Body.String(), "[+]ping ok\n") &&
			strings.HasSuffix(w.Body.String(), path[1:]+" check passed\n"), "%s?verbose: got %d %s", path, w.Code,
			w.Body)
	}
	problem = errors.New("pods are not cached")
	if w := a.Do("GET", "/readyz", ""); w.Code != 500 || !strings.Contains(w.Body.String(), "pods are not cached") {
		t.Errorf("not ready: got %d %s", w.Code, w.Body)
	}
	problem, full = nil, errors.New("etcd is full")
	if w := a.Do("GET", "/readyz", ""); w.Code != 500 || w.Body.String() != "[+]ping ok\n[-]etcd failed: etcd is "+
		"full\n[+]watch-cache ok\nreadyz check failed\n" {
		t.Errorf("etcd is full: got %d %s", w.Code, w.Body)
	}
	assert.Equal(t, 200, a.Do("GET", "/livez", "").Code, "not ready, but alive")
}

func TestMetricsCountRequestsUnderUpstreamsNames(t *testing.T) {
	a := newAPI(t)
	a.Create(podA)
	a.Do("GET", podsPath+"/b", "")
	a.Do("GET", podsPath+"/b/log", "")
	a.Do("GET", podsPath, "")
	a.Do("GET", "/api/v1/pods", "")
	a.Do("POST", podsPath+"?dryRun=All", strings.Replace(podA, `"a"`, `"b"`, 1))
	a.Do("POST", podsPath+"?dryRun=Some", podA)
	body := a.Do("GET", "/metrics", "").Body.String()
	total := func(code int, dryRun, scope, subresource, verb string) string {
		return fmt.Sprintf(`apiserver_request_total{code="%d",component="apiserver",dry_run=%q,group="",`+
			`resource="pods",scope=%q,subresource=%q,verb=%q,version="v1"} 1`, code, dryRun, scope, subresource, verb)
	}
	for _, want := range []string{
		total(201, "", "resource", "", "POST"), total(404, "", "resource", "", "GET"),
		total(404, "", "resource", "log", "CONNECT"), total(200, "", "namespace", "", "LIST"),
		total(200, "", "cluster", "", "LIST"), total(201, "All", "resource", "", "POST"),
		total(422, "", "resource", "", "POST"), `apiserver_request_duration_seconds_count{`,
		`apiserver_response_sizes_count{component="apiserver",group="",resource="pods",scope="namespace",` +
			`subresource="",verb="LIST",version="v1"} 1`,
		`apiserver_current_inflight_requests{request_kind="readOnly"} 0`,
		`apiserver_current_inflight_requests{request_kind="mutating"} 0`,
	} {
		assert.True(t, strings.Contains(body, want), "no line %s in\n%s", want, body)
	}
}

var update = flag.Bool("update", false, "write the table of docs/KINDS.md")

// TestKindsAreDocumentedFresh compares the table in docs/KINDS.md with discovery.
func TestKindsAreDocumentedFresh(t *testing.T) {
	a := newAPI(t)
	var table strings.Builder
	table.WriteString("| kind | resource | group | verbs | subresources |\n|---|---|---|---|---|\n")
	usual := []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	for _, path := range []string{"/api", "/apis"} {
		list := into[apidiscoveryv2.APIGroupDiscoveryList](t, a.Do("GET", path, "", "Accept", aggregatedAccept).Body)
		for _, group := range list.Items {
			for _, r := range group.Versions[0].Resources {
				verbs := strings.Join(r.Verbs, ", ")
				if slices.Equal(r.Verbs, usual) {
					verbs = "all"
				}
				name := strings.Join(append([]string{r.Resource}, r.ShortNames...), ", ")
				if r.Scope == apidiscoveryv2.ScopeCluster {
					name += "*"
				}
				var parts []string
				for _, sub := range r.Subresources {
					parts = append(parts, sub.Subresource)
				}
				fmt.Fprintf(&table, "| %s | %s | %s | %s | %s |\n", r.ResponseKind.Kind, name, group.Name, verbs,
					strings.Join(parts, ", "))
			}
		}
	}
	const file, begin, end = "../../../docs/KINDS.md", "<!-- made from discovery -->\n", "<!-- end -->\n"
	page := require.Value(os.ReadFile(file))(t)
	before, rest, ok := strings.Cut(string(page), begin)
	old, after, closed := strings.Cut(rest, end)
	switch {
	case !ok || !closed:
		t.Fatalf("%s has no %q and %q", file, begin, end)
	case *update:
		require.NoError(t, os.WriteFile(file, []byte(before+begin+table.String()+end+after), 0o644))
	case old != table.String():
		t.Errorf("%s is stale: run make generate and commit the result; it should say\n%s", file, table.String())
	}
}
