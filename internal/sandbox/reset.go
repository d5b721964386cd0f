package sandbox

import (
	"cmp"
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	storage "listwatch/chapters/01-storage"
	watchcache "listwatch/chapters/04-watchcache"
	"listwatch/internal/routine"
)

const (
	resetKind = "reset"         // of commands
	deleters  = 16              // how many pods are deleted at once
	etcdTime  = 5 * time.Second // for one read or write, if etcd does not answer
)

// Reset makes the sandbox what it was in the beginning: every knob as it stood, no story, no watcher and no handler but
// those that were always there, no pod, the modes of the command line. What has happened stays in the log, and etcd's
// revisions go on counting: watchers see it happen like everything else.
func (s *Sandbox) Reset(ctx context.Context) error {
	return s.do(ctx, &command{what: "the reset", kind: resetKind, begin: s.reset})
}

// reset puts back what can be put back at once, and returns the rest.
func (s *Sandbox) reset(context.Context) (func(context.Context) error, error) {
	s.turned("everything, to where it was")
	rests := append(s.endStory(), s.startNodes)
	s.traffic.setRate(0)
	s.watchers.removeAll()
	s.connections.mend()
	for _, each := range s.handlers.all() {
		each.setDelay(0)
		if each.name == observer {
			continue
		}
		s.handlers.take(each)
		rests = append(rests, func(context.Context) error { return s.handlers.unregister(each) })
	}
	rests = append(rests, func(ctx context.Context) error { return s.deletePods(ctx, anyPod) })
	for _, each := range s.config.Pipeline.Server.Cachers() {
		s.fixRing(each, s.config.RingCapacity)
	}
	return func(ctx context.Context) error {
		var errs []error
		for _, rest := range rests {
			errs = append(errs, rest(ctx))
		}
		s.shrinkRings()
		return errors.Join(append(errs, s.restoreModes())...)
	}, nil
}

// startNodes starts every node of etcd that was stopped.
func (s *Sandbox) startNodes(ctx context.Context) error {
	if s.config.Cluster == nil {
		return nil
	}
	var errs []error
	for _, name := range s.config.Cluster.Names() {
		errs = append(errs, s.config.Cluster.Run(ctx, name, true))
	}
	return errors.Join(errs...)
}

// shrinkRings gives every ring its first size, and lets it go: what has grown does not shrink for an hour by itself. A ring
// that was fixed meanwhile is left alone.
func (s *Sandbox) shrinkRings() {
	for _, each := range s.config.Pipeline.Server.Cachers() {
		if s.fixedRing(each.Resource()) == s.config.RingCapacity {
			each.SetRingCapacity(cmp.Or(s.config.RingCapacity, watchcache.InitialCapacity))
			each.SetRingCapacity(s.config.RingCapacity)
		}
	}
}

func (s *Sandbox) restoreModes() error {
	if s.config.Modes == nil {
		return nil
	}
	again, err := s.config.Modes.Restore()
	if err != nil || again == nil {
		return err
	}
	return again()
}

// listPods returns every pod. It is a consistent read: the cache has caught up with all that was written before.
func (s *Sandbox) listPods(ctx context.Context) (list corev1.PodList, err error) {
	ctx, cancel := context.WithTimeout(ctx, etcdTime)
	defer cancel()
	everything := storage.ListOptions{Recursive: true, Predicate: storage.Everything}
	err = s.pods().GetList(ctx, "/registry/pods/", everything, &list)
	return list, err
}

func (s *Sandbox) pods() storage.Interface { return s.config.Pipeline.Server.Storage("pods") }

func anyPod(*corev1.Pod) bool { return true }

// deletePods deletes the wanted pods at the storage: none is given time to end. It returns when the cache knows, or at
// the first error.
func (s *Sandbox) deletePods(ctx context.Context, wanted func(*corev1.Pod) bool) error {
	s.traffic.settle()
	list, err := s.listPods(ctx)
	if err != nil {
		return err
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	keys := make(chan string) // sent here, closed here, received by the deleters; unbuffered: room would gain nothing
	var group routine.Group
	for range deleters {
		group.Go(ctx, "sandbox.delete", func(ctx context.Context) { s.deleteEach(ctx, keys, fail) })
	}
	for i := range list.Items {
		if wanted(&list.Items[i]) {
			keys <- storageKey(&list.Items[i])
		}
	}
	close(keys)
	group.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	_, err = s.listPods(ctx)
	return err
}

// deleteEach deletes what keys brings. After an error it deletes no more, and the others do not either.
func (s *Sandbox) deleteEach(ctx context.Context, keys <-chan string, fail context.CancelCauseFunc) {
	for key := range keys {
		if ctx.Err() != nil {
			continue // the sender still has keys
		}
		if err := s.deleteOne(ctx, key); err != nil {
			fail(err)
		}
	}
}

func (s *Sandbox) deleteOne(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, etcdTime)
	defer cancel()
	err := s.pods().Delete(ctx, key, &corev1.Pod{}, nil, nil, nil)
	if storage.IsNotFound(err) {
		return nil
	}
	return err
}

// storageKey is where a pod is kept in etcd.
func storageKey(pod metav1.Object) string {
	return "/registry/pods/" + pod.GetNamespace() + "/" + pod.GetName()
}
