package controllers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"

	listwatch "listwatch/chapters/09-listwatch"
	informer "listwatch/chapters/13-informer"
	"listwatch/internal/observe/routine"
)

// contentPeriod is the time between two looks at a namespace whose pods take time to stop.
const contentPeriod = time.Second

// NamespaceController removes what is in namespaces that are being deleted, and then lets them go. The server only
// marks such a namespace, refuses new content, and waits until the finalizer is taken off the list in its spec.
//
// It asks discovery which kinds there are, each time: what is served may have grown.
//
// Differs: k8s.io/kubernetes/pkg/controller/namespace reads the metadata of what is left only, and orders the deletion.
type NamespaceController struct {
	// Set by NewNamespaceController, never changed.
	client     *listwatch.RESTClient
	namespaces informer.TypedInformer[*corev1.Namespace]
	queue      *RateLimitingQueue
}

// NewNamespaceController returns a controller that does nothing until [NamespaceController.Run]. It
// reports nothing: the picture is of the way of pods. The factory of the informer runs it.
func NewNamespaceController(client *listwatch.RESTClient, namespaces informer.TypedInformer[*corev1.Namespace],
	clk clock.WithTicker) *NamespaceController {
	return &NamespaceController{client, namespaces, NewRateLimitingQueue(clk, nil)}
}

// Run follows the namespaces until ctx is done and all its goroutines have ended.
func (c *NamespaceController) Run(ctx context.Context) {
	follow(c.namespaces.Informer(), func(old, namespace *corev1.Namespace) { c.queue.Add(cmp.Or(namespace, old).Name) })
	var g routine.Group
	g.Go(ctx, "namespaces.waitingLoop", c.queue.Run)
	g.Go(ctx, "namespaces.worker", (&worker{queue: c.queue, reconciler: c}).run)
	g.Wait()
}

// reconcile removes what is in the namespace, if it is being deleted, as far as that is possible now.
func (c *NamespaceController) reconcile(ctx context.Context, key string) (outcome, error) {
	namespace, err := c.namespaces.Lister().Get(key)
	if err != nil || namespace.DeletionTimestamp == nil || len(namespace.Spec.Finalizers) == 0 {
		return outcome{}, nil // the error is that it is gone
	}
	left, err := c.removeContent(ctx, namespace.Name)
	switch {
	case err != nil:
		return outcome{}, err
	case left > 0:
		return outcome{again: contentPeriod}, nil // its pods have time to stop
	}
	return outcome{}, c.finalize(ctx, namespace)
}

// removeContent deletes everything in a namespace, and returns how much of it is still there: pods are given time, and
// what has finalizers waits for those.
func (c *NamespaceController) removeContent(ctx context.Context, namespace string) (left int, err error) {
	kinds, err := discover(ctx, c.client)
	if err != nil {
		return 0, err
	}
	for _, each := range kinds {
		if !each.namespaced || !each.verbs.Has("deletecollection") {
			continue
		}
		n, err := each.removeAll(ctx, namespace)
		if err != nil {
			return 0, err
		}
		left += n
	}
	return left, nil
}

// served is a kind that the server says it has.
type served struct {
	resourceClient
	kind       string // "apps/v1/Deployment"
	namespaced bool
	verbs      sets.Set[string]
}

// discover asks the server for all kinds.
func discover(ctx context.Context, client *listwatch.RESTClient) (kinds []served, err error) {
	groups := &metav1.APIGroupList{}
	if err := client.WithAPIPath("/apis").Get().Do(ctx).Into(groups); err != nil {
		return nil, fmt.Errorf("discover groups: %w", err)
	}
	paths := []string{"/api/v1"}
	for _, group := range groups.Groups {
		paths = append(paths, "/apis/"+group.PreferredVersion.GroupVersion)
	}
	for _, path := range paths {
		known, of := &metav1.APIResourceList{}, client.WithAPIPath(path)
		if err := of.Get().Do(ctx).Into(known); err != nil {
			return nil, fmt.Errorf("discover %s: %w", path, err)
		}
		for _, kind := range known.APIResources {
			kinds = append(kinds, served{resourceClient{of, kind.Name}, known.GroupVersion + "/" + kind.Kind,
				kind.Namespaced, sets.New(kind.Verbs...)})
		}
	}
	return kinds, nil
}

// removeAll deletes the objects of one resource in a namespace, and returns how many of them are still there.
func (r resourceClient) removeAll(ctx context.Context, namespace string) (left int, err error) {
	if err := r.client.Delete().Namespace(namespace).Resource(r.name).Do(ctx).Error(); err != nil {
		return 0, fmt.Errorf("delete %s in %s: %w", r.name, namespace, err)
	}
	list := &unstructured.UnstructuredList{} // whatever they are: only their number counts
	if err := r.client.Untyped().Get().Namespace(namespace).Resource(r.name).Do(ctx).Into(list); err != nil {
		return 0, fmt.Errorf("list %s in %s: %w", r.name, namespace, err)
	}
	return len(list.Items), nil
}

// finalize takes our finalizer off the list, which erases the namespace unless another finalizer is on it.
func (c *NamespaceController) finalize(ctx context.Context, namespace *corev1.Namespace) error {
	updated := namespace.DeepCopy() // the original came out of a cache
	updated.Spec.Finalizers = slices.DeleteFunc(updated.Spec.Finalizers, func(finalizer corev1.FinalizerName) bool {
		return finalizer == corev1.FinalizerKubernetes
	})
	return ignoreGone(resourceClient{c.client, "namespaces"}.write(ctx, updated, "finalize"))
}
