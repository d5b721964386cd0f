package cacher

import (
	"context"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"

	storage "listwatch/chapters/01-storage"
	watchcache "listwatch/chapters/04-watchcache"
	"listwatch/internal/observe/probe"
)

// GetList fills listOut from the cache. The items are copies of the cached objects' outermost structs only: their maps,
// slices and pointers are shared with the cache and must not be changed. Errors are those of
// [watchcache.WatchCache.GetList], and 429 with Retry-After while the cache is not ready.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/cacher.go: (*Cacher).GetList
// Differs: a continue token is the same as the storage's; upstream's cache writes "/a" into it for the object a of a
// namespace, and the storage "a". Each understands both.
func (c *Cacher) GetList(ctx context.Context, key string, opts storage.ListOptions, listOut runtime.Object) error {
	key, err := c.prepareKey(key, opts.Recursive)
	if err != nil {
		return err
	}
	if _, downtime, err := c.ready.check(); err != nil {
		return apierrors.NewTooManyRequests(err.Error(), retryAfter(downtime))
	}
	items, err := storage.ItemsOf(listOut)
	if err != nil {
		return err
	}
	list, err := c.watchCache.GetList(ctx, key, opts)
	if err != nil {
		return err
	}
	page := selectPage(list.Elements, opts)
	fill(items, page.selected)
	token, remaining, err := storage.PrepareContinueToken(page.lastKey, key, int64(list.ResourceVersion),
		int64(len(list.Elements)), page.more, opts)
	if err != nil {
		return err
	}
	if err := c.versioner.UpdateList(listOut, list.ResourceVersion, token, remaining); err != nil {
		return err
	}
	c.probe.At(probe.ListServed, key, list.ResourceVersion, len(page.selected))
	return nil
}

// page is the part of a list in one answer.
type page struct {
	selected []*watchcache.Element
	lastKey  string // the last selected key, if there is a limit
	more     bool   // elements after it were not looked at
}

// selectPage takes matching elements until the page is full.
func selectPage(elements []*watchcache.Element, opts storage.ListOptions) page {
	limit, everything := listLimit(opts), opts.Predicate.Empty()
	if everything && limit == 0 {
		return page{selected: elements}
	}
	var p page
	for i, e := range elements {
		if everything || opts.Predicate.MatchesObjectAttributes(e.Labels, e.Fields) {
			p.selected = append(p.selected, e)
			p.lastKey = e.Key
		}
		if limit > 0 && len(p.selected) == limit {
			p.more = i < len(elements)-1
			break
		}
	}
	return p
}

// listLimit returns the page size, 0 for no limit. A list at resource version "0" is never paged: the pages would have
// no version in common.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/cacher.go: computeListLimit
func listLimit(opts storage.ListOptions) int {
	if opts.Predicate.Limit <= 0 || opts.ResourceVersion == "0" {
		return 0
	}
	return int(opts.Predicate.Limit)
}

// fill makes items as long as elements, and not nil if there are none, and copies the objects into it.
func fill(items reflect.Value, elements []*watchcache.Element) {
	items.Set(reflect.MakeSlice(items.Type(), len(elements), len(elements)))
	for i, e := range elements {
		items.Index(i).Set(reflect.ValueOf(e.Object).Elem())
	}
}

// Get fills out with the object at key from a cache that has reached opts.ResourceVersion. out belongs to the caller.
// Errors: KeyNotFound, a [storage.InvalidError] for the version, and those of [watchcache.WatchCache.WaitUntilFresh].
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/cacher.go: (*Cacher).Get
// Differs: the object is copied to the last byte; upstream shares all but its outermost struct.
func (c *Cacher) Get(ctx context.Context, key string, opts storage.GetOptions, out runtime.Object) error {
	key, err := c.prepareKey(key, false)
	if err != nil {
		return err
	}
	rv, err := c.versioner.ParseResourceVersion(opts.ResourceVersion)
	if err != nil {
		return err
	}
	target, err := conversion.EnforcePtr(out)
	if err != nil {
		return fmt.Errorf("get into %T: %w", out, err)
	}
	element, readRV, err := c.watchCache.Get(ctx, key, rv)
	switch {
	case err != nil:
		return err
	case element != nil:
		target.Set(reflect.ValueOf(element.Object.DeepCopyObject()).Elem())
		return nil
	case opts.IgnoreNotFound:
		target.SetZero()
		return nil
	}
	return storage.NewKeyNotFoundError(key, int64(readRV))
}

// suggestion returns a copy of the cache's object at key, nil if there is none: a guess at the stored state, which
// saves the storage a read when it is right, and costs one more when it is wrong. It is a copy because a caller that
// updates an object changes the object that it gets.
func (c *Cacher) suggestion(ctx context.Context, key string) runtime.Object {
	element, _, err := c.watchCache.Get(ctx, key, 0)
	if err != nil || element == nil {
		return nil
	}
	return element.Object.DeepCopyObject()
}
