package handlers

import (
	"context"
	"fmt"
	"net/http"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"listwatch/internal/negotiation"
	"listwatch/internal/scheme"
)

// transformResponseObject turns obj into what was negotiated and writes the whole answer.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/response.go: transformResponseObject
func transformResponseObject(w http.ResponseWriter, r *http.Request, s *Scope, code int, output negotiation.MediaType, obj runtime.Object) {
	options, err := optionsForTransform(r, output)
	if err != nil {
		WriteError(w, r, err)
		return
	}
	// A list without items is written as [], never as null: old clients count on it.
	if meta.IsListType(obj) && meta.LenList(obj) == 0 {
		if err := meta.SetList(obj, []runtime.Object{}); err != nil {
			WriteError(w, r, err)
			return
		}
	}
	out, err := doTransformObject(r.Context(), obj, options, output.Convert, s)
	if err != nil {
		WriteError(w, r, err)
		return
	}
	writeObject(w, r, code, output, out)
}

// optionsForTransform reads the query parameters that belong to a conversion. Only tables have any.
func optionsForTransform(r *http.Request, output negotiation.MediaType) (*metav1.TableOptions, error) {
	if output.Convert == nil || output.Convert.Kind != "Table" {
		return nil, nil
	}
	options := &metav1.TableOptions{}
	err := metainternalversionscheme.ParameterCodec.DecodeParameters(r.URL.Query(), metav1.SchemeGroupVersion, options)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if problems := metav1validation.ValidateTableOptions(options); len(problems) > 0 {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("Unable to convert to Table as requested: %v", problems.ToAggregate()))
	}
	return options, nil
}

// doTransformObject turns obj into target. A Status is never turned into anything: whatever was asked for, an error
// must be recognisable as one.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/response.go: doTransformObject
func doTransformObject(ctx context.Context, obj runtime.Object, options *metav1.TableOptions, target *schema.GroupVersionKind, s *Scope) (runtime.Object, error) {
	if _, ok := obj.(*metav1.Status); ok || target == nil {
		return obj, nil
	}
	switch target.Kind {
	case "PartialObjectMetadata":
		return asPartialObjectMetadata(obj, target.GroupVersion())
	case "PartialObjectMetadataList":
		return asPartialObjectMetadataList(obj, target.GroupVersion())
	case "Table":
		return asTable(ctx, obj, options, target.GroupVersion(), s)
	default:
		return nil, negotiation.NewNotAcceptable([]string{negotiation.JSON, negotiation.YAML})
	}
}

// asTable returns obj as a Table. Each row carries what options.IncludeObject says of its object: its metadata unless
// asked otherwise. The bookmark that ends a watch's initial events keeps its metadata in any case, because that is
// where it says so.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/response.go: asTable
func asTable(ctx context.Context, obj runtime.Object, options *metav1.TableOptions, gv schema.GroupVersion, s *Scope) (runtime.Object, error) {
	convertor, ok := s.Storage.(TableConvertor)
	if !ok {
		return nil, negotiation.NewNotAcceptable([]string{negotiation.JSON, negotiation.YAML})
	}
	table, err := convertor.ConvertToTable(ctx, obj, options)
	if err != nil {
		return nil, err
	}
	table.GetObjectKind().SetGroupVersionKind(gv.WithKind("Table"))
	for i := range table.Rows {
		row := &table.Rows[i]
		row.Object.Object, err = rowObject(row.Object.Object, options.IncludeObject, gv)
		if err != nil {
			return nil, err
		}
	}
	return table, nil
}

