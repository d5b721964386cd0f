package cacher

import (
	"context"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	storage "listwatch/chapters/01-storage"
)

// CacheDelegator is the storage for all code except the Cacher: the cache answers reads that it can answer truthfully,
// the storage everything else.
//
// Items of a list that comes from the cache share their inner parts with it; see [Cacher.GetList].
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/delegator.go: CacheDelegator
// Differs: no consistency checker.
type CacheDelegator struct {
	// answers calls that have no method here: Create, of which the cache learns by its watch
	storage.Interface
	cacher *Cacher
}

var _ storage.Interface = (*CacheDelegator)(nil)

// NewCacheDelegator returns store with cacher in front of it.
func NewCacheDelegator(cacher *Cacher, store storage.Interface) *CacheDelegator {
	return &CacheDelegator{store, cacher}
}

// Delete goes to the storage, with the cached object as a guess at the stored one. The caller's guess is ignored: the
// cache's is better.
func (d *CacheDelegator) Delete(ctx context.Context, key string, out runtime.Object,
	preconditions *storage.Preconditions, _ runtime.Object) error {
	return d.Interface.Delete(ctx, key, out, preconditions, d.cacher.suggestion(ctx, key))
}

// GuaranteedUpdate goes to the storage, with the cached object as a guess at the stored one.
func (d *CacheDelegator) GuaranteedUpdate(ctx context.Context, key string, out runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, update storage.UpdateFunc, _ runtime.Object) error {
	return d.Interface.GuaranteedUpdate(ctx, key, out, ignoreNotFound, preconditions, update, d.cacher.suggestion(ctx,
		key))
}

// Watch is always served by the cache, or refused.
func (d *CacheDelegator) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	return d.cacher.Watch(ctx, key, opts)
}

// Get reads the storage if the newest state is wanted, or if the cache is not ready; otherwise it is [Cacher.Get].
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/delegator.go: (*CacheDelegator).Get
func (d *CacheDelegator) Get(ctx context.Context, key string, opts storage.GetOptions, out runtime.Object) error {
	if opts.ResourceVersion == "" || !d.cacher.Ready() {
		return d.Interface.Get(ctx, key, opts, out)
	}
	return d.cacher.Get(ctx, key, opts, out)
}

// GetList is answered by the cache if it can be:
//
//	version              match           answered by
//	""                   -               the cache, when it has caught up; after 3 s storage
//	"0"                  -               the cache as it is, never paged
//	N                    -, NotOlderThan the cache, once it has reached N; after 3 s 504
//	N                    Exact           the cache's snapshot at N, else the storage
//	N, with a limit      -               the same
//	in a continue token                  the same; the newest state if that version is -1
//
// Exact reads of a single object go to the storage. A cache that is not ready refuses with 429,
// except for pages without a selector, which the storage can bear.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/delegator.go: (*CacheDelegator).GetList
// Differs: upstream's storage answers "" at once if etcd is too old to report its progress.
func (d *CacheDelegator) GetList(
	ctx context.Context, key string, opts storage.ListOptions, listOut runtime.Object,
) error {
	prepared, err := d.cacher.prepareKey(key, opts.Recursive)
	if err != nil {
		return err
	}
	withRev, _, err := storage.ValidateListOptions(prepared, opts)
	if err != nil {
		return err
	}
	delegate, consistent := d.shouldDelegateList(withRev, opts)
	unready := !d.cacher.Ready() && shouldDelegateListOnNotReadyCache(opts)
	if delegate || unready {
		return d.Interface.GetList(ctx, key, opts, listOut)
	}
	err = d.cacher.GetList(ctx, key, opts, listOut)
	if apierrors.IsResourceExpired(err) {
		return d.Interface.GetList(ctx, key, opts, listOut)
	}
	if consistent {
		return d.endConsistentRead(ctx, key, opts, listOut, err)
	}
	return err
}

// endConsistentRead counts a list of the newest state. It reads the list from the storage if the cache, within
// three seconds, did not reach the version that the storage had when the list began.
//
// Differs: with the gate ConsistentListFromCacheSkipTimeoutFallback (alpha, off) upstream answers 429 instead.
func (d *CacheDelegator) endConsistentRead(ctx context.Context, key string, opts storage.ListOptions,
	listOut runtime.Object, err error) error {
	fallback := apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
	if fallback {
		err = d.Interface.GetList(ctx, key, opts, listOut)
	}
	success, byStorage := strconv.FormatBool(err == nil), strconv.FormatBool(fallback)
	d.cacher.metrics.consistentReads.WithLabelValues(success, byStorage).Inc()
	return err
}

// shouldDelegateListOnNotReadyCache reports whether a list is cheap enough for the storage: one page, no selector.
func shouldDelegateListOnNotReadyCache(opts storage.ListOptions) bool {
	return opts.Predicate.Limit > 0 && opts.Predicate.Empty()
}

// shouldDelegateList decides who answers: the storage, or the cache. A consistent list has the newest state: the
// storage answers it after all if the cache does not reach that state. withRev is the one revision to read at, 0 if it
// is not fixed.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/delegator/interface.go: ShouldDelegateList
// Differs: upstream finds the revision out itself, in the order in which its cache does so again.
func (d *CacheDelegator) shouldDelegateList(withRev int64, opts storage.ListOptions) (delegate, consistent bool) {
	unsaid := opts.ResourceVersionMatch == ""
	// Clients asked so for an exact version before there was a match; a single object is read at any later version.
	single := !opts.Recursive && unsaid && opts.ResourceVersion != "" && listLimit(opts) > 0
	switch {
	case withRev > 0 && opts.Recursive && d.cacher.watchCache.HasSnapshot(uint64(withRev)):
		return false, false
	case withRev > 0, single, opts.ResourceVersionMatch == metav1.ResourceVersionMatchExact:
		return true, false
	}
	return false, unsaid && opts.ResourceVersion == ""
}
