package handlers

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"

	"listwatch/internal/kube/negotiation"
)

// CreateResource serves POST to a collection, or to a subresource that creates something.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/create.go: CreateResource
func (s *Scope) CreateResource(w http.ResponseWriter,
	r *http.Request) (obj runtime.Object, code int, err error) {
	body, err := negotiation.ReadObject(w, r)
	if err != nil {
		return nil, 0, err
	}
	options := &metav1.CreateOptions{}
	if err := DecodeOptions(r, options); err != nil {
		return nil, 0, err
	}
	if problems := metav1validation.ValidateCreateOptions(options); len(problems) > 0 {
		return nil, 0, NewInvalidOptions("CreateOptions", problems)
	}
	obj, err = body.Decode(w, s.Kind, s.Storage.New(), options.FieldValidation,
		s.Resource.Prune)
	if err != nil {
		return nil, 0, err
	}
	if s.Managed != nil {
		// first: what the client leaves out, and so accepts as the default, is noted as its
		// decision, too
		s.Resource.Default(obj)
		obj = s.Managed.Update(s.Storage.New(), obj, options.FieldManager, r.UserAgent())
	}
	namespace, name := s.NamespaceAndName(r)
	if creater, ok := s.Storage.(NamedCreater); ok {
		obj, err = creater.Create(r.Context(), namespace, name, obj, options)
	} else {
		obj, err = s.Storage.(Creater).Create(r.Context(), namespace, obj, options)
	}
	return obj, http.StatusCreated, err
}
