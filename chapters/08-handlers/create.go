package handlers

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
)

// CreateResource answers POST to a collection, or to a subresource in which something is created.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/create.go: CreateResource
func (s *scope) CreateResource(w http.ResponseWriter, r *http.Request) {
	output, err := negotiateOutput(r)
	if err != nil {
		writeError(w, r, err)
		return
	}
	obj, err := s.create(w, r)
	if err != nil {
		writeError(w, r, err)
		return
	}
	if status, ok := obj.(*metav1.Status); ok && status.Code == 0 {
		status.Code = http.StatusCreated
	}
	transformResponseObject(w, r, s, http.StatusCreated, output, obj)
}

func (s *scope) create(w http.ResponseWriter, r *http.Request) (runtime.Object, error) {
	info, err := negotiateInput(r)
	if err != nil {
		return nil, err
	}
	body, err := readBody(w, r)
	if err != nil {
		return nil, err
	}
	options := &metav1.CreateOptions{}
	if err := decodeOptions(r, options); err != nil {
		return nil, err
	}
	if problems := metav1validation.ValidateCreateOptions(options); len(problems) > 0 {
		return nil, newInvalidOptions("CreateOptions", problems)
	}
	obj, err := decodeObject(w, info, body, s.kind, s.storage.New(), validationDirective(options.FieldValidation))
	if err != nil {
		return nil, err
	}
	if s.managed != nil {
		s.resource.Default(obj) // before it is noted who decided what: whoever creates decides by saying nothing, too
		obj = s.managed.update(s.storage.New(), obj, managerName(options.FieldManager, r.UserAgent()))
	}
	namespace, name := s.namespaceAndName(r)
	if creater, ok := s.storage.(NamedCreater); ok {
		return creater.Create(r.Context(), namespace, name, obj, options)
	}
	return s.storage.(Creater).Create(r.Context(), namespace, obj, options)
}
