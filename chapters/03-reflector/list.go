package reflector

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/observe/probe"
)

// list makes the store's content that of one LIST, read at one resource version, from which a
// watch can go on.
//
// A version that the server cannot serve is given up for the newest one; a 504 gets here only
// after the HTTP client's repeats (chapter 09). The store may have seen a version that a
// restored etcd never reached: without this the reflector would ask for it forever.
//
// Upstream: k8s.io/client-go/tools/cache/reflector.go: (*Reflector).list
// Differs: relies on the ListerWatcher to return when ctx is done, instead of leaving it behind
// in a goroutine.
func (r *Reflector) list(ctx context.Context) error {
	options := metav1.ListOptions{ResourceVersion: r.relistResourceVersion()}
	pager := ListPager{
		PageSize: r.pageSize(options.ResourceVersion), PageFn: r.config.ListerWatcher.List,
	}
	list, err := pager.List(ctx, options)
	if r.isUnavailable(err) {
		again := metav1.ListOptions{ResourceVersion: r.relistResourceVersion()}
		list, err = pager.List(ctx, again)
	}
	if err != nil {
		return fmt.Errorf("list %s: %w", r.config.Name, err)
	}
	if options.ResourceVersion == "0" && list.Paginated {
		r.paginatedResult = true
	}
	r.setIsLastSyncResourceVersionUnavailable(false)
	if err := r.syncWith(list); err != nil {
		return fmt.Errorf("store list of %s: %w", r.config.Name, err)
	}
	r.setLastSyncResourceVersion(list.ResourceVersion)
	r.probe.At(probe.ReflectorListed, "", storage.ProbeVersion(list.ResourceVersion), len(list.Items))
	return nil
}

// pageSize chooses the page size for a list at resourceVersion. The rule is from before 1.34,
// when the server read pages from etcd only, but full lists from its cache as well. So a list
// that the cache could answer, one at a version, has no pages. The exception is a server whose
// first list came in pages: it has no cache, or had none that was ready, for a cache would have
// ignored the limit.
func (r *Reflector) pageSize(resourceVersion string) int64 {
	switch {
	case r.config.WatchListPageSize != 0:
		return r.config.WatchListPageSize
	case resourceVersion != "" && resourceVersion != "0" && !r.paginatedResult:
		return 0
	}
	return defaultPageSize
}

// syncWith replaces the content of the store.
//
// Upstream: k8s.io/client-go/tools/cache/reflector.go: (*Reflector).syncWith
func (r *Reflector) syncWith(list *PagedList) error {
	items := make([]any, len(list.Items))
	for i, item := range list.Items {
		items[i] = item
	}
	return r.config.Store.Replace(items, list.ResourceVersion)
}
