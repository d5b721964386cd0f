package registry

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/kube/resources"
)

// A deletion that others must prepare for takes two steps. First the Store only marks the object: it sets
// deletionTimestamp, watchers see MODIFIED and do their work: the kubelet stops containers, the owner of a finalizer
// cleans up. Then the Store erases it, and watchers see DELETED. These errors end the marking early.
var (
	errAlreadyDeleting = errors.New("already marked, nothing to change")
	errDeleteNow       = errors.New("nothing holds the object back")
)

// Delete deletes one object, or marks it for deletion. It returns the object and immediate false if it is only marked;
// otherwise immediate true and a Status, or the object, if ReturnDeletedObject. Errors: 404 NotFound, 409 Conflict when
// a precondition fails, 403 for a namespace of the system, 422 for options that contradict each other.
//
// Upstream: k8s.io/apiserver/pkg/registry/generic/registry/store.go: (*Store).Delete
func (s *Store) Delete(ctx context.Context, namespace, name string, options *metav1.DeleteOptions) (obj runtime.Object,
	immediate bool, err error) {
	if err := checkDeleteOptions(options); err != nil {
		return nil, false, err
	}
	key, err := s.resource.Key(namespace, name)
	if err != nil {
		return nil, false, err
	}
	if err := s.admitDelete(name); err != nil {
		return nil, false, err
	}
	d := &deletion{store: s, options: options.DeepCopy()}
	if period := d.options.GracePeriodSeconds; period != nil && *period < 0 {
		*period = 1 // upstream's answer to a negative one
	}
	preconditions := (*storage.Preconditions)(options.Preconditions)
	dryRun := isDryRun(options.DryRun)

	marked := s.resource.NewFunc()
	err = s.storage.GuaranteedUpdate(ctx, key, marked, false, preconditions, d.mark, dryRun)
	switch {
	case err == nil && d.heldBack:
		return marked, false, nil
	case err == nil && dryRun:
		return s.deleted(marked, name)
	case err == nil:
		// Marked with nothing to wait for. The mark is a new version, so a precondition on the old one has served.
		preconditions = nil
	case errors.Is(err, errAlreadyDeleting):
		return d.existing, false, nil
	case !errors.Is(err, errDeleteNow):
		return nil, false, storage.InterpretError(err, "delete", s.resource.GroupResource(), name)
	}

	out := s.resource.NewFunc()
	err = s.storage.Delete(ctx, key, out, preconditions, dryRun)
	if storage.IsNotFound(err) && d.marked {
		// A client that saw the mark was faster.
		return s.deleted(marked, name)
	}
	if err != nil {
		return nil, false, storage.InterpretError(err, "delete", s.resource.GroupResource(), name)
	}
	return s.deleted(out, name)
}

// checkDeleteOptions returns 422 for options that contradict each other.
//
// Differs: part of upstream's BeforeDelete, and of its handlers.
func checkDeleteOptions(options *metav1.DeleteOptions) error {
	problems := validation.ValidateDeleteOptions(options)
	if len(problems) == 0 {
		return nil
	}
	return apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("DeleteOptions").GroupKind(), "", problems)
}

// deleted returns the answer to the deletion of obj.
func (s *Store) deleted(obj runtime.Object, name string) (runtime.Object, bool, error) {
	if s.resource.ReturnDeletedObject {
		return obj, true, nil
	}
	details := &metav1.StatusDetails{Name: name, Kind: s.resource.Name, UID: metadata(obj).GetUID()}
	return &metav1.Status{Status: metav1.StatusSuccess, Details: details}, true, nil
}

// deletion is one call of [Store.Delete]. Its results are overwritten by every attempt.
type deletion struct {
	// Set by Delete, never changed, except that the strategy writes its grace period into options.
	store   *Store
	options *metav1.DeleteOptions

	// Results of the last attempt.
	existing runtime.Object
	marked   bool // the object was changed to say that it is being deleted
	heldBack bool // and must not be erased yet
}

// mark is the [storage.UpdateFunc] of a deletion. It sets the deletion timestamp if the
// deletion is graceful, or anything holds the object back.
//
// Upstream: k8s.io/apiserver/pkg/registry/generic/registry/store.go: (*Store).updateForGracefulDeletionAndFinalizers
func (d *deletion) mark(existing runtime.Object) (runtime.Object, error) {
	d.existing, d.marked, d.heldBack = existing.DeepCopyObject(), false, false
	accessor := metadata(existing)
	graceful, pending := d.beforeDelete(existing, accessor) // marks it, if graceful
	if pending {
		return nil, errAlreadyDeleting
	}
	if d.store.resource.TTL == 0 { // objects that expire by themselves have no dependents
		resources.SetPropagationFinalizers(accessor, d.options)
	}
	finalizers := len(accessor.GetFinalizers()) > 0 || d.store.holdsContent(existing)
	if !graceful {
		if !finalizers {
			return nil, errDeleteNow
		}
		d.markAsDeleting(accessor)
		if keeper, ok := d.store.updateStrategy.(ContentKeeper); ok {
			keeper.MarkAsDeleting(existing)
		}
	}
	d.marked = true
	d.heldBack = finalizers || *accessor.GetDeletionGracePeriodSeconds() > 0
	return existing, nil
}

