package registry

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/observe/probe"
)

// optimisticLockErrorMsg is upstream's answer to a client that would overwrite a version it has not seen.
const optimisticLockErrorMsg = "the object has been modified; " +
	"please apply your changes to the latest version and try again"

// UpdatedObjectInfo makes the new object, which then belongs to the caller, out of the one that
// is stored. A PUT takes it from the body and ignores the stored one, a PATCH computes it. The
// Store calls it again, with a newer old, whenever another writer was faster. It must not
// change old, which is empty if the object does not exist.
//
// Upstream: k8s.io/apiserver/pkg/registry/rest/rest.go: UpdatedObjectInfo
// Differs: an interface there, which may have preconditions, too.
type UpdatedObjectInfo func(ctx context.Context, old runtime.Object) (runtime.Object, error)

// errEmptiedFinalizers ends an update that has removed the last finalizer of an object that is being deleted. Only the
// deletion remains to be done.
var errEmptiedFinalizers = errors.New("emptied finalizers")

// Update changes one object and returns it as stored, and whether it was created by that. A resource version in the
// new object is a claim to have seen the newest state: if the claim is wrong the error is 409 Conflict. Without one,
// the last writer wins. forceAllowCreate lets it create an object that does not exist, whatever its kind says. Other
// errors: 400, 404, 422, and those of info.
//
// Upstream: k8s.io/apiserver/pkg/registry/generic/registry/store.go: (*Store).Update
func (s *Store) Update(ctx context.Context, namespace, name string, info UpdatedObjectInfo, forceAllowCreate bool,
	options *metav1.UpdateOptions) (obj runtime.Object, created bool, err error) {
	key, err := s.resource.Key(namespace, name)
	if err != nil {
		return nil, false, err
	}
	u := &update{store: s, namespace: namespace, name: name, info: info,
		allowsCreate: forceAllowCreate || s.createOnUpdate}
	apply := func(existing runtime.Object) (runtime.Object, error) { return u.apply(ctx, existing) }
	out := s.resource.NewFunc()
	dryRun := isDryRun(options.DryRun)
	err = s.storage.GuaranteedUpdate(ctx, key, out, true, nil, apply, dryRun)
	switch {
	case err == nil:
		return out, u.created, nil
	case errors.Is(err, errEmptiedFinalizers):
		return s.deleteWithoutFinalizers(ctx, key, name, u.deleting, dryRun)
	case u.created:
		return nil, false, storage.InterpretError(err, "create", s.resource.GroupResource(), name)
	default:
		return nil, false, storage.InterpretError(err, "update", s.resource.GroupResource(), name)
	}
}

// update is one call of [Store.Update]. Its fields are overwritten by every attempt.
type update struct {
	// Set by Update, never changed.
	store           *Store
	namespace, name string
	info            UpdatedObjectInfo
	allowsCreate    bool

	// Results of the last attempt.
	created  bool
	deleting runtime.Object // the object whose last finalizer is gone
}

// apply is the [storage.UpdateFunc] of an update.
func (u *update) apply(ctx context.Context, existing runtime.Object) (runtime.Object, error) {
	old := metadata(existing)
	u.created = old.GetResourceVersion() == ""
	if u.created && !u.allowsCreate {
		return nil, apierrors.NewNotFound(u.store.resource.GroupResource(), u.name)
	}
	obj, err := u.info(ctx, existing)
	if err != nil {
		return nil, err
	}
	accessor := metadata(obj)
	if u.created {
		return u.create(ctx, obj, accessor)
	}
	if err := u.checkVersion(accessor, old); err != nil {
		return nil, err
	}
	if err := u.store.beforeUpdate(u.namespace, obj, existing); err != nil {
		return nil, err
	}
	ignoreManagedFieldsTimestamps(obj, existing)
	if shouldDeleteDuringUpdate(accessor, old) && !u.store.holdsContent(obj) {
		u.deleting = obj
		return nil, errEmptiedFinalizers
	}
	return obj, nil
}

