package registry

import (
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	storage "listwatch/chapters/01-storage"
)

// Resource is everything that is known about a kind of object before any storage is built. It
// is shared and never changed.
//
// Upstream: k8s.io/apiserver/pkg/registry/generic/registry/store.go: Store
// Differs: upstream spreads this over the fields of Store, the scheme and the installer.
type Resource struct {
	GroupVersion schema.GroupVersion // of core its group is ""

	Name       string // "pods"
	Kind       string // "Pod"
	Namespaced bool

	// Prefix is the directory of all objects, without a slash at its end. It need not contain
	// Name: nodes are still kept as "/registry/minions", as they were once called.
	Prefix string

	NewFunc     func() runtime.Object
	NewListFunc func() runtime.Object

	// GetAttrs returns what selectors see of an object; Fields lists the fields a selector may
	// name.
	GetAttrs storage.AttrFunc
	Fields   []string

	// Trigger is the field by which the cache finds objects and watchers; nil: none.
	Trigger *storage.Trigger

	// Objects are written as Strategy decides, their status as StatusStrategy does; nil: the
	// kind has no status of its own.
	Strategy       Strategy
	StatusStrategy UpdateStrategy

	// TTL is how long after its last write an object is deleted by itself. 0: never.
	TTL time.Duration

	// ReturnDeletedObject: a delete answers with the object's last state instead of a Status.
	ReturnDeletedObject bool
}

// GroupResource returns the resource's name without its version, as errors want it.
func (r *Resource) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.GroupVersion.Group, Resource: r.Name}
}

// KeyRoot returns the directory in which all objects of a namespace live, or of all namespaces if it is empty.
//
// Upstream: k8s.io/apiserver/pkg/registry/generic/registry/store.go: NamespaceKeyRootFunc
func (r *Resource) KeyRoot(namespace string) string {
	if !r.Namespaced || namespace == "" {
		return r.Prefix
	}
	return r.Prefix + "/" + namespace
}

// checkNamespace refuses a namespace that cannot be one segment of a key: 400. It may be empty.
func (r *Resource) checkNamespace(namespace string) error {
	if problems := content.IsPathSegmentName(namespace); len(problems) > 0 {
		return apierrors.NewBadRequest(fmt.Sprintf("Namespace parameter invalid: %q: %s", namespace,
			strings.Join(problems, ";")))
	}
	return nil
}

// Key returns the key of one object. The error is 400 BadRequest: a namespaced object needs a namespace, and namespace
// and name must each be usable as one segment of a path.
//
// Upstream: k8s.io/apiserver/pkg/registry/generic/registry/store.go: NamespaceKeyFunc
// Differs: upstream looks at the name only, and a namespace ".." becomes the storage's error, a 500.
func (r *Resource) Key(namespace, name string) (string, error) {
	if r.Namespaced && namespace == "" {
		return "", apierrors.NewBadRequest("Namespace parameter required.")
	}
	if err := r.checkNamespace(namespace); err != nil {
		return "", err
	}
	if name == "" {
		return "", apierrors.NewBadRequest("Name parameter required.")
	}
	if problems := content.IsPathSegmentName(name); len(problems) > 0 {
		return "", apierrors.NewBadRequest(fmt.Sprintf("Name parameter invalid: %q: %s", name, strings.Join(problems,
			";")))
	}
	return r.KeyRoot(namespace) + "/" + name, nil
}

// ObjectKey returns the key of obj, read off its metadata. It is the [reflector.KeyFunc] of the storage.
func (r *Resource) ObjectKey(obj any) (string, error) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return "", err
	}
	return r.Key(accessor.GetNamespace(), accessor.GetName())
}

// ConvertFieldLabel returns the field and value that a term of a field selector means, or an error for a field that
// cannot be selected by.
//
// Upstream: k8s.io/apimachinery/pkg/runtime/scheme.go: (*Scheme).ConvertFieldLabel
func (r *Resource) ConvertFieldLabel(label, value string) (string, string, error) {
	if slices.Contains(r.Fields, label) {
		return label, value, nil
	}
	if slices.Equal(r.Fields, defaultFields) {
		return "", "", fmt.Errorf("%q is not a known field selector: only %q, %q", label, r.Fields[0], r.Fields[1])
	}
	return "", "", fmt.Errorf("field label not supported: %s", label)
}
