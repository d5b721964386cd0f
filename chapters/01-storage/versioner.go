package storage

import (
	"fmt"
	"reflect"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// APIObjectVersioner moves a resource version between its number and the string in an object's
// metadata. On the server a resource version is an etcd revision and may be compared; a client
// hands it back as it is.
//
// Upstream: k8s.io/apiserver/pkg/storage/api_object_versioner.go: APIObjectVersioner
type APIObjectVersioner struct{}

// revisionBits is the size of an etcd revision, which is an int64 and never negative.
const revisionBits = 63

// UpdateObject stamps obj with rv. It refuses 0, which no stored object has.
func (APIObjectVersioner) UpdateObject(obj runtime.Object, rv uint64) error {
	if rv == 0 {
		return fmt.Errorf("stamp object: illegal resource version 0")
	}
	accessor, err := metaAccessor(obj)
	if err != nil {
		return err
	}
	accessor.SetResourceVersion(strconv.FormatUint(rv, 10))
	return nil
}

// Stamped returns a copy of obj that carries rv and has nothing else of its own: metadata's maps and slices, spec and
// status are shared with obj, as is allowed to objects that nothing changes. obj is a pointer to a struct with an
// ObjectMeta in it, as all types of the API are.
func (v APIObjectVersioner) Stamped(obj runtime.Object, rv uint64) (runtime.Object, error) {
	shallow := reflect.New(reflect.TypeOf(obj).Elem())
	shallow.Elem().Set(reflect.ValueOf(obj).Elem())
	stamped := shallow.Interface().(runtime.Object)
	return stamped, v.UpdateObject(stamped, rv)
}

// UpdateList stamps a list with rv, the token that continues it ("" if it is complete) and, if not nil, the number of
// items still to come.
func (APIObjectVersioner) UpdateList(list runtime.Object, rv uint64, continueToken string, remaining *int64) error {
	if rv == 0 {
		return fmt.Errorf("stamp list: illegal resource version 0")
	}
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return err
	}
	accessor.SetResourceVersion(strconv.FormatUint(rv, 10))
	accessor.SetContinue(continueToken)
	accessor.SetRemainingItemCount(remaining)
	return nil
}

// PrepareObjectForStorage blanks what is never stored: the resource version, which is the revision the object is
// about to get, and the self link of old clients.
func (APIObjectVersioner) PrepareObjectForStorage(obj runtime.Object) error {
	accessor, err := metaAccessor(obj)
	if err != nil {
		return err
	}
	accessor.SetResourceVersion("")
	accessor.SetSelfLink("")
	return nil
}

// ObjectResourceVersion returns the resource version of obj, 0 if it carries none.
func (v APIObjectVersioner) ObjectResourceVersion(obj runtime.Object) (uint64, error) {
	accessor, err := metaAccessor(obj)
	if err != nil {
		return 0, err
	}
	return v.ParseResourceVersion(accessor.GetResourceVersion())
}

// ParseResourceVersion returns the number behind a resource version. "" and "0" both give 0. Anything but an unsigned
// decimal number that can be an etcd revision, which has 63 bits, is an [InvalidError].
//
// Upstream: k8s.io/apiserver/pkg/storage/api_object_versioner.go: (APIObjectVersioner).ParseResourceVersion
// Differs: upstream accepts 64 bits, and an exact list at such a version wraps around to a list at the newest.
func (APIObjectVersioner) ParseResourceVersion(resourceVersion string) (uint64, error) {
	if resourceVersion == "" || resourceVersion == "0" {
		return 0, nil
	}
	rv, err := strconv.ParseUint(resourceVersion, 10, revisionBits)
	if err != nil {
		return 0, InvalidError{field.Invalid(field.NewPath("resourceVersion"), resourceVersion, err.Error())}
	}
	return rv, nil
}

// ItemsOf returns the Items of a list object as a slice that can be set. It is empty then, and not nil: JSON clients
// can tell the difference.
func ItemsOf(list runtime.Object) (reflect.Value, error) {
	pointer, err := meta.GetItemsPtr(list)
	if err != nil {
		return reflect.Value{}, fmt.Errorf("list into %T: %w", list, err)
	}
	items := reflect.ValueOf(pointer).Elem()
	items.Set(reflect.MakeSlice(items.Type(), 0, 0))
	return items, nil
}

// VersionOf returns the resource version under which a probe speaks of obj: 0 if it has none, or one that is not a
// number, which is legal on a client. It is for probes only: what must not go wrong asks [APIObjectVersioner].
func VersionOf(obj any) uint64 {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return 0
	}
	return ProbeVersion(accessor.GetResourceVersion())
}

// ProbeVersion is [VersionOf] for a resource version that is at hand.
func ProbeVersion(resourceVersion string) uint64 {
	rv, err := strconv.ParseUint(resourceVersion, 10, revisionBits)
	if err != nil {
		return 0
	}
	return rv
}

func metaAccessor(obj runtime.Object) (metav1.Object, error) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, fmt.Errorf("read metadata of %T: %w", obj, err)
	}
	return accessor, nil
}
