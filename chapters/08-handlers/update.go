package handlers

import (
	"context"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
)

// UpdateResource answers PUT of one object.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/update.go: UpdateResource
func (s *scope) UpdateResource(w http.ResponseWriter, r *http.Request) {
	output, err := negotiateOutput(r)
	if err != nil {
		writeError(w, r, err)
		return
	}
	obj, created, err := s.update(w, r)
	if err != nil {
		writeError(w, r, err)
		return
	}
	code := http.StatusOK
	if created {
		code = http.StatusCreated
	}
	transformResponseObject(w, r, s, code, output, obj)
}

func (s *scope) update(w http.ResponseWriter, r *http.Request) (obj runtime.Object, created bool, err error) {
	info, err := negotiateInput(r)
	if err != nil {
		return nil, false, err
	}
	body, err := readBody(w, r)
	if err != nil {
		return nil, false, err
	}
	options := &metav1.UpdateOptions{}
	if err := decodeOptions(r, options); err != nil {
		return nil, false, err
	}
	if problems := metav1validation.ValidateUpdateOptions(options); len(problems) > 0 {
		return nil, false, newInvalidOptions("UpdateOptions", problems)
	}
	obj, err = decodeObject(w, info, body, s.kind, s.storage.New(), validationDirective(options.FieldValidation))
	if err != nil {
		return nil, false, err
	}
	namespace, name := s.namespaceAndName(r)
	if err := checkName(obj, name, namespace); err != nil {
		return nil, false, err
	}
	return s.storage.(Updater).Update(r.Context(), namespace, name, newObject{scope: s, obj: obj, manager: managerName(options.FieldManager, r.UserAgent())}, options)
}

// newObject is the UpdatedObjectInfo of a PUT: what is stored matters only for the question who has changed what.
//
// Upstream: k8s.io/apiserver/pkg/registry/rest/update.go: DefaultUpdatedObjectInfo
type newObject struct {
	scope   *scope
	obj     runtime.Object
	manager string
}

func (n newObject) Preconditions() *metav1.Preconditions { return nil }

// AllowsCreate leaves that to the kind.
func (n newObject) AllowsCreate() bool { return false }

// UpdatedObject returns a copy each time: the registry fills it in, and may ask again.
func (n newObject) UpdatedObject(_ context.Context, old runtime.Object) (runtime.Object, error) {
	obj := n.obj.DeepCopyObject()
	n.scope.resource.Default(obj)
	return n.scope.managed.update(old, obj, n.manager), nil
}
