package kubectl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
)

const (
	jsonType  = "application/json"
	protoType = "application/vnd.kubernetes.protobuf"
	tableType = "application/json;as=Table;v=v1;g=meta.k8s.io"
)

const podSpec = `{"containers":[{"name":"c","image":"example.com/a"}]}`

const template = `"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},` +
	`"spec":` + podSpec + `}`

// required is what an object of a kind cannot be without, beside its metadata.
var required = map[string]string{
	"pods":        `"spec":` + podSpec,
	"deployments": `"spec":{` + template + `}`, "replicasets": `"spec":{` + template + `}`,
	"statefulsets": `"spec":{"serviceName":"a",` + template + `}`,
}

// kind is a kind that can be listed and watched, at one program.
type kind struct {
	apidiscoveryv2.APIResourceDiscovery
	gvk schema.GroupVersionKind
	url string // of the collection
}

// TestEveryKindKeepsTheContract goes over all that discovery says can be watched, in a program that has just begun:
// what is written after a list arrives at a watch that begins at the list's version. No kind is left out.
func TestEveryKindKeepsTheContract(t *testing.T) {
	viz := program.StartViz(t, "-demo=false", "-controllers=false")
	n := 0
	for _, root := range []string{"/api", "/apis"} {
		groups := &apidiscoveryv2.APIGroupDiscoveryList{}
		accept := "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
		decode(t, send(t, "GET", viz.URL+root, accept, "", nil, 200), groups)
		for _, group := range groups.Items {
			for _, version := range group.Versions {
				gv := schema.GroupVersion{Group: group.Name, Version: version.Version}
				for _, resource := range version.Resources {
					if !slices.Contains(resource.Verbs, "watch") {
						continue
					}
					n++
					k := &kind{APIResourceDiscovery: resource, gvk: gv.WithKind(resource.ResponseKind.Kind)}
					k.url = strings.ReplaceAll(viz.URL+root+"/"+gv.String()+"/", "/api/v1/v1/", "/api/v1/")
					if resource.Scope == apidiscoveryv2.ScopeNamespace {
						k.url += "namespaces/" + namespace(gv.Group) + "/"
					}
					k.url += resource.Resource
					t.Run(k.gvk.Kind+"."+gv.Group, func(t *testing.T) {
						t.Parallel()
						k.keepsTheContract(t)
					})
				}
			}
		}
	}
	require.True(t, n > 20, "only %d kinds can be watched", n)
}

// namespace is where objects are written. Events are the same in both of their groups.
func namespace(group string) string {
	if group == "events.k8s.io" {
		return "kube-public"
	}
	return "default"
}

func (k *kind) keepsTheContract(t *testing.T) {
	list := &metav1.PartialObjectMetadataList{}
	decode(t, send(t, "GET", k.url, jsonType, "", nil, 200), list)
	k.created(t, "json", jsonType, []byte(k.body("json", "")))
	watched := send(t, "GET", k.url+"?watch=1&timeoutSeconds=1&resourceVersion="+list.ResourceVersion,
		jsonType, "", nil, 200)
	var seen []string
	for decoder := json.NewDecoder(bytes.NewReader(watched)); decoder.More(); {
		var event struct {
			Type   string
			Object metav1.PartialObjectMetadata
		}
		require.NoError(t, decoder.Decode(&event))
		seen = append(seen, event.Type+" "+event.Object.Kind+" "+event.Object.Name)
	}
	assert.NoDiff(t, []string{"ADDED " + k.gvk.Kind + " json"}, seen)

	k.created(t, "proto", protoType, k.proto(t, k.body("proto", ""), k.gvk))
	k.created(t, "bare", protoType, k.proto(t, k.body("bare", ""), schema.GroupVersionKind{}))
	for _, name := range []string{"json", "proto", "bare"} {
		k.changed(t, name)
	}
	table := &metav1.Table{}
	decode(t, send(t, "GET", k.url+"?fieldSelector=metadata.name%3Djson", tableType, "", nil, 200), table)
	assert.True(t, table.Kind == "Table" && len(table.Rows) == 1 && len(table.ColumnDefinitions) > 1, "table: %v", table)
	for _, name := range []string{"json", "proto", "bare", "applied"} {
		send(t, "DELETE", k.url+"/"+name, jsonType, "", nil, 200)
	}
}

// body is an object without apiVersion and kind, which the URL says.
func (k *kind) body(name, metadata string) string {
	object := `"metadata":{"name":"` + name + `"` + metadata + `}`
	if strings.HasPrefix(k.gvk.Kind, "Event") {
		object += `,"` + map[string]string{"": "involvedObject", "events.k8s.io": "regarding"}[k.gvk.Group] +
			`":{"namespace":"` + namespace(k.gvk.Group) + `"}`
	}
	if more := required[k.Resource]; more != "" {
		object += "," + more
	}
	return "{" + object + "}"
}

