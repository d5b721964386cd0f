package handlers

import (
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"listwatch/internal/kube/negotiation"
)

// DeleteResource serves DELETE of one object. The answer is 200 even if the deletion only begins: then its object has a
// deletionTimestamp.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/delete.go: DeleteResource
func (s *Scope) DeleteResource(w http.ResponseWriter, r *http.Request) (obj runtime.Object, code int, err error) {
	options, err := s.deleteOptions(w, r)
	if err != nil {
		return nil, 0, err
	}
	namespace, name := s.NamespaceAndName(r)
	obj, immediate, err := s.Storage.(GracefulDeleter).Delete(r.Context(), namespace, name, options)
	//lint:ignore SA1019 clients of before 1.7 still send it
	if orphan := options.OrphanDependents; !immediate && orphan != nil && !*orphan {
		return obj, http.StatusAccepted, err
	}
	return obj, http.StatusOK, err
}

// deleteOptions reads the options of a delete from its body, or from the query if there is none; the registry checks
// them. Errors: 400, 413, 415.
func (s *Scope) deleteOptions(w http.ResponseWriter, r *http.Request) (*metav1.DeleteOptions, error) {
	body, err := negotiation.ReadBody(w, r)
	if err != nil {
		return nil, err
	}
	options := &metav1.DeleteOptions{}
	if len(body) == 0 {
		err = DecodeOptions(r, options)
	} else {
		err = decodeDeleteOptions(r, body, options)
	}
	return options, err
}

func decodeDeleteOptions(r *http.Request, body []byte, options *metav1.DeleteOptions) error {
	info, err := negotiation.Input(r)
	if err != nil {
		return err
	}
	// Clients may send the DeleteOptions of any API group; they are all the same.
	gvk := metav1.SchemeGroupVersion.WithKind("DeleteOptions")
	codecs := metainternalversionscheme.Codecs
	info, _ = runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), info.MediaType) // it has the same types
	obj, _, err := codecs.DecoderToVersion(info.Serializer, gvk.GroupVersion()).Decode(body, &gvk, options)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if obj != options {
		return apierrors.NewBadRequest("decoded object cannot be converted to DeleteOptions")
	}
	return nil
}

// DeleteCollection serves DELETE of a collection, or of the objects that selectors pick from it.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/delete.go: DeleteCollection
func (s *Scope) DeleteCollection(w http.ResponseWriter, r *http.Request) (obj runtime.Object, code int, err error) {
	listOptions, err := s.listOpts(r)
	if err != nil {
		return nil, 0, err
	}
	options, err := s.deleteOptions(w, r)
	if err != nil {
		return nil, 0, err
	}
	namespace, _ := s.NamespaceAndName(r)
	obj, err = s.Storage.(CollectionDeleter).DeleteCollection(r.Context(), namespace, options, &listOptions)
	return obj, http.StatusOK, err
}
