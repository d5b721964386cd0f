package cacher

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	storage "listwatch/chapters/01-storage"
	reflector "listwatch/chapters/03-reflector"
)

// listerWatcher lets the reflector, which is made for servers behind HTTP, read a storage in the same process.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/lister_watcher.go: listerWatcher
type listerWatcher struct{ config *Config }

var _ reflector.ListerWatcher = listerWatcher{}

// List reads the newest state. The version that the reflector asks for is left out: a cache that accepted "whatever
// you have" would not know how old it is, and the storage is the one place that always knows better.
func (lw listerWatcher) List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	pred := storage.Everything
	pred.Limit = options.Limit
	pred.Continue = options.Continue
	list := lw.config.NewListFunc()
	err := lw.config.Storage.GetList(ctx, lw.config.ResourcePrefix, storage.ListOptions{
		ResourceVersionMatch: options.ResourceVersionMatch,
		Predicate:            pred,
		Recursive:            true,
	}, list)
	if err != nil {
		return nil, err
	}
	return list, nil
}

// Watch follows everything, and asks to be told when there is nothing to tell: without that the cache of a quiet
// resource would fall behind the storage's version and could not answer a consistent read.
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
