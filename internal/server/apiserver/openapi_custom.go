package apiserver

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	handlers "listwatch/chapters/08-handlers"
	"listwatch/internal/kube/negotiation"
)

const (
	openAPIRefs  = "#/components/schemas/"
	metadataName = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
)

// metadataModels returns the models of metadata, which those of all custom resources refer to, from the document of
// core/v1.
var metadataModels = sync.OnceValue(func() map[string]*spec.Schema {
	var document struct {
		Components struct{ Schemas map[string]*spec.Schema }
	}
	if err := json.Unmarshal(loadOpenAPI().v3["api/v1"].plain, &document); err != nil {
		panic(fmt.Sprintf("apiserver: embedded OpenAPI document: %v", err))
	}
	models := document.Components.Schemas
	maps.DeleteFunc(models, func(name string, _ *spec.Schema) bool {
		_, kind, _ := strings.Cut(name, "meta.v1.")
		return !slices.Contains([]string{"ObjectMeta", "OwnerReference", "ManagedFieldsEntry", "FieldsV1", "Time"},
			kind)
	})
	return models
})

// modelOf returns the model of a custom kind, and its name: "com.example.v1.Widget".
//
// Upstream: k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder/builder.go: (*builder).buildKubeNative
func modelOf(s *handlers.Scope) (name string, model *spec.Schema) {
	kind := s.Kind
	model = s.Resource.Custom.Schema()
	if model.Properties == nil {
		model.Properties = map[string]spec.Schema{}
	}
	for _, field := range []string{"apiVersion", "kind"} {
		model.Properties[field] = *spec.StringProperty()
	}
	model.Properties["metadata"] = *spec.RefSchema(openAPIRefs + metadataName)
	model.AddExtension("x-kubernetes-group-version-kind", []any{gvkExtension(kind)})
	labels := strings.Split(kind.Group, ".")
	slices.Reverse(labels)
	return strings.Join(append(labels, kind.Version, kind.Kind), "."), model
}

func gvkExtension(kind schema.GroupVersionKind) map[string]any {
	return map[string]any{"group": kind.Group, "version": kind.Version, "kind": kind.Kind}
}

// with returns o with a document for each group and version of custom resources.
//
// Differs: of what can be done, there is only what kubectl looks for: which kind has which parameters in a patch.
func (o *openAPI) with(scopes []*handlers.Scope) *openAPI {
	type custom struct {
		paths   map[string]any
		schemas map[string]*spec.Schema
	}
	groups := map[string]custom{}
	for _, s := range scopes {
		if s.Resource.Custom == nil {
			continue
		}
		path := strings.TrimPrefix(s.Resource.Root(), "/")
		group, ok := groups[path]
		if !ok {
			group = custom{map[string]any{}, maps.Clone(metadataModels())}
			groups[path] = group
		}
		name, model := modelOf(s)
		group.schemas[name] = model
		group.paths[s.ItemPath()] = operations(s)
	}
	all := &openAPI{v3: maps.Clone(o.v3), v2: o.v2, v2Proto: o.v2Proto}
	for path, group := range groups {
		plain, err := json.Marshal(map[string]any{
			"openapi": "3.0.0", "info": map[string]string{"title": "listwatch", "version": versionGitVersion},
			"paths": group.paths, "components": map[string]any{"schemas": group.schemas},
		})
		if err != nil {
			panic(fmt.Sprintf("apiserver: OpenAPI document of %s: %v", path, err)) // schemas were read from JSON
		}
		hash := fmt.Sprintf("%X", sha256.Sum256(plain))
		all.v3[path] = &document{contentType: negotiation.JSON, plain: plain, hash: hash}
	}
	return all
}

// operations describes what can be done at the path of an object, as far as clients ask.
func operations(s *handlers.Scope) map[string]any {
	var parameters []any
	for _, name := range []string{"dryRun", "fieldManager", "fieldValidation"} {
		parameters = append(parameters, map[string]any{"name": name, "in": "query", "schema": spec.StringProperty()})
	}
	return map[string]any{"patch": map[string]any{"parameters": parameters, "x-kubernetes-action": "patch",
		"x-kubernetes-group-version-kind": gvkExtension(s.Kind)}}
}
