package registry

import (
	"context"
	"sync/atomic"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"listwatch/internal/kube/resources"
)

// Definitions describes the definitions of custom resources: what a client creates to have the server serve a kind
// that it does not know.
func Definitions() *Resource {
	return complete(Resource{
		Name: "customresourcedefinitions", ShortNames: []string{"crd", "crds"}, Categories: []string{"api-extensions"},
		Prefix:              "/registry/apiextensions.k8s.io/customresourcedefinitions",
		Columns:             resources.DefinitionColumns,
		Default:             resources.DefaultDefinition,
		Strategy:            resources.DefinitionStrategy{},
		StatusStrategy:      resources.KeptStatusStrategy{},
		OnDemand:            true,
		VersionRequired:     true,
		ReturnDeletedObject: true,
	}, &apiextensionsv1.CustomResourceDefinition{}, &apiextensionsv1.CustomResourceDefinitionList{})
}

// CustomResource is what a version of a custom resource has besides.
type CustomResource struct {
	*resources.CustomStrategy
	Sibling bool         // another version is stored; their caches would have the same metrics
	Going   *atomic.Bool // of all versions: the definition is being deleted, and no object is created any more
}

// admit is admitCreate, which a kind that goes never passes: 405.
//
// Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go: forbidCreateAdmission
func (s *Store) admit(ctx context.Context, namespace, name string) error {
	if custom := s.resource.Custom; custom != nil && custom.Going.Load() {
		going := apierrors.NewMethodNotSupported(s.resource.GroupResource(), "create")
		going.ErrStatus.Message = "create not allowed while custom resource definition is terminating"
		return going
	}
	return s.admitCreate(ctx, namespace, name)
}

// CustomResources describes the kind of a definition, in each of its versions, those that are not served included. A
// version is a resource with a cache of its own. Its objects are those of the others, in its name.
//
// Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go: crdInfo
func CustomResources(definition *apiextensionsv1.CustomResourceDefinition) (versions []*Resource, err error) {
	spec, going := &definition.Spec, &atomic.Bool{}
	going.Store(definition.DeletionTimestamp != nil)
	for i := range spec.Versions {
		version := &spec.Versions[i]
		strategy, err := resources.NewCustomStrategy(definition, version)
		if err != nil {
			return nil, err
		}
		custom := &CustomResource{CustomStrategy: strategy, Sibling: !version.Storage, Going: going}
		called := definition.Name
		if custom.Sibling {
			called = spec.Names.Plural + "." + version.Name + "." + spec.Group
		}
		r := Resource{
			Name: spec.Names.Plural, ShortNames: spec.Names.ShortNames, Categories: spec.Names.Categories,
			Called: called, Namespaced: spec.Scope == apiextensionsv1.NamespaceScoped,
			Prefix:  "/registry/" + spec.Group + "/" + spec.Names.Plural,
			Default: strategy.Default, Prune: strategy.Prune, Strategy: strategy, Custom: custom,
			Columns:  resources.CustomColumns(version),
			OnDemand: true, VersionRequired: true,
		}
		if strategy.HasStatus {
			r.StatusStrategy = resources.CustomStatusStrategy{CustomStrategy: strategy}
		}
		obj, list := untyped(schema.GroupVersion{Group: spec.Group, Version: version.Name}, spec.Names.Kind,
			spec.Names.ListKind)
		versions = append(versions, complete(r, obj, list))
		versions[i].Singular = spec.Names.Singular
	}
	return versions, nil
}

// untyped returns an empty object and an empty list of a kind without Go types.
func untyped(gv schema.GroupVersion, kind, listKind string) (obj, list runtime.Object) {
	object, objects := &unstructured.Unstructured{}, &unstructured.UnstructuredList{}
	object.SetGroupVersionKind(gv.WithKind(kind))
	objects.SetGroupVersionKind(gv.WithKind(listKind))
	return object, objects
}
