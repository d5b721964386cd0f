package mvcc

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"github.com/google/btree"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"k8s.io/utils/clock"
)

const (
	firstRevision = 1  // of an empty store, as in etcd: the first write makes revision 2
	btreeDegree   = 16 // nothing depends on it
)

// Store keeps every revision of every key until it is told to forget. All methods are safe for concurrent use.
// Byte slices are copied on the way in and out.
type Store struct {
	// Set by New, never changed.
	clock clock.WithTicker

	mu        sync.Mutex // guards the fields below; no other lock is taken while it is held
	revision  int64      // of the newest write
	compacted int64      // revisions below it are gone; 0: none
	keys      *btree.BTreeG[*history]
	log       []*change // by ascending revision, from the compacted one on
	watches   map[*watcher]struct{}
	leases    map[clientv3.LeaseID]*lease
	lastLease clientv3.LeaseID
}

var _ kubernetes.Interface = (*Store)(nil)

// New returns an empty store at revision 1. The clock is used for leases, and for the progress of idle watches.
func New(clk clock.WithTicker) *Store {
	return &Store{
		clock:    clk,
		revision: firstRevision,
		keys:     btree.NewG(btreeDegree, func(a, b *history) bool { return a.key < b.key }),
		watches:  map[*watcher]struct{}{},
		leases:   map[clientv3.LeaseID]*lease{},
	}
}

// Revision returns the newest revision.
func (s *Store) Revision() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revision
}

// Get returns key as it was at opts.Revision, or as it is.
func (s *Store) Get(ctx context.Context, key string, opts kubernetes.GetOptions) (kubernetes.GetResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rev, err := s.readableLocked(ctx, opts.Revision)
	if err != nil {
		return kubernetes.GetResponse{}, err
	}
	return kubernetes.GetResponse{KV: s.currentLocked(key, rev).keyValue(), Revision: s.revision}, nil
}

// List returns the keys under prefix in order, from opts.Continue on, as they were at opts.Revision or as they are.
// Count counts what follows opts.Continue, whatever the limit.
func (s *Store) List(ctx context.Context, prefix string, opts kubernetes.ListOptions) (kubernetes.ListResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rev, err := s.readableLocked(ctx, opts.Revision)
	if err != nil {
		return kubernetes.ListResponse{}, err
	}
	from := cmp.Or(opts.Continue, prefix)
	response := kubernetes.ListResponse{Revision: s.revision}
	end := clientv3.GetPrefixRangeEnd(prefix) // "\x00": there is no key after all that begin with prefix
	s.keys.AscendGreaterOrEqual(&history{key: from}, func(h *history) bool {
		if end != "\x00" && h.key >= end {
			return false
		}
		if v := h.at(rev); v != nil {
			response.Count++
			if opts.Limit == 0 || int64(len(response.Kvs)) < opts.Limit {
				response.Kvs = append(response.Kvs, v.keyValue())
			}
		}
		return true
	})
	return response, nil
}

// Count returns how many keys there are under prefix.
func (s *Store) Count(ctx context.Context, prefix string, _ kubernetes.CountOptions) (int64, error) {
	// One key is read and all are counted.
	response, err := s.List(ctx, prefix, kubernetes.ListOptions{Limit: 1})
	return response.Count, err
}

// OptimisticPut writes key if its modification revision is still expected; 0 expects that there is no such key.
func (s *Store) OptimisticPut(ctx context.Context, key string, value []byte, expected int64,
	opts kubernetes.PutOptions) (kubernetes.PutResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.expireLocked(ctx, opts.LeaseID); err != nil {
		return kubernetes.PutResponse{}, err
	}
	kv, ok := s.compareLocked(key, expected, opts.GetOnFailure)
	if ok {
		s.commitLocked(key, value, false)
		if opts.LeaseID != clientv3.NoLease {
			s.leases[opts.LeaseID].keys[key] = s.revision
		}
	}
	return kubernetes.PutResponse{KV: kv, Succeeded: ok, Revision: s.revision}, nil
}

// OptimisticDelete removes key if its modification revision is still expected. With 0 expected, and no such key, it
// succeeds without making a revision, as in etcd.
func (s *Store) OptimisticDelete(ctx context.Context, key string, expected int64,
	opts kubernetes.DeleteOptions) (kubernetes.DeleteResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.expireLocked(ctx, clientv3.NoLease); err != nil {
		return kubernetes.DeleteResponse{}, err
	}
	kv, ok := s.compareLocked(key, expected, opts.GetOnFailure)
	if ok && expected != 0 {
		s.commitLocked(key, nil, true)
	}
	return kubernetes.DeleteResponse{KV: kv, Succeeded: ok, Revision: s.revision}, nil
}

// Put writes key unconditionally, as etcdctl would, and returns the new revision.
func (s *Store) Put(key string, value []byte) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commitLocked(key, value, false)
	return s.revision
}

// Delete removes key unconditionally and returns the revision after that, which is new only if there was such a key.
func (s *Store) Delete(key string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.currentLocked(key, s.revision) != nil {
		s.commitLocked(key, nil, true)
	}
	return s.revision
}

// Until returns another store with the same history up to rev: what a backup that was taken then is restored to. It has
// no leases. The store must not have been compacted.
func (s *Store) Until(rev int64) *Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.compacted > 0 {
		panic(fmt.Sprintf("mvcc: history before %d is gone", s.compacted))
	}
	restored := New(s.clock)
	for _, c := range s.log {
		if c.current.mod <= rev {
			restored.commitLocked(c.current.key, c.current.value, c.current.deleted)
		}
	}
	return restored
}

// readableLocked returns the revision to read at, s.revision for 0.
func (s *Store) readableLocked(ctx context.Context, rev int64) (int64, error) {
	err := s.expireLocked(ctx, clientv3.NoLease)
	switch {
	case err != nil:
		return 0, err
	case rev <= 0:
		return s.revision, nil
	case rev > s.revision:
		return 0, rpctypes.ErrFutureRev
	case rev < s.compacted:
		return 0, rpctypes.ErrCompacted
	default:
		return rev, nil
	}
}

// currentLocked returns key at rev, nil if there is none.
func (s *Store) currentLocked(key string, rev int64) *version {
	h, ok := s.keys.Get(&history{key: key})
	if !ok {
		return nil
	}
	return h.at(rev)
}

// compareLocked is the If of a transaction, and its Else.
func (s *Store) compareLocked(key string, expected int64, getOnFailure bool) (current *mvccpb.KeyValue, ok bool) {
	found := s.currentLocked(key, s.revision)
	if ok = found.modRevision() == expected; !ok && getOnFailure {
		current = found.keyValue()
	}
	return current, ok
}

// commitLocked makes the next revision and tells the watches.
func (s *Store) commitLocked(key string, value []byte, deleted bool) {
	s.revision++
	h, ok := s.keys.Get(&history{key: key})
	if !ok {
		h = &history{key: key}
		s.keys.ReplaceOrInsert(h)
	}
	c := &change{previous: h.at(s.revision), current: h.append(s.revision, value, deleted)}
	s.log = append(s.log, c)
	for w := range s.watches {
		if w.wants(c) {
			w.pendLocked(clientv3.WatchResponse{Events: []*clientv3.Event{w.eventLocked(c)}})
		}
	}
}
