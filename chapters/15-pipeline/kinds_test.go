package pipeline

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/clock"

	etcd3 "listwatch/chapters/02-etcd3"
	registry "listwatch/chapters/07-registry"
	handlers "listwatch/chapters/08-handlers"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
	"listwatch/internal/server/mvcc"
)

// kindTest is what a client does with the objects of one kind.
type kindTest struct {
	t        *testing.T
	w        *world
	resource *registry.Resource
	path     string // of the collection
	first    string // the version of the first object
}

// serve runs body with a server on etcd.
func (k *kindTest) serve(etcd etcd3.Client, body func()) {
	k.w = newWorld(k.t, func(s *ServerConfig, c *ClientConfig) { s.Client, c.Controllers = etcd, nil })
	defer k.w.stop()
	if err := k.w.WaitReady(k.t.Context()); err != nil {
		k.t.Fatal(err)
	}
	body()
}

// send sends a request and fails the test unless it is answered with code.
func (k *kindTest) send(method, path, contentType, body string, code int) *httptest.ResponseRecorder {
	k.t.Helper()
	request := httptest.NewRequestWithContext(k.t.Context(), method, k.path+path, strings.NewReader(body))
	request.Header.Set("Content-Type", contentType)
	if accept, ok := strings.CutPrefix(contentType, "accept "); ok {
		request.Header.Set("Accept", accept)
	}
	answer := httptest.NewRecorder()
	k.w.Server.Handler().ServeHTTP(answer, request)
	if answer.Code != code {
		k.t.Fatalf("%s %s %s: got %d %s, want %d", method, path, body, answer.Code, answer.Body, code)
	}
	return answer
}

// object sends a request whose answer is an object or a list.
func (k *kindTest) object(method, path, contentType, body string, code int) *unstructured.Unstructured {
	k.t.Helper()
	obj := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(k.send(method, path, contentType, body, code).Body.Bytes(), &obj.Object); err != nil {
		k.t.Fatal(err)
	}
	return obj
}

func (k *kindTest) create(name string) *unstructured.Unstructured {
	k.t.Helper()
	return k.object("POST", "", "application/json", k.body(name, `"labels":{"l":"`+name+`"},"finalizers":["x/a"],
		"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n","uid":"1"}]`), 201)
}

