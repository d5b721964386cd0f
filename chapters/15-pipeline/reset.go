package pipeline

import (
	"cmp"
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	storage "listwatch/chapters/01-storage"
	watchcache "listwatch/chapters/04-watchcache"
	"listwatch/internal/routine"
)

// deleters is how many pods are deleted at once by [Pipeline.Reset].
const deleters = 16

// Reset makes the sandbox what it was in the beginning: every knob as it stood, no watcher and no handler but those that
// were always there, no pod. What has happened stays in the log, and etcd's revisions go on counting: nobody is lied to,
// so everybody who watches sees it happen.
func (p *Pipeline) Reset(ctx context.Context) error {
	p.turned("everything, to where it was")
	errs := []error{p.Server.Traffic.SetRate(0), p.removeWatchers(ctx)}
	p.Client.Lines.Mend()
	for _, each := range p.Client.Handlers.List() {
		errs = append(errs, p.resetHandler(each.Name))
	}
	errs = append(errs, p.deletePods(ctx, anyPod))
	for _, ring := range p.Server.rings() {
		// What has grown does not shrink for an hour by itself: it is given its first size, and then let go.
		errs = append(errs, p.Server.SetRingCapacity(ring.Resource, cmp.Or(p.Server.ringCapacity, watchcache.InitialCapacity)))
		errs = append(errs, p.Server.SetRingCapacity(ring.Resource, p.Server.ringCapacity))
	}
	return errors.Join(errs...)
}

func (p *Pipeline) resetHandler(name string) error {
	if name == observer {
		return p.Client.Handlers.SetDelay(observer, 0)
	}
	err := p.Client.Handlers.Remove(name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// listPods returns every pod. It is a consistent read: the cache has caught up with all that was written before.
func (p *Pipeline) listPods(ctx context.Context) (list corev1.PodList, err error) {
	everything := storage.ListOptions{Recursive: true, Predicate: storage.Everything}
	err = p.Server.Storage("pods").GetList(ctx, "/registry/pods/", everything, &list)
	return list, err
}

// RemoveTraffic deletes the pods that [Traffic] has made.
func (p *Pipeline) RemoveTraffic(ctx context.Context) error { return p.deletePods(ctx, isTraffic) }

// Watching returns how many watchers of a resource are registered with its cacher.
func (p *Pipeline) Watching(resource string) int {
	for _, each := range p.Server.cachers {
		if each.Resource() == resource {
			return len(each.Snapshot().Watchers)
		}
	}
	return 0
}

func anyPod(*corev1.Pod) bool { return true }

// deletePods deletes the wanted pods at the storage: nobody is asked to end gracefully. It returns when the cache knows.
func (p *Pipeline) deletePods(ctx context.Context, wanted func(*corev1.Pod) bool) error {
	list, err := p.listPods(ctx)
	if err != nil {
		return err
	}
	keys := make(chan string) // sent here, closed here, received by the deleters; unbuffered: nothing is gained by room
	refused := make(chan error, deleters)
	var group routine.Group
	for range deleters {
		group.Go(ctx, "reset.delete", func(ctx context.Context) { refused <- p.deleteEach(ctx, keys) })
	}
	for i := range list.Items {
		if wanted(&list.Items[i]) {
			keys <- podKey(&list.Items[i])
		}
	}
	close(keys)
	group.Wait()
	close(refused)
	_, err = p.listPods(ctx)
	for each := range refused {
		err = errors.Join(err, each)
	}
	return err
}

// deleteEach deletes what keys brings, and returns the first error when all have been taken.
func (p *Pipeline) deleteEach(ctx context.Context, keys <-chan string) (first error) {
	for key := range keys {
		err := p.Server.Storage("pods").Delete(ctx, key, &corev1.Pod{}, nil, nil, nil)
		if first == nil && err != nil && !apierrors.IsNotFound(err) {
			first = err
		}
	}
	return first
}

func podKey(pod metav1.Object) string {
	return "/registry/pods/" + pod.GetNamespace() + "/" + pod.GetName()
}