func rowObject(obj runtime.Object, include metav1.IncludeObjectPolicy, gv schema.GroupVersion) (runtime.Object, error) {
	if include == metav1.IncludeObject {
		return WithKind(obj)
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	if include == metav1.IncludeNone && !endsInitialEvents(accessor) {
		return nil, nil
	}
	partial := meta.AsPartialObjectMetadata(accessor)
	partial.GetObjectKind().SetGroupVersionKind(gv.WithKind("PartialObjectMetadata"))
	return partial, nil
}

// endsInitialEvents reports whether a bookmark says that the initial state is complete.
func endsInitialEvents(accessor metav1.Object) bool {
	return accessor.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
}

func asPartialObjectMetadata(obj runtime.Object, gv schema.GroupVersion) (runtime.Object, error) {
	if meta.IsListType(obj) {
		return nil, newStatusError(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable, fmt.Sprintf("you requested PartialObjectMetadata, but the requested object is a list (%T)", obj))
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	partial := meta.AsPartialObjectMetadata(accessor)
	partial.GetObjectKind().SetGroupVersionKind(gv.WithKind("PartialObjectMetadata"))
	return partial, nil
}

func asPartialObjectMetadataList(obj runtime.Object, gv schema.GroupVersion) (runtime.Object, error) {
	listAccessor, err := meta.ListAccessor(obj)
	if err != nil || !meta.IsListType(obj) {
		return nil, newStatusError(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable, fmt.Sprintf("you requested PartialObjectMetadataList, but the requested object is not a list (%T)", obj))
	}
	list := &metav1.PartialObjectMetadataList{Items: []metav1.PartialObjectMetadata{}}
	list.GetObjectKind().SetGroupVersionKind(gv.WithKind("PartialObjectMetadataList"))
	list.ResourceVersion = listAccessor.GetResourceVersion()
	list.Continue = listAccessor.GetContinue()
	list.RemainingItemCount = listAccessor.GetRemainingItemCount()
	err = meta.EachListItem(obj, func(item runtime.Object) error {
		partial, err := asPartialObjectMetadata(item, gv)
		if err == nil {
			list.Items = append(list.Items, *partial.(*metav1.PartialObjectMetadata))
		}
		return err
	})
	return list, err
}

// WithKind returns obj with kind and apiVersion filled in, without changing obj, which may be shared with every other
// watcher: if they are missing it is a shallow copy that gets them.
func WithKind(obj runtime.Object) (runtime.Object, error) {
	if !obj.GetObjectKind().GroupVersionKind().Empty() {
		return obj, nil
	}
	kinds, _, err := scheme.Scheme.ObjectKinds(obj)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", obj, err)
	}
	shallow := reflect.New(reflect.TypeOf(obj).Elem())
	shallow.Elem().Set(reflect.ValueOf(obj).Elem())
	out := shallow.Interface().(runtime.Object)
	out.GetObjectKind().SetGroupVersionKind(kinds[0])
	return out, nil
}

// writeObject encodes obj and writes the whole answer, compressed if that pays and the client can undo it. A list is
// written item by item, so that a large one is never in memory twice. An object that cannot be encoded is a 500, as
// long as nothing of it has left; after that the connection is cut.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/writers.go: SerializeObject
func writeObject(w http.ResponseWriter, r *http.Request, code int, output negotiation.MediaType, obj runtime.Object) {
	w.Header().Set("Content-Type", output.Name)
	w.Header().Set("Cache-Control", "no-cache, private")
	answer := negotiation.NewWriter(w, code, negotiation.AcceptsGzip(r))
	out, err := WithKind(obj)
	if err == nil {
		err = output.Encoder.Encode(out, answer)
	}
	switch {
	case err == nil:
		_ = answer.Close() // a client that has gone away is no error of ours
	case answer.Started():
		panic(http.ErrAbortHandler)
	default:
		status := toStatus(r.Context(), apierrors.NewInternalError(err))
		w.Header().Set("Content-Type", negotiation.JSON)
		w.WriteHeader(int(status.Code))
		_ = negotiation.EncoderFor(negotiation.JSON, false).Encode(status, w) // a Status of three strings always encodes
	}
}

// WriteBody writes a finished answer.
func WriteBody(w http.ResponseWriter, r *http.Request, code int, body []byte) {
	answer := negotiation.NewWriter(w, code, negotiation.AcceptsGzip(r))
	_, _ = answer.Write(body)
	_ = answer.Close()
}
