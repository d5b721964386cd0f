package registry

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// CreateStrategy is what differs from kind to kind when an object is created.
//
// Upstream: k8s.io/apiserver/pkg/registry/rest/create.go: RESTCreateStrategy
// Differs: no warnings, no declarative validation, no Canonicalize. Upstream applies defaults by
// the scheme, and checks names in Validate.
type CreateStrategy interface {
	// Default fills in what the client left out. It must not depend on anything but the object.
	Default(obj runtime.Object)
	// PrepareForCreate clears what a client may not set, such as status, and sets what only the server can know.
	PrepareForCreate(obj runtime.Object)
	// ValidateName returns what is wrong with a name. prefix: the server will append to it.
	ValidateName(name string, prefix bool) []string
	// Validate returns what else is wrong with obj. It must not change it.
	Validate(obj runtime.Object) field.ErrorList
}

// UpdateStrategy is what differs from kind to kind when an object is changed.
//
// Upstream: k8s.io/apiserver/pkg/registry/rest/update.go: RESTUpdateStrategy
type UpdateStrategy interface {
	// AllowCreateOnUpdate reports whether a PUT of an object that does not exist creates it;
	// otherwise it is 404.
	AllowCreateOnUpdate() bool
	// AllowUnconditionalUpdate reports whether a PUT, also of the status, without a resource
	// version replaces whatever is stored; otherwise it is 422.
	AllowUnconditionalUpdate() bool
	// PrepareForUpdate undoes in obj every change that this kind of update may not make. It
	// must not change old.
	PrepareForUpdate(obj, old runtime.Object)
	// ValidateUpdate returns what is wrong with the change from old to obj. It must not change
	// either.
	ValidateUpdate(obj, old runtime.Object) field.ErrorList
}

// Strategy is what differs from kind to kind in writes.
type Strategy interface {
	CreateStrategy
	UpdateStrategy
}

// GracefulDeleteStrategy is implemented by the strategy of a kind whose objects need time to
// end.
//
// Upstream: k8s.io/apiserver/pkg/registry/rest/delete.go: RESTGracefulDeleteStrategy
type GracefulDeleteStrategy interface {
	// CheckGracefulDelete decides whether obj is deleted in two steps, and if so sets
	// options.GracePeriodSeconds to the time between them. It must not change obj.
	CheckGracefulDelete(obj runtime.Object, options *metav1.DeleteOptions) bool
}

// ensureNamespace puts the request's namespace into the object, or refuses an object that names another one: 400.
//
// Upstream: k8s.io/apiserver/pkg/registry/rest/meta.go: EnsureObjectNamespaceMatchesRequestNamespace
func (s *Store) ensureNamespace(namespace string, accessor metav1.Object) error {
	got := accessor.GetNamespace()
	switch {
	case !s.resource.Namespaced: // whatever the client sent
		accessor.SetNamespace("")
	case got == "":
		accessor.SetNamespace(namespace)
	case got != namespace:
		return apierrors.NewBadRequest(fmt.Sprintf("the namespace of the provided object does not match the "+
			"namespace sent on the request: %s, %s", got, namespace))
	}
	return nil
}

// beforeCreate brings a client's object into the form in which it may be stored: system
// metadata, defaults, the strategy's preparation, and only then validation. The error is 400 or
// 422.
//
// Upstream: k8s.io/apiserver/pkg/registry/rest/create.go: BeforeCreate
// Differs: upstream applies defaults while decoding the request.
func (s *Store) beforeCreate(namespace string, obj runtime.Object) error {
	accessor := metadata(obj)
	if err := s.ensureNamespace(namespace, accessor); err != nil {
		return err
	}
	s.fillSystemFields(accessor)
	s.resource.Strategy.Default(obj)
	s.resource.Strategy.PrepareForCreate(obj)
	problems := s.validateMetadata(accessor)
	problems = append(problems, s.resource.Strategy.Validate(obj)...)
	return s.newInvalid(accessor.GetName(), problems)
}

// maxCauses is how many problems a refusal lists. A body may have ten thousand, each some hundred bytes of text.
const maxCauses = 100

// newInvalid returns 422 with a cause for each of the first [maxCauses] problems, and their number if there are more;
// nil if there are none.
//
// Differs: upstream lists all of them, in a message that takes quadratic time to build.
func (s *Store) newInvalid(name string, problems field.ErrorList) error {
	if len(problems) == 0 {
		return nil
	}
	named := problems[:min(len(problems), maxCauses)]
	err := apierrors.NewInvalid(s.resource.GroupVersion.WithKind(s.resource.Kind).GroupKind(), name, named)
	if len(named) < len(problems) {
		err.ErrStatus.Message += fmt.Sprintf(" (the first %d of %d problems)", len(named), len(problems))
	}
	return err
}

// fillSystemFields sets the metadata that no client may choose.
func (s *Store) fillSystemFields(accessor metav1.Object) {
	accessor.SetDeletionTimestamp(nil)
	accessor.SetDeletionGracePeriodSeconds(nil)
	accessor.SetSelfLink("")
	accessor.SetGeneration(0)
	accessor.SetCreationTimestamp(metav1.NewTime(s.clock.Now()).Rfc3339Copy())
	accessor.SetUID(uuid.NewUUID())
}

func (s *Store) validateMetadata(accessor metav1.Object) field.ErrorList {
	return validation.ValidateObjectMetaAccessor(accessor, s.resource.Namespaced,
		s.resource.Strategy.ValidateName, field.NewPath("metadata"))
}

// beforeUpdate brings a client's new version of old into the form in which it may be stored. The error is 400 or 422.
//
// Upstream: k8s.io/apiserver/pkg/registry/rest/update.go: BeforeUpdate
func (s *Store) beforeUpdate(namespace string, obj, old runtime.Object) error {
	accessor, oldAccessor := metadata(obj), metadata(old)
	if err := s.ensureNamespace(namespace, accessor); err != nil {
		return err
	}
	keepSystemFields(accessor, oldAccessor)
	s.resource.Strategy.Default(obj)
	s.updateStrategy.PrepareForUpdate(obj, old)
	problems := s.validateMetadata(accessor)
	problems = append(problems, validation.ValidateObjectMetaAccessorUpdate(accessor, oldAccessor,
		field.NewPath("metadata"))...)
	problems = append(problems, s.updateStrategy.ValidateUpdate(obj, old)...)
	return s.newInvalid(accessor.GetName(), problems)
}

// keepSystemFields carries over the metadata that an update cannot change, the deletion timestamp included: a deletion
// cannot be undone.
func keepSystemFields(accessor, old metav1.Object) {
	accessor.SetGeneration(old.GetGeneration())
	accessor.SetSelfLink("")
	if accessor.GetUID() == "" {
		accessor.SetUID(old.GetUID())
	}
	if created := old.GetCreationTimestamp(); !created.IsZero() {
		accessor.SetCreationTimestamp(created)
	}
	accessor.SetDeletionTimestamp(old.GetDeletionTimestamp())
	accessor.SetDeletionGracePeriodSeconds(old.GetDeletionGracePeriodSeconds())
}
