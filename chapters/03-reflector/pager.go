package reflector

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// defaultPageSize is how many objects a page holds by default.
const defaultPageSize = 500 // pager.defaultPageSize upstream

// PageFunc lists one page.
type PageFunc func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error)

// ListPager puts one list together from pages.
//
// Upstream: k8s.io/client-go/tools/pager/pager.go: ListPager
// Differs: no prefetching variant; always falls back to a full list when a later page has expired.
type ListPager struct {
	PageSize int64 // 0: ask for everything at once
	PageFn   PageFunc
}

// PagedList is a list whose pages have been joined.
type PagedList struct {
	Items           []runtime.Object
	ResourceVersion string // of the first page, at which all pages were read
	Paginated       bool   // the server cut the list into more than one page
}

// List asks for page after page until the list is complete. The resource version is sent with
// the first page only: after that the continue token says at which version to go on. If the
// token expires underway, List starts again without pages, at the version originally asked for.
// A first page that has expired is the caller's problem, as is any other error.
//
// Upstream: k8s.io/client-go/tools/pager/pager.go: (*ListPager).List
func (p *ListPager) List(ctx context.Context, options metav1.ListOptions) (*PagedList, error) {
	original := options
	if options.Limit == 0 {
		options.Limit = p.PageSize
	}
	joined := &PagedList{}
	for {
		page, err := p.PageFn(ctx, options)
		if apierrors.IsResourceExpired(err) && options.Continue != "" {
			return p.listInFull(ctx, original)
		}
		if err != nil {
			return nil, err
		}
		next, err := joined.append(page)
		if err != nil {
			return nil, err
		}
		if next == "" {
			return joined, nil
		}
		joined.Paginated = true
		options.Continue = next
		options.ResourceVersion = ""
		options.ResourceVersionMatch = ""
	}
}

func (p *ListPager) listInFull(ctx context.Context, options metav1.ListOptions) (*PagedList, error) {
	options.Limit = 0
	options.Continue = ""
	page, err := p.PageFn(ctx, options)
	if err != nil {
		return nil, err
	}
	full := &PagedList{Paginated: true} // it was, until it expired
	_, err = full.append(page)
	return full, err
}

// append adds a page and returns the token of the next one, "" after the last.
func (l *PagedList) append(page runtime.Object) (next string, err error) {
	accessor, err := meta.ListAccessor(page)
	if err != nil {
		return "", fmt.Errorf("read page: %T is not a list: %w", page, err)
	}
	// WithAlloc copies each item out of the page's array: otherwise one pod that lives on would keep all the others
	// of its page in memory.
	items, err := meta.ExtractListWithAlloc(page)
	if err != nil {
		return "", fmt.Errorf("read page: %w", err)
	}
	if l.ResourceVersion == "" {
		l.ResourceVersion = accessor.GetResourceVersion()
	}
	l.Items = append(l.Items, items...)
	return accessor.GetContinue(), nil
}
