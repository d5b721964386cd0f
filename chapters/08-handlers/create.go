package handlers

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"

	"listwatch/internal/negotiation"
)

// CreateResource answers POST to a collection, or to a subresource in which something is created.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/create.go: CreateResource
func (s *Scope) CreateResource(w http.ResponseWriter, r *http.Request) {
	output, err := negotiation.Output(r)
	if err != nil {
		WriteError(w, r, err)
		return
	}
	obj, err := s.create(w, r)
	if err != nil {
		WriteError(w, r, err)
		return
	}
	if status, ok := obj.(*metav1.Status); ok && status.Code == 0 {
		status.Code = http.StatusCreated
	}
	transformResponseObject(w, r, s, http.StatusCreated, output, obj)
}

func (s *Scope) create(w http.ResponseWriter, r *http.Request) (runtime.Object, error) {
	info, err := negotiation.Input(r)
	if err != nil {
		return nil, err
	}
	body, err := ReadBody(w, r)
	if err != nil {
		return nil, err
	}
	options := &metav1.CreateOptions{}
	if err := DecodeOptions(r, options); err != nil {
		return nil, err
	}
	if problems := metav1validation.ValidateCreateOptions(options); len(problems) > 0 {
		return nil, NewInvalidOptions("CreateOptions", problems)
	}
	obj, err := decodeObject(w, info, body, s.Kind, s.Storage.New(), ValidationDirective(options.FieldValidation))
	if err != nil {
		return nil, err
	}
	if s.Managed != nil {
		s.Resource.Default(obj) // before it is noted who decided what: a client that creates decides by saying nothing, too
		obj = s.Managed.Update(s.Storage.New(), obj, options.FieldManager, r.UserAgent())
	}
	namespace, name := s.NamespaceAndName(r)
	if creater, ok := s.Storage.(NamedCreater); ok {
		return creater.Create(r.Context(), namespace, name, obj, options)
	}
	return s.Storage.(Creater).Create(r.Context(), namespace, obj, options)
}