func (k *kindTest) body(name, rest string) string {
	spec := ""
	if k.resource.GroupVersion.Group == "apps" { // what pods are made from cannot be left out
		spec = `,"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{
			"containers":[{"name":"c","image":"i"}]}}}`
	}
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q,%s}%s}`, k.resource.GroupVersion.String(),
		k.resource.Kind, name, rest, spec)
}

// watch returns the types and names of the events from a version on.
func (k *kindTest) watch(version string) string {
	k.t.Helper()
	body := k.send("GET", "?watch=1&timeoutSeconds=1&resourceVersion="+version, "", "", 200).Body
	var seen []string
	for decoder := json.NewDecoder(body); decoder.More(); {
		var event struct {
			Type   string
			Object struct {
				metav1.PartialObjectMetadata
				Reason metav1.StatusReason
			}
		}
		if err := decoder.Decode(&event); err != nil {
			k.t.Fatal(err)
		}
		seen = append(seen, event.Type+" "+event.Object.Kind+" "+event.Object.Name+string(event.Object.Reason))
	}
	return strings.ReplaceAll(strings.Join(seen, ", "), k.resource.Kind+" ", "")
}

// names returns the names in a list.
func (k *kindTest) names(query string) string {
	k.t.Helper()
	list := &unstructured.UnstructuredList{}
	if err := list.UnmarshalJSON(k.send("GET", query, "", "", 200).Body.Bytes()); err != nil {
		k.t.Fatal(err)
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].GetName())
	}
	return strings.Join(names, " ")
}

// patches sends every kind of patch for the object a. Lists are merged by all but the merge patch.
func (k *kindTest) patches() {
	k.t.Helper()
	const owner2 = `{"metadata":{"finalizers":["x/b"],"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n",` +
		`"uid":"2"}]}}`
	for _, patch := range []struct {
		contentType, query, body, label string
		nFinalizers, nOwners            int
	}{
		{"application/strategic-merge-patch+json", "", owner2, "a", 2, 2},
		{"application/json-patch+json", "", `[{"op":"replace","path":"/metadata/labels/l","value":"j"}]`, "j", 2, 2},
		{"application/apply-patch+yaml", "?fieldManager=m&force=true", k.body("a", `"labels":{"l":"y"}`), "y", 2, 2},
		{"application/merge-patch+json", "", `{"metadata":{"labels":{"l":"m"},"finalizers":null}}`, "m", 0, 2},
	} {
		obj := k.object("PATCH", "/a"+patch.query, patch.contentType, patch.body, 200)
		if label, nf, no := obj.GetLabels()["l"], len(obj.GetFinalizers()), len(obj.GetOwnerReferences()); label !=
			patch.label || nf != patch.nFinalizers || no != patch.nOwners {
			k.t.Errorf("%s: got %s, %d finalizers, %d owners, want %+v", patch.contentType, label, nf, no, patch)
		}
		if len(obj.GetManagedFields()) == 0 || obj.GetKind() != k.resource.Kind {
			k.t.Errorf("%s: got %v", patch.contentType, obj)
		}
	}
}

// forms writes objects as protobuf, which says its kind or leaves that to the path, also their status where that has a
// path of its own, and applies one that is not there.
func (k *kindTest) forms() {
	k.t.Helper()
	const proto = "application/vnd.kubernetes.protobuf"
	for name, says := range map[string]schema.GroupVersionKind{
		"proto": k.resource.GroupVersion.WithKind(k.resource.Kind), "bare": {}} {
		encode := func(body string) string {
			obj := k.resource.NewFunc()
			require.NoError(k.t, json.Unmarshal([]byte(body), obj))
			unknown := &runtime.Unknown{
				Raw: require.Value(obj.(interface{ Marshal() ([]byte, error) }).Marshal())(k.t)}
			unknown.APIVersion, unknown.Kind = says.ToAPIVersionAndKind()
			return "k8s\x00" + string(require.Value(unknown.Marshal())(k.t))
		}
		obj := k.object("POST", "", proto, encode(k.body(name, `"labels":{}`)), 201)
		paths := []string{"/" + name}
		if k.resource.StatusStrategy != nil {
			paths = append(paths, "/"+name+"/status")
		}
		for _, path := range paths {
			obj = k.object("PUT", path, proto, encode(string(require.Value(obj.MarshalJSON())(k.t))), 200)
		}
		assert.True(k.t, obj.GetName() == name && obj.GetKind() == k.resource.Kind, "%s: got %v", name, obj)
		applied := "/" + name + "-applied"
		for _, code := range []int{201, 200} {
			k.object("PATCH", applied+"?fieldManager=m", "application/apply-patch+yaml",
				k.body(name+"-applied", `"labels":{}`), code)
		}
		k.object("DELETE", applied, "", "", 200)
		k.object("DELETE", "/"+name, "", "", 200)
	}
}

func (k *kindTest) run() {
	k.forms()
	first := k.create("a")
	k.create("b")
	k.create("c")
	k.send("POST", "", "application/json", strings.Replace(k.body("d", `"labels":{}`), k.resource.Kind, "Job", 1), 400)
	k.send("POST", "", "application/json", k.body("d", `"labels":{"l":5}`), http.StatusBadRequest) // labels are text
	k.patches()
	blind := http.StatusOK // the answer to a PUT that does not say which version it was made from
	switch k.resource.Name {
	case "leases", "poddisruptionbudgets", "csinodes", "csidrivers", "csistoragecapacities", "volumeattachments":
		blind = http.StatusUnprocessableEntity
	}
	k.send("PUT", "/a?dryRun=All", "application/json", k.body("a", `"labels":{}`), blind)
	k.object("DELETE", "/a", "", "", 200)
	if got := k.watch(first.GetResourceVersion()); got != "ADDED b, ADDED c, "+
		"MODIFIED a, MODIFIED a, MODIFIED a, MODIFIED a, DELETED a" {
		k.t.Errorf("watch: got %s", got)
	}
	for query, want := range map[string]string{
		"": "b c", "?labelSelector=l%3Db": "b", "?fieldSelector=metadata.name%3Dc": "c", "?resourceVersion=0": "b c",
		"?limit=1": "b",
	} {
		if got := k.names(query); got != want {
			k.t.Errorf("list %s: got %q, want %q", query, got, want)
		}
	}
	page := k.object("GET", "?limit=1", "", "", 200)
	token, _, _ := unstructured.NestedString(page.Object, "metadata", "continue")
	if got := k.names("?limit=1&continue=" + token); got != "c" {
		k.t.Errorf("second page: got %s", got)
	}
	table := k.object("GET", "", "accept application/json;as=Table;v=v1;g=meta.k8s.io", "", 200)
	if rows, _, _ := unstructured.NestedSlice(table.Object, "rows"); table.GetKind() != "Table" || len(rows) != 2 {
		k.t.Errorf("table: got %v", table)
	}
	if _, err := k.w.Server.Compact(k.t.Context()); err != nil {
		k.t.Fatal(err)
	}
	k.first = first.GetResourceVersion()
}

// TestEveryKindIsServedAlike does with every kind what clients do with configmaps. Pods and namespaces, which have a
// life, have tests of their own.
func TestEveryKindIsServedAlike(t *testing.T) {
	for _, resource := range registry.Resources() {
		if resource.Name == "pods" || resource.Name == "namespaces" {
			continue
		}
		bubble.Run(t, resource.GroupResource().String(), func(t *testing.T) {
			etcd := mvcc.New(clock.RealClock{})
			k := &kindTest{t: t, resource: resource, path: handlers.Root(resource) + "/" + resource.Name}
			if resource.Namespaced {
				k.path = handlers.Root(resource) + "/namespaces/default/" + resource.Name
			}
			k.serve(etcd, k.run)
			k.serve(etcd, func() {
				assert.Equal(t, "b c, ADDED b, ADDED c", k.names("")+", "+k.watch("0"), "after a restart")
				assert.Equal(t, "ERROR Status Expired", k.watch(k.first), "from a version of before")
			})
		})
	}
}
