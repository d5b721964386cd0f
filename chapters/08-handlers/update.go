package handlers

import (
	"context"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	storage "listwatch/chapters/01-storage"
	registry "listwatch/chapters/07-registry"
)

// UpdateResource serves PUT of one object.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/update.go: UpdateResource
func (s *Scope) UpdateResource(w http.ResponseWriter, r *http.Request) (obj runtime.Object, code int, err error) {
	obj, options, err := s.readObject(w, r, "UpdateOptions")
	if err != nil {
		return nil, 0, err
	}
	namespace, name := s.NamespaceAndName(r)
	if err := CheckName(obj, name, namespace); err != nil {
		return nil, 0, err
	}
	change := newObject{scope: s, obj: obj, option: options.FieldManager, userAgent: r.UserAgent()}
	return s.Update(r, change.UpdatedObject, false, (*metav1.UpdateOptions)(options))
}

// Update makes a change, and returns 201 if it created the object, otherwise 200.
func (s *Scope) Update(r *http.Request, change registry.UpdatedObjectInfo, forceAllowCreate bool,
	options *metav1.UpdateOptions) (obj runtime.Object, code int, err error) {
	namespace, name := s.NamespaceAndName(r)
	obj, created, err := s.Storage.(Updater).Update(r.Context(), namespace, name, change, forceAllowCreate, options)
	if created {
		return obj, http.StatusCreated, err
	}
	return obj, http.StatusOK, err
}

// newObject is the object of a PUT. The stored one matters only to the field manager.
//
// Upstream: k8s.io/apiserver/pkg/registry/rest/update.go: DefaultUpdatedObjectInfo
type newObject struct {
	scope             *Scope
	obj               runtime.Object
	option, userAgent string // the client's name, for the field manager
}

// UpdatedObject is the [registry.UpdatedObjectInfo] of a PUT. It returns a new copy each time,
// because the registry changes it and may call again. A uid in the body is a precondition: old
// must have it, so a deleted object is not created again.
func (n newObject) UpdatedObject(_ context.Context,
	old runtime.Object) (runtime.Object, error) {
	obj := n.obj.DeepCopyObject()
	accessor := obj.(metav1.Object)
	if uid := accessor.GetUID(); uid != "" {
		precondition := &storage.Preconditions{UID: &uid}
		if err := precondition.Check(accessor.GetName(), old); err != nil {
			return nil, err // the registry turns it into a 409
		}
	}
	n.scope.Resource.Strategy.Default(obj)
	if n.scope.Managed == nil {
		return obj, nil
	}
	return n.scope.Managed.Update(old, obj, n.option, n.userAgent), nil
}
