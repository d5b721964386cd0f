package registry

import (
	storage "listwatch/chapters/01-storage"
	cacher "listwatch/chapters/06-cacher"
)

// StorageWithCacher puts a cache in front of raw. It returns the Cacher, which the caller must
// run, and the delegator, which decides for each read whether the cache may answer it. Until
// the Cacher runs, the delegator answers 429 to reads that need the cache.
//
// Nothing else in the server knows of the cache. The registry above sees a storage, as does the
// cache below.
//
// Upstream: k8s.io/apiserver/pkg/registry/generic/registry/storage_factory.go: StorageWithCacher
// Differs: upstream returns a decorator that also makes raw; and it starts the Cacher, and
// returns how to stop it.
func StorageWithCacher(raw storage.Interface,
	config cacher.Config) (*cacher.Cacher, storage.Interface, error) {
	config.Storage = raw
	c, err := cacher.New(config)
	if err != nil {
		return nil, nil, err
	}
	return c, cacher.NewCacheDelegator(c, raw), nil
}

// CacherConfig returns what a cache needs to know of the resource. Clock, probe and the switches are the caller's.
func (r *Resource) CacherConfig() cacher.Config {
	return cacher.Config{
		ResourcePrefix: r.Prefix,
		Resource:       r.GroupResource(),
		Namespaced:     r.Namespaced,
		KeyFunc:        r.ObjectKey,
		NewFunc:        r.NewFunc,
		NewListFunc:    r.NewListFunc,
		GetAttrs:       r.GetAttrs,
		Trigger:        r.Trigger,
	}
}
