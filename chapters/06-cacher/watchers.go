package cacher

import (
	"slices"
	"strings"

	storage "listwatch/chapters/01-storage"
	cachewatcher "listwatch/chapters/05-cachewatcher"
)

// namespacedName is the part of a resource that a watch is about: one object, the objects of one namespace, the objects
// of one name, or, with both empty, all of it.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/cacher.go: namespacedName
type namespacedName struct {
	namespace, name string
}

// scopeOf reads the scope off a storage key: "/registry/pods/default/" is a namespace, "/registry/pods/default/a" an
// object.
//
// Differs: upstream takes the scope of a watch from the request's context, and that of an event from its fields.
func scopeOf(config *Config, key string) namespacedName {
	rest := strings.Trim(strings.TrimPrefix(key, config.ResourcePrefix), "/")
	if !config.Namespaced {
		return namespacedName{name: rest}
	}
	namespace, name, _ := strings.Cut(rest, "/")
	return namespacedName{namespace, name}
}

// narrowed returns the scope with the parts that the field selector pins and the key leaves open.
func (n namespacedName) narrowed(pred storage.SelectionPredicate) namespacedName {
	if pred.Field == nil {
		return n
	}
	if namespace, ok := pred.Field.RequiresExactMatch("metadata.namespace"); ok && n.namespace == "" {
		n.namespace = namespace
	}
	if name, ok := pred.Field.RequiresExactMatch("metadata.name"); ok && n.name == "" {
		n.name = name
	}
	return n
}

// indexedWatchers are the registered watchers. Each is in one of the two maps: by the trigger's value if its selector
// names one, otherwise by scope: namespace and name. A list has them in the order in which they were registered.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/cacher.go: indexedWatchers
// Differs: lists instead of maps. A list costs a search when a watcher ends, and nothing for each event.
type indexedWatchers struct {
	// Guarded by Cacher.mu.
	allWatchers   map[namespacedName][]*cachewatcher.CacheWatcher
	valueWatchers map[string][]*cachewatcher.CacheWatcher
}

func newIndexedWatchers() indexedWatchers {
	return indexedWatchers{
		allWatchers:   map[namespacedName][]*cachewatcher.CacheWatcher{},
		valueWatchers: map[string][]*cachewatcher.CacheWatcher{},
	}
}

func (i *indexedWatchers) addLocked(req *watchRequest) {
	if req.triggerUsed {
		i.valueWatchers[req.triggerValue] = append(i.valueWatchers[req.triggerValue], req.watcher)
		return
	}
	i.allWatchers[req.scope] = append(i.allWatchers[req.scope], req.watcher)
}

// deleteLocked does nothing if the watcher is no longer registered.
func (i *indexedWatchers) deleteLocked(req *watchRequest) {
	if req.triggerUsed {
		deleteFrom(i.valueWatchers, req.triggerValue, req.watcher)
		return
	}
	deleteFrom(i.allWatchers, req.scope, req.watcher)
}

func deleteFrom[K comparable](watchers map[K][]*cachewatcher.CacheWatcher, key K, watcher *cachewatcher.CacheWatcher) {
	at := slices.Index(watchers[key], watcher)
	if at < 0 {
		return
	}
	watchers[key] = slices.Delete(watchers[key], at, at+1)
	if len(watchers[key]) == 0 {
		delete(watchers, key) // scopes and values that never come back would pile up
	}
}

// listLocked returns all watchers, in no order.
func (i *indexedWatchers) listLocked() []*cachewatcher.CacheWatcher {
	var all []*cachewatcher.CacheWatcher
	for _, watchers := range i.allWatchers {
		all = append(all, watchers...)
	}
	for _, watchers := range i.valueWatchers {
		all = append(all, watchers...)
	}
	return all
}

// takeAllLocked returns all watchers and then holds none.
func (i *indexedWatchers) takeAllLocked() []*cachewatcher.CacheWatcher {
	all := i.listLocked()
	clear(i.allWatchers)
	clear(i.valueWatchers)
	return all
}