// beforeDelete decides whether the object is to be deleted gracefully, and if so marks it. pending: it is marked
// already, and the new request has nothing to add.
//
// Upstream: k8s.io/apiserver/pkg/registry/rest/delete.go: BeforeDelete
func (d *deletion) beforeDelete(obj runtime.Object, accessor metav1.Object) (graceful, pending bool) {
	strategy, ok := d.store.updateStrategy.(GracefulDeleteStrategy)
	if !ok {
		return false, false
	}
	if accessor.GetDeletionTimestamp() != nil {
		return d.shorten(accessor)
	}
	if !strategy.CheckGracefulDelete(obj, d.options) {
		return false, false
	}
	period := *d.options.GracePeriodSeconds
	until := metav1.NewTime(d.store.clock.Now().Add(time.Duration(period) * time.Second)).Rfc3339Copy()
	accessor.SetDeletionTimestamp(&until)
	accessor.SetDeletionGracePeriodSeconds(&period)
	bumpGeneration(accessor)
	return true, false
}

// shorten handles a second deletion of an object: it can shorten the time that is left, never
// extend it.
func (d *deletion) shorten(accessor metav1.Object) (graceful, pending bool) {
	current := accessor.GetDeletionGracePeriodSeconds()
	if current == nil || *current == 0 {
		// The time is over, or an earlier deletion was interrupted between its two steps.
		return false, false
	}
	if d.options.GracePeriodSeconds == nil || *d.options.GracePeriodSeconds >= *current {
		return false, true
	}
	period := *d.options.GracePeriodSeconds
	started := accessor.GetDeletionTimestamp().Add(-time.Duration(*current) * time.Second)
	until := metav1.NewTime(started.Add(time.Duration(period) * time.Second))
	if now := metav1.NewTime(d.store.clock.Now()).Rfc3339Copy(); until.Before(&now) {
		until = now
		if period != 0 {
			// Still graceful: the kubelet sees the change and does the final delete.
			period = 1
		}
	}
	accessor.SetDeletionTimestamp(&until)
	accessor.SetDeletionGracePeriodSeconds(&period)
	return true, false
}

// markAsDeleting marks an object that only its finalizers hold back.
//
// Upstream: k8s.io/apiserver/pkg/registry/generic/registry/store.go: markAsDeleting
func (d *deletion) markAsDeleting(accessor metav1.Object) {
	now := metav1.NewTime(d.store.clock.Now()).Rfc3339Copy()
	existing := accessor.GetDeletionTimestamp()
	if existing == nil {
		bumpGeneration(accessor)
	}
	if existing == nil || now.Before(existing) {
		accessor.SetDeletionTimestamp(&now)
	}
	accessor.SetDeletionGracePeriodSeconds(new(int64(0)))
}

// bumpGeneration counts a requested deletion as a change of the desired state, for kinds that have a generation.
func bumpGeneration(accessor metav1.Object) {
	if accessor.GetGeneration() > 0 {
		accessor.SetGeneration(accessor.GetGeneration() + 1)
	}
}

// DeleteCollection deletes every object that listOptions select, one after the other, each with a revision and an event
// of its own, and returns the list of them as they were. Objects that vanish meanwhile are skipped, and those that are
// created meanwhile stay. The first error ends it, with the objects before it deleted.
//
// Upstream: k8s.io/apiserver/pkg/registry/generic/registry/store.go: (*Store).DeleteCollection
// Differs: one list; upstream reads pages of 10,000 and starts DeleteCollectionWorkers goroutines, by default one.
func (s *Store) DeleteCollection(ctx context.Context, namespace string, options *metav1.DeleteOptions,
	listOptions *metainternalversion.ListOptions) (runtime.Object, error) {
	if err := checkDeleteOptions(options); err != nil {
		return nil, err // even if there is nothing to delete
	}
	list, err := s.List(ctx, namespace, listOptions)
	if err != nil {
		return nil, err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	for _, item := range items {
		_, _, err := s.Delete(ctx, metadata(item).GetNamespace(), metadata(item).GetName(), options)
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	return list, nil
}
