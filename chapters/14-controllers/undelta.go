package controllers

import (
	"k8s.io/apimachinery/pkg/util/sets"

	deltafifo "listwatch/chapters/10-deltafifo"
	indexer "listwatch/chapters/11-indexer"
)

// undeltaStore is a store that asks for a look at whatever changed in it. It is all that stands
// between a kubelet's reflector and its workqueue: no FIFO, no processor, no handlers. One
// consumer needs none of them.
//
// Its writers are the one goroutine of its reflector; any goroutine may read.
//
// Upstream: k8s.io/client-go/tools/cache/undelta_store.go: UndeltaStore
// Differs: adds the keys that changed to a queue; upstream hands the complete list to a
// function after every change, and the kubelet finds out by comparison what changed.
type undeltaStore struct {
	*indexer.Indexer
	queue *RateLimitingQueue
}

// Add stores obj, then tells. In that order: who is told looks at once.
//
// Upstream: k8s.io/client-go/tools/cache/undelta_store.go: (*UndeltaStore).Add
func (u *undeltaStore) Add(obj any) error { return u.change(obj, u.Indexer.Add) }

// Update stores obj, then tells.
//
// Upstream: k8s.io/client-go/tools/cache/undelta_store.go: (*UndeltaStore).Update
func (u *undeltaStore) Update(obj any) error { return u.change(obj, u.Indexer.Update) }

// Delete removes obj, then tells.
//
// Upstream: k8s.io/client-go/tools/cache/undelta_store.go: (*UndeltaStore).Delete
func (u *undeltaStore) Delete(obj any) error { return u.change(obj, u.Indexer.Delete) }

func (u *undeltaStore) change(obj any, write func(obj any) error) error {
	if err := write(obj); err != nil {
		return err
	}
	key, err := deltafifo.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		return err
	}
	u.queue.Add(key)
	return nil
}

// Replace makes list the whole content, then tells about every key that is or was there: those that are gone need a
// look as much as those that came.
//
// Upstream: k8s.io/client-go/tools/cache/undelta_store.go: (*UndeltaStore).Replace
func (u *undeltaStore) Replace(list []any, resourceVersion string) error {
	keys := sets.New(u.ListKeys()...)
	if err := u.Indexer.Replace(list, resourceVersion); err != nil {
		return err
	}
	keys.Insert(u.ListKeys()...)
	for _, key := range sets.List(keys) {
		u.queue.Add(key)
	}
	return nil
}
