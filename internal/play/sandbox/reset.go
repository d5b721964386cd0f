package sandbox

import (
	"cmp"
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	storage "listwatch/chapters/01-storage"
	watchcache "listwatch/chapters/04-watchcache"
)

const (
	resetKind = "reset"         // of commands
	deleters  = 16              // how many pods are deleted at once
	etcdTime  = 5 * time.Second // for one read or write, if etcd does not answer
)

// Reset makes the sandbox what it was in the beginning: every knob as it was, no story, no watcher and no handler but
// the observer, no pod, the switches of the command line. What has happened stays in the log, and etcd's revisions go
// on counting: watchers see it happen like everything else.
func (s *Sandbox) Reset(ctx context.Context) (Receipt, error) {
	return s.do(ctx, &order{do: s.reset, name: "the reset", kind: resetKind})
}

// reset is the command that resets.
func (s *Sandbox) reset(ctx context.Context, begun func()) error {
	s.turned(Knob{Name: "everything", Value: "where it was"})
	undone := s.endStory()
	s.removeWatchers()
	isBack := s.putBack(ctx, s.before)
	s.before = nil
	begun()
	<-undone
	err := errors.Join(isBack(), s.deletePods(ctx, func(*corev1.Pod) bool { return true }))
	s.shrinkRings()
	return errors.Join(err, s.restoreSwitches())
}

// shrinkRings gives every dynamic ring its first size: by itself, a ring that has grown does not shrink for an hour.
func (s *Sandbox) shrinkRings() {
	for _, each := range s.config.Pipeline.Server.Cachers() {
		if _, fixed := each.RingCapacity(); fixed == s.config.RingCapacity {
			each.SetRingCapacity(cmp.Or(s.config.RingCapacity, watchcache.InitialCapacity))
			each.SetRingCapacity(s.config.RingCapacity)
		}
	}
}

func (s *Sandbox) restoreSwitches() error {
	if s.config.Switcher == nil {
		return nil
	}
	again, err := s.config.Switcher.Restore()
	if err != nil || again == nil {
		return err
	}
	return again()
}

// listPods returns every pod, by a consistent read: the cache has caught up with all earlier writes. It waits for a
// cache that fills again, as after a restart of etcd.
func (s *Sandbox) listPods(ctx context.Context) (list corev1.PodList, err error) {
	ctx, cancel := context.WithTimeout(ctx, etcdTime)
	defer cancel()
	if err := s.config.Pipeline.Server.WaitReady(ctx); err != nil {
		return list, err
	}
	everything := storage.ListOptions{Recursive: true, Predicate: storage.Everything}
	err = s.pods().GetList(ctx, "/registry/pods/", everything, &list)
	return list, err
}

func (s *Sandbox) pods() storage.Interface { return s.config.Pipeline.Server.Storage("pods") }

// deletePods deletes the wanted pods at the storage, without a grace period. It returns when the cache has seen it, or
// at the first error.
func (s *Sandbox) deletePods(ctx context.Context, wanted func(*corev1.Pod) bool) error {
	if err := s.traffic.settle(ctx); err != nil {
		return err
	}
	list, err := s.listPods(ctx)
	if err != nil {
		return err
	}
	group, deleting := errgroup.WithContext(ctx)
	group.SetLimit(deleters)
	for i := range list.Items {
		if pod := &list.Items[i]; wanted(pod) {
			group.Go(func() error { return s.deletePod(deleting, storageKey(pod)) })
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	_, err = s.listPods(ctx)
	return err
}

// deletePod deletes one pod. A pod that is gone is no error.
func (s *Sandbox) deletePod(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, etcdTime)
	defer cancel()
	err := s.pods().Delete(ctx, key, &corev1.Pod{}, nil, nil)
	if storage.IsNotFound(err) {
		return nil
	}
	return err
}

// storageKey is a pod's key in etcd.
func storageKey(pod metav1.Object) string {
	return "/registry/pods/" + pod.GetNamespace() + "/" + pod.GetName()
}
