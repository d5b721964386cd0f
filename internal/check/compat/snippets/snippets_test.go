// Package snippets holds the code of docs/SNIPPETS.md: the page has each declaration of this file, letter by letter.
package snippets

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"
	"k8s.io/client-go/util/workqueue"
)

// waitForWrite returns when the store holds a write's version or a newer version.
func waitForWrite(ctx context.Context, store cache.Store, answered metav1.Object) error {
	written := answered.GetResourceVersion()
	arrived := func(context.Context) (bool, error) {
		stored := store.LastStoreSyncResourceVersion()
		if stored == "" {
			return false, nil // the first list is still under way
		}
		order, err := resourceversion.CompareResourceVersion(stored, written)
		return order >= 0, err // an error if either is "", "0", or not a number
	}
	return wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, arrived)
}

// podOf returns the pod from a handler's or filter's argument, or nil if only its key is known.
func podOf(obj any) *corev1.Pod {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj // an old state, or nil
	}
	pod, _ := obj.(*corev1.Pod)
	return pod
}

// deletionsOn returns a handler that calls gone(key) for each pod deleted from a node, and for a deleted pod
// whose node is unknown.
func deletionsOn(node string, gone func(key string)) cache.ResourceEventHandler {
	return cache.FilteringResourceEventHandler{
		FilterFunc: func(obj any) bool {
			pod := podOf(obj) // obj.(*corev1.Pod) would panic on a tombstone
			return pod == nil || pod.Spec.NodeName == node
		},
		Handler: cache.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) {
			if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
				gone(key)
			}
		}},
	}
}

// typedDeletionsOn is deletionsOn for typed handlers of client-go 0.37, which get no tombstone.
func typedDeletionsOn(node string, gone func(key string)) cache.TypedResourceEventHandler[*corev1.Pod] {
	return cache.TypedFilteringResourceEventHandler[*corev1.Pod]{
		FilterFunc: func(pod *corev1.Pod) bool { // nil if only the key is known
			return pod == nil || pod.Spec.NodeName == node
		},
		Handler: cache.TypedResourceEventHandlerFuncs[*corev1.Pod]{
			DeleteFunc: func(deleted cache.DeletedObject[*corev1.Pod]) {
				gone(deleted.GetKey()) // deleted.OptionalObj may be nil, or old
			},
		},
	}
}

// handle adds a handler for as long as ctx lasts. After handle has returned, no call is running, and none will begin.
func handle(ctx context.Context, informer cache.SharedIndexInformer, handler cache.ResourceEventHandler) error {
	registration, err := informer.AddEventHandler(handler)
	if err != nil {
		return err // the informer has been stopped
	}
	if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) { // not informer.HasSynced
		return errors.Join(ctx.Err(), cache.ShutDownEventHandler(informer, registration))
	}
	<-ctx.Done()
	return cache.ShutDownEventHandler(informer, registration) // waits for running calls; in a handler this deadlocks
}

// follow lists pods, and then reports each change; after a 410 it lists again.
func follow(ctx context.Context, pods typed.PodInterface, all func([]corev1.Pod), one func(watch.Event)) error {
	version := ""
	return wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		if version == "" {
			list, err := pods.List(ctx, metav1.ListOptions{})
			if err != nil {
				return false, err
			}
			all(list.Items) // a pod that is not in the list has been deleted
			version = list.ResourceVersion
		}
		var err error
		version, err = watchFrom(ctx, pods, version, one)
		return false, err
	})
}

// watchFrom calls one for each event after a version. It returns the last version, or "" after a 410.
func watchFrom(ctx context.Context, pods typed.PodInterface, version string, one func(watch.Event)) (string, error) {
	w, err := pods.Watch(ctx, metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true})
	if err != nil {
		return version, err
	}
	defer w.Stop()
	for event := range w.ResultChan() { // the channel closes for many reasons, and the client does not see which
		if event.Type == watch.Error {
			if err = apierrors.FromObject(event.Object); apierrors.IsResourceExpired(err) {
				return "", nil
			}
			return version, err
		}
		version = event.Object.(metav1.Object).GetResourceVersion() // from bookmarks, too
		if event.Type != watch.Bookmark {
			one(event)
		}
	}
	return version, nil
}

// retried follows pods with a RetryWatcher. It returns after an ERROR: a stream's 410, or a refusal (401, 403).
func retried(ctx context.Context, pods typed.PodInterface, version string, one func(watch.Event)) error {
	source := &cache.ListWatch{WatchFuncWithContext: pods.Watch}
	w, err := toolswatch.NewRetryWatcherWithContext(ctx, version, source)
	if err != nil {
		return err // version is "" or "0"
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if event.Type == watch.Error {
			// after a 410, the caller lists again and restarts from that list's version
			return apierrors.FromObject(event.Object)
		}
		one(event) // never a bookmark
	}
	return ctx.Err()
}

// readPages reads all pods in pages. If it returns false, later pages are newer than the first.
func readPages(ctx context.Context, pods typed.PodInterface, page func([]corev1.Pod)) (sameVersion bool, err error) {
	options := metav1.ListOptions{Limit: 500}
	for sameVersion = true; ; {
		list, err := pods.List(ctx, options)
		var status apierrors.APIStatus
		if apierrors.IsResourceExpired(err) && errors.As(err, &status) && status.Status().Continue != "" {
			options.Continue, sameVersion = status.Status().Continue, false // the rest in its current state
			continue
		}
		if err != nil {
			return false, err
		}
		page(list.Items)
		if options.Continue = list.Continue; options.Continue == "" {
			return sameVersion, nil
		}
	}
}

// work reconciles keys until the queue is shut down. Several workers may share one queue.
func work(ctx context.Context, queue workqueue.TypedRateLimitingInterface[string], reconcile reconciler) {
	for {
		key, shutdown := queue.Get() // no other worker gets this key before Done
		if shutdown {
			return
		}
		workOn(ctx, queue, key, reconcile)
	}
}

// A reconciler brings a key's object to the desired state.
type reconciler func(ctx context.Context, key string) error

// workOn reconciles one key. The first ten failures queue the key again.
func workOn(ctx context.Context, queue workqueue.TypedRateLimitingInterface[string], key string, do reconciler) {
	defer queue.Done(key) // last, and always: without Done no worker ever gets this key again
	if err := do(ctx, key); err != nil && queue.NumRequeues(key) < 10 {
		queue.AddRateLimited(key) // after a wait that doubles with each failure
		return
	}
	queue.Forget(key) // done, or given up: the next failure counts as the first
}

// expectations counts creations that the informer has not shown yet, by the owner's key.
type expectations struct {
	mu      sync.Mutex
	missing map[string]int
	since   map[string]time.Time
}

// expect sets the number of creations. Call it before the first POST.
func (e *expectations) expect(owner string, creations int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.missing[owner], e.since[owner] = creations, time.Now()
}

// observed subtracts one creation. Call it in OnAdd, and after each failed POST.
func (e *expectations) observed(owner string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.missing[owner]--
}

// satisfied reports whether the informer's count may be trusted. If not, OnAdd will queue the key.
func (e *expectations) satisfied(owner string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.missing[owner] <= 0 || time.Since(e.since[owner]) > 5*time.Minute // upstream's limit
}
