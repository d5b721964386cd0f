package cacher

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	storage "listwatch/chapters/01-storage"
)

// listerWatcher lets the reflector, which is made for servers behind HTTP, read a storage in the same process.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/lister_watcher.go: listerWatcher
type listerWatcher struct{ config *Config }

// List reads the newest state. The version that the reflector asks for is left out: a cache that accepted any state
// would not know how old that state is, and only the storage always has the newest.
func (lw listerWatcher) List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	pred := storage.Everything
	pred.Limit = options.Limit
	pred.Continue = options.Continue
	list := lw.config.NewListFunc()
	return list, lw.config.Storage.GetList(ctx, lw.config.ResourcePrefix, storage.ListOptions{
		ResourceVersionMatch: options.ResourceVersionMatch,
		Predicate:            pred,
		Recursive:            true,
	}, list)
}

// Watch follows all objects, and asks for progress notifications: without them the cache of a quiet resource would fall
// behind the storage's version and could not answer a consistent read.
func (lw listerWatcher) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	pred := storage.Everything
	pred.AllowWatchBookmarks = options.AllowWatchBookmarks
	return lw.config.Storage.Watch(ctx, lw.config.ResourcePrefix, storage.ListOptions{
		ResourceVersion:   options.ResourceVersion,
		Predicate:         pred,
		Recursive:         true,
		ProgressNotify:    true,
		SendInitialEvents: options.SendInitialEvents,
	})
}