func (u *update) create(ctx context.Context, obj runtime.Object, accessor metav1.Object) (runtime.Object, error) {
	if accessor.GetResourceVersion() != "" {
		// The client has seen a version of an object that is gone.
		return nil, apierrors.NewConflict(u.store.resource.GroupResource(), u.name,
			fmt.Errorf("StorageError: invalid object, Precondition failed: the object does not exist"))
	}
	if err := u.store.admitCreate(ctx, u.namespace, u.name); err != nil {
		return nil, err
	}
	return obj, u.store.beforeCreate(u.namespace, obj)
}

// errNoVersion has upstream's text, including the 0.
var errNoVersion = field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update")

// checkVersion refuses an object made from another version than the one that is stored.
func (u *update) checkVersion(accessor, old metav1.Object) error {
	if accessor.GetResourceVersion() == "" &&
		!u.store.resource.Strategy.AllowUnconditionalUpdate() {
		return u.store.newInvalid(u.name, field.ErrorList{errNoVersion})
	}
	if accessor.GetResourceVersion() == "" {
		accessor.SetResourceVersion(old.GetResourceVersion())
		return nil
	}
	named, stored := accessor.GetResourceVersion(), old.GetResourceVersion()
	if named != stored {
		found, _ := strconv.ParseUint(stored, 10, 64) // ours are numbers
		u.store.probe.Text(probe.WriteRefused, named, path.Join(u.namespace, u.name), found)
		return apierrors.NewConflict(
			u.store.resource.GroupResource(), u.name, errors.New(optimisticLockErrorMsg))
	}
	return nil
}

// ignoreManagedFieldsTimestamps restores the old times in managedFields if nothing else has changed. The object then
// equals the stored one, and the storage writes nothing. Otherwise a controller that watches what it applies would wake
// itself up by its own apply, once a second, for ever.
//
// The field manager compares too, but before defaults and strategy: to it, "0.5" cpu differs from the stored "500m".
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/fieldmanager/equality.go: IgnoreManagedFieldsTimestampsTransformer
func ignoreManagedFieldsTimestamps(obj, existing runtime.Object) {
	entries, old := metadata(obj).GetManagedFields(), metadata(existing).GetManagedFields()
	if len(entries) != len(old) {
		return
	}
	steady := slices.Clone(entries)
	for i := range steady {
		steady[i].Time = old[i].Time
	}
	metadata(obj).SetManagedFields(steady)
	if !equality.Semantic.DeepEqual(obj, existing) {
		metadata(obj).SetManagedFields(entries)
	}
}

// shouldDeleteDuringUpdate reports whether the update has removed the last obstacle to a deletion that was asked for
// earlier. A graceful period still running is an obstacle as well.
//
// Upstream: k8s.io/apiserver/pkg/registry/generic/registry/store.go: ShouldDeleteDuringUpdate
func shouldDeleteDuringUpdate(accessor, old metav1.Object) bool {
	if old.GetDeletionTimestamp() == nil || len(accessor.GetFinalizers()) > 0 {
		return false
	}
	period := old.GetDeletionGracePeriodSeconds()
	return period == nil || *period == 0
}

// deleteWithoutFinalizers erases an object whose finalizers are all gone. An object that is already erased is no error.
// It returns the updated object with its old version, as upstream does. Watchers get DELETED, and no MODIFIED.
//
// It also erases, at the next update of any kind, an object whose deletion was interrupted between its two writes: that
// one is marked, with a grace period of 0, and nothing holds it back.
//
// Upstream: k8s.io/apiserver/pkg/registry/generic/registry/store.go: (*Store).deleteWithoutFinalizers
func (s *Store) deleteWithoutFinalizers(ctx context.Context, key, name string, obj runtime.Object,
	dryRun bool) (runtime.Object, bool, error) {
	uid := metadata(obj).GetUID()
	out := s.resource.NewFunc()
	err := s.storage.Delete(ctx, key, out, &storage.Preconditions{UID: &uid}, dryRun)
	if err != nil && !storage.IsNotFound(err) {
		return nil, false, storage.InterpretError(err, "delete", s.resource.GroupResource(), name)
	}
	return obj, false, nil
}
