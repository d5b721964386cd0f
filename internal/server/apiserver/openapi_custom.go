package apiserver

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/kube-openapi/pkg/util"
	"k8s.io/kube-openapi/pkg/validation/spec"

	handlers "listwatch/chapters/08-handlers"
	"listwatch/internal/kube/negotiation"
)

const (
	metadataRef  = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
	extensionGVK = "x-kubernetes-group-version-kind"
)

// metadataModels returns the models of metadata, which those of all custom resources refer to, from the document of
// core/v1.
var metadataModels = sync.OnceValue(func() map[string]*spec.Schema {
	var document struct {
		Components struct{ Schemas map[string]*spec.Schema }
	}
	if err := json.Unmarshal(gunzip(loadOpenAPI().v3["api/v1"][negotiation.JSON].zipped), &document); err != nil {
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

// addModel adds the model of a custom kind, by its name: "com.example.v1.Widget".
//
// Upstream: k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder/builder.go: (*builder).buildKubeNative
func addModel(models map[string]*spec.Schema, s *handlers.Scope) {
	model := s.Resource.Custom.Schema()
	model.SetProperty("apiVersion", *spec.StringProperty())
	model.SetProperty("kind", *spec.StringProperty())
	model.SetProperty("metadata", *spec.RefSchema(metadataRef))
	model.AddExtension(extensionGVK, []any{gvkOf(s)})
	models[util.ToRESTFriendlyName(s.Kind.GroupVersion().String()+"."+s.Kind.Kind)] = model
}

func gvkOf(s *handlers.Scope) map[string]any {
	return map[string]any{"group": s.Kind.Group, "version": s.Kind.Version, "kind": s.Kind.Kind}
}

// with returns o with a document for each group and version of custom resources.
//
// Differs: of what can be done, there is only what kubectl looks for: which kind has which parameters in a patch.
func (o *openAPI) with(scopes []*handlers.Scope) *openAPI {
	paths, models := map[string]map[string]any{}, map[string]map[string]*spec.Schema{}
	for _, s := range scopes {
		if s.Resource.Custom == nil {
			continue
		}
		root := strings.TrimPrefix(s.Resource.Root(), "/")
		if paths[root] == nil {
			paths[root], models[root] = map[string]any{}, maps.Clone(metadataModels())
		}
		addModel(models[root], s)
		paths[root][s.ItemPath()] = operations(s)
	}
	all := &openAPI{v3: maps.Clone(o.v3), v2: o.v2}
	for root := range paths {
		plain, err := json.Marshal(map[string]any{
			"openapi": "3.0.0", "info": map[string]string{"title": "listwatch", "version": versionGitVersion},
			"paths": paths[root], "components": map[string]any{"schemas": models[root]},
		})
		if err != nil {
			panic(fmt.Sprintf("apiserver: OpenAPI document of %s: %v", root, err)) // schemas were read from JSON
		}
		all.v3[root] = document{negotiation.JSON: newForm(negotiation.JSON, zipped(plain))}
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
		extensionGVK: gvkOf(s)}}
}

func zipped(plain []byte) []byte {
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	_, _ = zip.Write(plain) // into memory
	_ = zip.Close()
	return packed.Bytes()
}
