package handlers

import (
	"context"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"

	"listwatch/internal/negotiation"
)

// UpdateResource answers PUT of one object.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/update.go: UpdateResource
func (s *Scope) UpdateResource(w http.ResponseWriter, r *http.Request) {
	s.Answer(w, r, s.update)
}

// Answer answers a request that changes one object with that object, or with the error. The form of the answer is settled
// first: a client that could not read it changes nothing.
func (s *Scope) Answer(w http.ResponseWriter, r *http.Request, change func(http.ResponseWriter, *http.Request) (obj runtime.Object, created bool, err error)) {
	output, err := negotiation.Output(r)
	if err != nil {
		WriteError(w, r, err)
		return
	}
	obj, created, err := change(w, r)
	if err != nil {
		WriteError(w, r, err)
		return
	}
	code := http.StatusOK
	if created {
		code = http.StatusCreated
	}
	transformResponseObject(w, r, s, code, output, obj)
}

func (s *Scope) update(w http.ResponseWriter, r *http.Request) (obj runtime.Object, created bool, err error) {
	info, err := negotiation.Input(r)
	if err != nil {
		return nil, false, err
	}
	body, err := ReadBody(w, r)
	if err != nil {
		return nil, false, err
	}
	options := &metav1.UpdateOptions{}
	if err := DecodeOptions(r, options); err != nil {
		return nil, false, err
	}
	if problems := metav1validation.ValidateUpdateOptions(options); len(problems) > 0 {
		return nil, false, NewInvalidOptions("UpdateOptions", problems)
	}
	obj, err = decodeObject(w, info, body, s.Kind, s.Storage.New(), ValidationDirective(options.FieldValidation))
	if err != nil {
		return nil, false, err
	}
	namespace, name := s.NamespaceAndName(r)
	if err := CheckName(obj, name, namespace); err != nil {
		return nil, false, err
	}
	return s.Storage.(Updater).Update(r.Context(), namespace, name, newObject{scope: s, obj: obj, option: options.FieldManager, userAgent: r.UserAgent()}, options)
}

// newObject is the UpdatedObjectInfo of a PUT: what is stored matters only for the question who has changed what.
//
// Upstream: k8s.io/apiserver/pkg/registry/rest/update.go: DefaultUpdatedObjectInfo
type newObject struct {
	scope             *Scope
	obj               runtime.Object
	option, userAgent string // name the client for the field manager
}

func (n newObject) Preconditions() *metav1.Preconditions { return nil }

// AllowsCreate leaves that to the kind.
func (n newObject) AllowsCreate() bool { return false }

// UpdatedObject returns a copy each time: the registry fills it in, and may ask again.
func (n newObject) UpdatedObject(_ context.Context, old runtime.Object) (runtime.Object, error) {
	obj := n.obj.DeepCopyObject()
	n.scope.Resource.Default(obj)
	if n.scope.Managed == nil {
		return obj, nil
	}
	return n.scope.Managed.Update(old, obj, n.option, n.userAgent), nil
}