// proto returns an object as protobuf that says it is of a kind, or says nothing.
func (k *kind) proto(t *testing.T, body string, says schema.GroupVersionKind) []byte {
	obj := require.Value(scheme.Scheme.New(k.gvk))(t)
	require.NoError(t, json.Unmarshal([]byte(body), obj))
	raw := require.Value(obj.(interface{ Marshal() ([]byte, error) }).Marshal())(t)
	unknown := &runtime.Unknown{Raw: raw}
	unknown.APIVersion, unknown.Kind = says.ToAPIVersionAndKind()
	return append([]byte("k8s\x00"), require.Value(unknown.Marshal())(t)...)
}

// created creates an object, and reads it.
func (k *kind) created(t *testing.T, name, contentType string, body []byte) {
	t.Helper()
	obj := k.object(t, "POST", "", contentType, body, 201)
	assert.True(t, obj.GetName() == name && obj.GroupVersionKind() == k.gvk, "created %v", obj)
	assert.NoDiff(t, obj, k.object(t, "GET", "/"+name, "", nil, 200))
}

// changed changes an object in all ways that there are, and its status if that has a path.
func (k *kind) changed(t *testing.T, name string) {
	obj := k.object(t, "GET", "/"+name, "", nil, 200)
	label := func(obj *unstructured.Unstructured, value string) {
		t.Helper()
		assert.Equal(t, value, obj.GetLabels()["l"])
	}
	for i, contentType := range []string{jsonType, protoType} {
		value := fmt.Sprint("put", i)
		obj.SetLabels(map[string]string{"l": value})
		body := require.Value(obj.MarshalJSON())(t)
		if contentType == protoType {
			body = k.proto(t, string(body), k.gvk)
		}
		obj = k.object(t, "PUT", "/"+name, contentType, body, 200)
		label(obj, value)
		if slices.ContainsFunc(k.Subresources, func(each apidiscoveryv2.APISubresourceDiscovery) bool {
			return each.Subresource == "status"
		}) {
			obj.SetLabels(map[string]string{"l": value + "status"})
			body = require.Value(obj.MarshalJSON())(t)
			if contentType == protoType {
				body = k.proto(t, string(body), k.gvk)
			}
			obj = k.object(t, "PUT", "/"+name+"/status", contentType, body, 200)
		}
	}
	for contentType, body := range map[string]string{
		"application/json-patch+json":            `[{"op":"add","path":"/metadata/labels/l","value":%q}]`,
		"application/merge-patch+json":           `{"metadata":{"labels":{"l":%q}}}`,
		"application/strategic-merge-patch+json": `{"metadata":{"labels":{"l":%q}}}`,
	} {
		label(k.object(t, "PATCH", "/"+name, contentType, fmt.Appendf(nil, body, contentType[12:16]), 200),
			contentType[12:16])
	}
	apply := func(name string, code int) *unstructured.Unstructured {
		says := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,`, k.gvk.GroupVersion().String(), k.gvk.Kind)
		body := says + k.body(name, `,"labels":{"l":"apply"}`)[1:]
		return k.object(t, "PATCH", "/"+name+"?fieldManager=m&force=true", "application/apply-patch+yaml", []byte(body), code)
	}
	applied := apply(name, 200)
	label(applied, "apply")
	assert.NoDiff(t, applied, apply(name, 200))
	if name == "json" {
		applied = apply("applied", 201)
		assert.NoDiff(t, applied, apply("applied", 200))
	}
}

// object sends a request that is answered with an object.
func (k *kind) object(
	t *testing.T, method, path, contentType string, body []byte, code int,
) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	require.NoError(t, obj.UnmarshalJSON(send(t, method, k.url+path, jsonType, contentType, body, code)))
	return obj
}

// send returns the body of the answer, which must have a code.
func send(t *testing.T, method, url, accept, contentType string, body []byte, code int) []byte {
	t.Helper()
	request := require.Value(http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body)))(t)
	request.Header.Set("Accept", accept)
	request.Header.Set("Content-Type", contentType)
	response := require.Value(http.DefaultClient.Do(request))(t)
	defer response.Body.Close()
	answer := require.Value(io.ReadAll(response.Body))(t)
	require.Equal(t, code, response.StatusCode, "%s %s %q: %s", method, url, body, answer)
	return answer
}

func decode(t *testing.T, body []byte, into any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(body, into))
}
