package negotiation

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"listwatch/internal/kube/scheme"
)

// TableOptions parses a table's query parameters. It returns nil if output is not a table. The error is a 400.
func TableOptions(r *http.Request, output MediaType) (*metav1.TableOptions, error) {
	if output.Convert == nil || output.Convert.Kind != "Table" {
		return nil, nil
	}
	options := &metav1.TableOptions{}
	err := metainternalversionscheme.ParameterCodec.DecodeParameters(r.URL.Query(), metav1.SchemeGroupVersion, options)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if problems := metav1validation.ValidateTableOptions(options); len(problems) > 0 {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("Unable to convert to Table as requested: %v",
			problems.ToAggregate()))
	}
	return options, nil
}

// Transform converts obj to target, and returns obj itself if target is nil or obj is a Status, which is how clients
// recognize errors. rows makes the table, with the object in each row. An impossible conversion is a 406.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/response.go: doTransformObject
func Transform(obj runtime.Object, options *metav1.TableOptions, target *schema.GroupVersionKind,
	rows func(runtime.Object, *metav1.TableOptions) (*metav1.Table, error)) (runtime.Object, error) {
	if _, ok := obj.(*metav1.Status); ok || target == nil {
		return obj, nil
	}
	switch target.Kind {
	case "PartialObjectMetadata":
		if meta.IsListType(obj) {
			return nil, Refusal(http.StatusNotAcceptable,
				"you requested PartialObjectMetadata, but the requested object is a list (%T)", obj)
		}
		return partial(obj, target.GroupVersion())
	case "PartialObjectMetadataList":
		return asPartialObjectMetadataList(obj, target.GroupVersion())
	case "Table":
		table, err := rows(obj, options)
		if err != nil {
			return nil, err
		}
		return asTable(table, options, target.GroupVersion())
	default:
		return nil, NewNotAcceptable([]string{JSON, YAML})
	}
}

// asTable reduces the object of each row as options.IncludeObject requires: by default to its metadata. The bookmark
// that ends a watch's initial events always keeps its metadata, because one of its annotations marks the end.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/response.go: asTable
func asTable(table *metav1.Table, options *metav1.TableOptions, gv schema.GroupVersion) (runtime.Object, error) {
	table.GetObjectKind().SetGroupVersionKind(gv.WithKind("Table"))
	for i := range table.Rows {
		object, err := rowObject(table.Rows[i].Object.Object, options.IncludeObject, gv)
		if err != nil {
			return nil, err
		}
		table.Rows[i].Object.Object = object
	}
	return table, nil
}

func rowObject(obj runtime.Object, include metav1.IncludeObjectPolicy, gv schema.GroupVersion) (runtime.Object, error) {
	if include == metav1.IncludeObject {
		return scheme.WithKind(obj)
	}
	metadata, err := partial(obj, gv)
	if err == nil && include == metav1.IncludeNone && !EndsInitialEvents(metadata) {
		return nil, nil
	}
	return metadata, err
}

func partial(obj runtime.Object, gv schema.GroupVersion) (*metav1.PartialObjectMetadata, error) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	partial := meta.AsPartialObjectMetadata(accessor)
	partial.GetObjectKind().SetGroupVersionKind(gv.WithKind("PartialObjectMetadata"))
	return partial, nil
}

// EndsInitialEvents reports whether a bookmark ends the initial events.
func EndsInitialEvents(accessor metav1.Object) bool {
	return accessor.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
}

func asPartialObjectMetadataList(obj runtime.Object, gv schema.GroupVersion) (runtime.Object, error) {
	listAccessor, err := meta.ListAccessor(obj)
	if err != nil || !meta.IsListType(obj) {
		return nil, Refusal(http.StatusNotAcceptable,
			"you requested PartialObjectMetadataList, but the requested object is not a list (%T)", obj)
	}
	list := &metav1.PartialObjectMetadataList{Items: []metav1.PartialObjectMetadata{}}
	list.GetObjectKind().SetGroupVersionKind(gv.WithKind("PartialObjectMetadataList"))
	list.ResourceVersion = listAccessor.GetResourceVersion()
	list.Continue = listAccessor.GetContinue()
	list.RemainingItemCount = listAccessor.GetRemainingItemCount()
	err = meta.EachListItem(obj, func(item runtime.Object) error {
		metadata, err := partial(item, gv)
		if err == nil {
			list.Items = append(list.Items, *metadata)
		}
		return err
	})
	return list, err
}
