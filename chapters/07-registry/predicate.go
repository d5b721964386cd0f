package registry

import (
	"context"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/observe/probe"
)

// storageOptions returns the key or directory that a list or watch reads, and the options for the storage. The error is
// that of [Store.keyFor].
//
// Upstream: k8s.io/apiserver/pkg/registry/generic/registry/store.go: Store
// Differs: one function for all kinds; upstream has a PredicateFunc for each, such as MatchPod.
func (s *Store) storageOptions(namespace string,
	options *metainternalversion.ListOptions) (key string, opts storage.ListOptions, err error) {
	p := storage.SelectionPredicate{
		Label:               labels.Everything(),
		Field:               fields.Everything(),
		GetAttrs:            s.resource.GetAttrs,
		Limit:               options.Limit,
		Continue:            options.Continue,
		AllowWatchBookmarks: options.AllowWatchBookmarks,
	}
	if options.LabelSelector != nil {
		p.Label = options.LabelSelector
	}
	if options.FieldSelector != nil {
		p.Field = options.FieldSelector
	}
	key, recursive, err := s.keyFor(namespace, &p)
	return key, storage.ListOptions{
		ResourceVersion:      options.ResourceVersion,
		ResourceVersionMatch: options.ResourceVersionMatch,
		SendInitialEvents:    options.SendInitialEvents,
		Predicate:            p,
		Recursive:            recursive,
	}, err
}

// keyFor chooses what a list or watch reads: the key of one object if the predicate can
// select only that one, or else the narrowest directory. A selector that pins the namespace
// narrows a request for all namespaces, if the value could be a namespace's name at all. The
// error is 400, for a namespace in the path that could not.
func (s *Store) keyFor(namespace string,
	p *storage.SelectionPredicate) (key string, recursive bool, err error) {
	if err := s.resource.checkNamespace(namespace); err != nil {
		return "", false, err
	}
	if namespace == "" {
		pinned, ok := p.MatchesSingleNamespace()
		if ok && len(content.IsPathSegmentName(pinned)) == 0 {
			namespace = pinned
		}
	}
	if name, ok := p.MatchesSingle(); ok {
		// Without a namespace there is no such key: the predicate does the work.
		if key, err := s.resource.Key(namespace, name); err == nil {
			return key, false, nil
		}
	}
	return s.resource.KeyRoot(namespace), true, nil
}

// List returns what options select, at one resource version. Errors: 400 for a malformed version or continue token, 410
// for one that is gone, 504 for one not reached yet, 429 if the cache is not ready, 500 if an object does not decode.
//
// Upstream: k8s.io/apiserver/pkg/registry/generic/registry/store.go: (*Store).ListPredicate
func (s *Store) List(ctx context.Context, namespace string, options *metainternalversion.ListOptions) (runtime.Object,
	error) {
	key, opts, err := s.storageOptions(namespace, options)
	if err != nil {
		return nil, err
	}
	list := s.resource.NewListFunc()
	err = s.storage.GetList(ctx, key, opts, list)
	if err != nil {
		return nil, storage.InterpretError(err, "list", s.resource.GroupResource(), "")
	}
	return list, nil
}

// Watch begins one watch of the storage: of one key if [Store.keyFor] finds one, otherwise of
// the narrowest directory. The caller stops it. Errors: 400 for a malformed resource version,
// 429 if the cache is not ready. 410, and 504 for a version not reached, come as an event.
//
// Upstream: k8s.io/apiserver/pkg/registry/generic/registry/store.go: (*Store).WatchPredicate
// Differs: upstream has a ProgressNotify option too; the cacher asks for it itself. Nothing is
// decorated: upstream may wrap the watch, to change objects on their way (newDecoratedWatcher).
func (s *Store) Watch(ctx context.Context, namespace string,
	options *metainternalversion.ListOptions) (watch.Interface, error) {
	key, opts, err := s.storageOptions(namespace, options)
	if err != nil {
		return nil, err
	}
	s.probe.Texts(probe.PredicateChosen, describe(key, &opts), key, 0)
	w, err := s.storage.Watch(ctx, key, opts)
	if err != nil {
		return nil, storage.InterpretError(err, "watch", s.resource.GroupResource(), "")
	}
	return w, nil
}

// describe returns the scope of a watch and its selectors of labels and fields, as text.
func describe(key string, opts *storage.ListOptions) []string {
	scope := "the object " + key
	if opts.Recursive {
		scope = "everything under " + key + "/"
	}
	labels, fields := opts.Predicate.Describe()
	return []string{scope, labels, fields}
}
