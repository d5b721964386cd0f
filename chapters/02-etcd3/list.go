package etcd3

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"k8s.io/apimachinery/pkg/runtime"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/observe/probe"
)

// maxLimit bounds the doubling of pages. A client's own limit may be larger.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/store.go: maxLimit
const maxLimit = 10000

// GetList implements [storage.Interface]. One list is one snapshot: every page after the first, of this call or of a
// later one with the continue token, is read at the revision of the first. Errors: 400 for malformed options, 410 for a
// revision that is compacted, on a later page with a token for the rest; 504 for one that etcd has not reached.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/store.go: (*store).GetList
// Differs: pages only; upstream streams a list from etcd 3.7 on. The first object that does not decode ends the list
// with 500; upstream goes on, and its error names up to a hundred.
func (s *Store) GetList(ctx context.Context, key string, opts storage.ListOptions, listOut runtime.Object) error {
	keyPrefix, err := storage.PrepareKey(s.resourcePrefix, key, opts.Recursive)
	if err != nil {
		return err
	}
	if opts.Predicate.Limit < 0 {
		return apierrors.NewBadRequest(fmt.Sprintf("invalid limit %d: must not be negative", opts.Predicate.Limit))
	}
	withRev, continueKey, err := storage.ValidateListOptions(keyPrefix, opts)
	if err != nil {
		return err
	}
	items, err := storage.ItemsOf(listOut)
	if err != nil {
		return err
	}
	l := &lister{store: s, keyPrefix: keyPrefix, opts: opts, items: items, withRev: withRev, continueKey: continueKey,
		limit: opts.Predicate.Limit}
	if err := l.list(ctx); err != nil {
		return err
	}
	token, remaining, err := storage.PrepareContinueToken(l.lastKey, keyPrefix, l.withRev, l.count, l.more, opts)
	if err != nil {
		return err
	}
	return s.versioner.UpdateList(listOut, uint64(l.withRev), token, remaining)
}

// lister is one GetList under way. It belongs to one goroutine.
type lister struct {
	store     *Store
	keyPrefix string
	opts      storage.ListOptions
	items     reflect.Value // of the list that is being filled

	withRev     int64  // the revision of all pages; 0 until the first is read, unless the request names one
	continueKey string // the next page's first key; "": keyPrefix
	limit       int64  // of the next page; 0: none
	lastKey     string // the last key that was looked at
	count       int64  // the number of keys from the beginning of the page
	more        bool   // the page was not the last, or not all of it was used
}

// list reads pages until the request's limit is filled or nothing is left. With a selector a
// page may yield fewer items than it has keys; then the next one is twice as large, so that a
// rare object is found in few steps.
func (l *lister) list(ctx context.Context) error {
	for {
		page, err := l.read(ctx)
		if err != nil {
			return err
		}
		if err := l.take(ctx, page); err != nil {
			return err
		}
		if !l.more || l.full() {
			return nil
		}
		l.continueKey = l.lastKey + "\x00"
		l.limit = nextLimit(l.limit)
	}
}

// nextLimit doubles a limit up to maxLimit, and leaves a larger one alone.
func nextLimit(limit int64) int64 { return max(limit, min(2*limit, maxLimit)) }

// full reports whether the list has as many items as were asked for.
func (l *lister) full() bool {
	limit := l.opts.Predicate.Limit
	return limit > 0 && int64(l.items.Len()) >= limit
}

// read reads the next page and fixes withRev.
func (l *lister) read(ctx context.Context) ([]*mvccpb.KeyValue, error) {
	page, err := l.store.readRange(ctx, l.keyPrefix, l.opts.Recursive, kubernetes.ListOptions{Revision: l.withRev,
		Limit: l.limit, Continue: l.continueKey})
	if errors.Is(err, rpctypes.ErrFutureRev) {
		current, err := l.store.GetCurrentResourceVersion(ctx)
		if err != nil {
			return nil, err
		}
		return nil, storage.NewTooLargeResourceVersionError(uint64(l.withRev), current, 0)
	}
	if err != nil {
		return nil, interpretListError(err, l.continueKey, l.keyPrefix)
	}
	if l.withRev == 0 {
		if err := l.store.validateMinimumResourceVersion(l.opts.ResourceVersion, page.Revision); err != nil {
			return nil, err
		}
		l.withRev = page.Revision
	}
	l.count = page.Count
	l.more = int64(len(page.Kvs)) < page.Count
	if l.more && len(page.Kvs) == 0 {
		return nil, fmt.Errorf("list %s: etcd has %d more keys and returned none", l.keyPrefix, page.Count)
	}
	return page.Kvs, nil
}

// take adds the matching objects to the items, until they are full.
func (l *lister) take(ctx context.Context, page []*mvccpb.KeyValue) error {
	if l.opts.Predicate.Empty() {
		l.items.Grow(len(page))
	}
	for i, kv := range page {
		if l.full() {
			l.more = true
			return nil
		}
		if ctx.Err() != nil {
			// Decoding a long list takes seconds: its client may have gone.
			return interpretError(ctx.Err(), l.keyPrefix)
		}
		l.lastKey = string(kv.Key)
		if err := l.append(kv); err != nil {
			return err
		}
		page[i] = nil // the bytes are no longer needed, and there may be many
	}
	return nil
}

// append decodes an object right into its place in the items, and takes the place back if the
// object does not match or decode. If the predicate returns an error, it does not match.
func (l *lister) append(kv *mvccpb.KeyValue) error {
	n := l.items.Len()
	l.items.Grow(1)
	l.items.SetLen(n + 1)
	place := l.items.Index(n)
	obj := place.Addr().Interface().(runtime.Object)
	decodeErr := l.store.decode(l.lastKey, kv.Value, kv.ModRevision, obj)
	if decodeErr == nil {
		matched, err := l.opts.Predicate.Matches(obj)
		if err == nil && matched {
			return nil
		}
	}
	place.SetZero()
	l.items.SetLen(n)
	return decodeErr
}

// readRange reads the keys under a prefix, or one key as if it were such a range. Errors are etcd's.
func (s *Store) readRange(ctx context.Context, key string, recursive bool,
	opts kubernetes.ListOptions) (kubernetes.ListResponse, error) {
	var response kubernetes.ListResponse
	var err error
	if recursive {
		response, err = s.client.List(ctx, key, opts)
	} else {
		response, err = s.readOne(ctx, key, opts.Revision)
	}
	if err != nil {
		return response, err
	}
	rev := response.Revision
	if opts.Revision != 0 {
		rev = opts.Revision
	}
	s.probe.At(probe.RangeRead, key, uint64(rev), len(response.Kvs))
	return response, nil
}

func (s *Store) readOne(ctx context.Context, key string, rev int64) (kubernetes.ListResponse, error) {
	response, err := s.client.Get(ctx, key, kubernetes.GetOptions{Revision: rev})
	if err != nil {
		return kubernetes.ListResponse{}, err
	}
	one := kubernetes.ListResponse{Revision: response.Revision}
	if response.KV != nil {
		one.Kvs, one.Count = []*mvccpb.KeyValue{response.KV}, 1
	}
	return one, nil
}
