package handlers

import (
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
)

// CreateResource serves POST to a collection, or to a subresource that creates something.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/create.go: CreateResource
func (s *Scope) CreateResource(w http.ResponseWriter,
	r *http.Request) (obj runtime.Object, code int, err error) {
	obj, options, err := s.readObject(w, r, "CreateOptions")
	if err != nil {
		return nil, 0, err
	}
	if s.Managed != nil {
		// Defaults first: the field manager notes them as the client's decisions, too.
		s.Resource.Strategy.Default(obj)
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
