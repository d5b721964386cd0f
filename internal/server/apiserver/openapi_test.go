package apiserver

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/kube/negotiation"
)

// schemaDoc is what the test reads of a schema, in v2 and v3 alike.
type schemaDoc struct {
	Ref        string               `json:"$ref"`
	Properties map[string]schemaDoc `json:"properties"`
	Items      *schemaDoc           `json:"items"`
	AllOf      []schemaDoc          `json:"allOf"`
	Additional *schemaDoc           `json:"additionalProperties"`
	Kinds      []map[string]string  `json:"x-kubernetes-group-version-kind"`
}

// refs returns the names of the schemas that s refers to directly.
func (s *schemaDoc) refs() []string {
	names := []string{}
	if s.Ref != "" {
		names = append(names, s.Ref[strings.LastIndexByte(s.Ref, '/')+1:])
	}
	for _, part := range s.AllOf {
		names = append(names, part.refs()...)
	}
	for _, part := range []*schemaDoc{s.Items, s.Additional} {
		if part != nil {
			names = append(names, part.refs()...)
		}
	}
	return names
}

// checkType compares a schema with a Go type, and goes on with the types of its fields.
func checkType(t *testing.T, schemas map[string]schemaDoc, goType reflect.Type, name string,
	seen map[reflect.Type]bool) {
	if seen[goType] {
		return
	}
	seen[goType] = true
	schema, ok := schemas[name]
	if !ok {
		t.Errorf("no schema %s", name)
		return
	}
	fields := map[string]bool{}
	var walk func(reflect.Type)
	walk = func(goType reflect.Type) {
		for i := range goType.NumField() {
			field := goType.Field(i)
			key, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			if key == "" && (field.Anonymous || strings.Contains(options, "inline")) {
				walk(field.Type)
				continue
			}
			if key == "-" || key == "" {
				continue
			}
			fields[key] = true
			property, ok := schema.Properties[key]
			if !ok {
				t.Errorf("%s has no field %s", name, key)
				continue
			}
			element := field.Type
			for element.Kind() == reflect.Pointer || element.Kind() == reflect.Slice || element.Kind() == reflect.Map {
				element = element.Elem()
			}
			if refs := property.refs(); len(refs) == 1 && strings.Contains(refs[0], "api.core.v1") {
				checkType(t, schemas, element, refs[0], seen)
			}
		}
	}
	walk(goType)
	for key := range schema.Properties {
		assert.True(t, fields[key], "%s has a field %s that the type does not have", name, key)
	}
}

// The fields' descriptions are the real server's: internal/check/compat/kubectl compares them.
func TestTheDocumentsHaveTheFieldsOfTheTypesWeAreBuiltWith(t *testing.T) {
	a := newAPI(t)
	v3 := into[struct {
		Components struct{ Schemas map[string]schemaDoc }
	}](t, a.do("GET", "/openapi/v3/api/v1", "").Body).Components.Schemas
	v2 := into[struct{ Definitions map[string]schemaDoc }](t, a.do("GET", "/openapi/v2", "").Body).Definitions
	for version, schemas := range map[string]map[string]schemaDoc{"v3": v3, "v2": v2} {
		t.Run(version, func(t *testing.T) {
			seen := map[reflect.Type]bool{}
			for kind, obj := range map[string]any{
				"Pod": corev1.Pod{}, "Node": corev1.Node{}, "ConfigMap": corev1.ConfigMap{},
				"Namespace": corev1.Namespace{},
				"Event":     corev1.Event{}, "Binding": corev1.Binding{},
			} {
				name := "io.k8s.api.core.v1." + kind
				checkType(t, schemas, reflect.TypeOf(obj), name, seen)
				kinds := schemas[name].Kinds
				assert.True(t, len(kinds) == 1 && kinds[0]["kind"] == kind && kinds[0]["version"] == "v1",
					"%s is known as %v", name, kinds)
			}
			assert.True(t, len(seen) >= 100, "only %d types were compared", len(seen))
		})
	}
}

func TestTheOlderDocumentIsToBeHadAsClientsAskForIt(t *testing.T) {
	a := newAPI(t)
	for accept, want := range map[string]string{
		mediaTypeOpenAPIv2ProtoDeprecated: mediaTypeOpenAPIv2Proto, mediaTypeOpenAPIv2Proto: mediaTypeOpenAPIv2Proto,
		"application/json": negotiation.JSON, "": negotiation.JSON, "*/*": negotiation.JSON,
	} {
		w := a.do("GET", "/openapi/v2", "", "Accept", accept)
		assert.True(t, w.Code == 200 && w.Header().Get("Content-Type") == want && w.Body.Len() >= 100_000,
			"%q: got %d %s, %d bytes", accept, w.Code, w.Header().Get("Content-Type"), w.Body.Len())
	}
	wantStatus(t, a.do("GET", "/openapi/v2", "", "Accept", "text/html"), 406, metav1.StatusReasonNotAcceptable)
	first := a.do("GET", "/openapi/v2", "")
	again := a.do("GET", "/openapi/v2", "", "If-None-Match", first.Header().Get("Etag"))
	assert.Equal(t, 304, again.Code, "again")
}

// The documents of the two versions are of the same paths, each in the words of its version.
func TestTheOlderDocumentHasTheSameOperations(t *testing.T) {
	a := newAPI(t)
	var v2 struct {
		Swagger string
		Paths   map[string]map[string]any
	}
	body := a.do("GET", "/openapi/v2", "").Body.String()
	require.NoError(t, json.Unmarshal([]byte(body), &v2))
	n := 0
	for _, path := range openAPIPaths(a) {
		v3 := into[struct{ Paths map[string]map[string]any }](t, a.do("GET", path, "").Body).Paths
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
