package mvcc

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/btree"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"google.golang.org/protobuf/proto"
	"k8s.io/utils/clock"
)

const (
	firstRevision = 1  // the revision of an empty store, as in etcd: the first write makes revision 2
	btreeDegree   = 16 // arbitrary
)

// Store keeps each revision until a compaction. Any goroutine may call its methods, which copy values in and out.
type Store struct {
	// Set by New, never changed.
	clock clock.WithTicker

	mu        sync.Mutex // guards the fields below; only the clock's lock is taken while it is held
	revision  int64      // the newest revision
	compacted int64      // the oldest readable revision; 0: no compaction yet
	history   []revision // the revisions that were not compacted, oldest first
	watches   map[*watcher]struct{}
	leases    map[clientv3.LeaseID]*lease
	lastLease clientv3.LeaseID
}

// revision is the result of one write. It never changes.
type revision struct {
	keys  *btree.BTreeG[*mvccpb.KeyValue] // a clone of the previous revision's tree, with one change
	event *clientv3.Event                 // contains the previous state; nil at firstRevision
}

// lease is a set of keys that expire together.
type lease struct {
	ends time.Time
	keys map[string]int64 // by key, the revision written under the lease; a key that was written later does not expire
}

// New returns an empty store at revision 1. Leases and the progress notifications of watches use the clock.
func New(clk clock.WithTicker) *Store {
	keys := btree.NewG(btreeDegree, func(a, b *mvccpb.KeyValue) bool { return bytes.Compare(a.Key, b.Key) < 0 })
	return &Store{
		clock:    clk,
		revision: firstRevision,
		history:  []revision{{keys: keys}},
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

// Get returns key at opts.Revision; 0 means the newest revision. KV is nil if the key does not exist. Errors: ctx's,
// ErrFutureRev, ErrCompacted.
func (s *Store) Get(ctx context.Context, key string, opts kubernetes.GetOptions) (kubernetes.GetResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.readableLocked(ctx, opts.Revision); err != nil {
		return kubernetes.GetResponse{}, err
	}
	return kubernetes.GetResponse{KV: proto.CloneOf(s.getLocked(key, opts.Revision)), Revision: s.revision}, nil
}

// List returns the keys with a prefix in order, from opts.Continue on, at opts.Revision; 0 means the newest revision.
// It returns at most opts.Limit keys; 0 means all. Count is the number of keys from opts.Continue on. Errors: Get's.
func (s *Store) List(ctx context.Context, prefix string, opts kubernetes.ListOptions) (kubernetes.ListResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.readableLocked(ctx, opts.Revision); err != nil {
		return kubernetes.ListResponse{}, err
	}
	response := kubernetes.ListResponse{Revision: s.revision}
	from := &mvccpb.KeyValue{Key: []byte(cmp.Or(opts.Continue, prefix))}
	end := clientv3.GetPrefixRangeEnd(prefix) // "\x00": the range has no upper end
	s.sinceLocked(opts.Revision)[0].keys.AscendGreaterOrEqual(from, func(kv *mvccpb.KeyValue) bool {
		if end != "\x00" && string(kv.Key) >= end {
			return false
		}
		response.Count++
		if opts.Limit == 0 || int64(len(response.Kvs)) < opts.Limit {
			response.Kvs = append(response.Kvs, proto.CloneOf(kv))
		}
		return true
	})
	return response, nil
}

// Count returns the number of keys with a prefix. The error is ctx's.
func (s *Store) Count(ctx context.Context, prefix string, _ kubernetes.CountOptions) (int64, error) {
	response, err := s.List(ctx, prefix, kubernetes.ListOptions{Limit: 1}) // copies one key, and counts all
	return response.Count, err
}

// OptimisticPut writes key if expected is its modification revision, or if expected is 0 and there is no such key.
// Otherwise Succeeded is false. Errors: ctx's, or ErrLeaseNotFound.
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

// OptimisticDelete removes key if expected is its modification revision. If expected is 0 and there is no such key, it
// succeeds without a new revision, as in etcd. Otherwise Succeeded is false. The error is ctx's.
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

// Put writes key unconditionally, like etcdctl, and returns the new revision.
func (s *Store) Put(key string, value []byte) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commitLocked(key, value, false)
	return s.revision
}

// Until returns a new store with the history up to rev, as if restored from a backup at rev. The new store has no
// leases. The history must contain rev.
func (s *Store) Until(rev int64) *Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	restored := New(s.clock)
	restored.revision, restored.compacted = rev, s.compacted
	restored.history = slices.Clone(s.history[:len(s.history)-len(s.sinceLocked(rev))+1])
	return restored
}

// GrantLease makes a lease that lasts for ttl, and returns its ID. The error is ctx's.
func (s *Store) GrantLease(ctx context.Context, ttl time.Duration) (clientv3.LeaseID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.expireLocked(ctx, clientv3.NoLease); err != nil {
		return clientv3.NoLease, err
	}
	s.lastLease++
	s.leases[s.lastLease] = &lease{ends: s.clock.Now().Add(ttl), keys: map[string]int64{}}
	return s.lastLease, nil
}

// CompactHistory drops every revision before rev. Errors: ctx's, ErrCompacted if they are gone already, ErrFutureRev if
// rev does not exist yet. Open watches still receive their events, as watches of etcd do once they have caught up.
func (s *Store) CompactHistory(ctx context.Context, rev int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case rev <= s.compacted:
		return rpctypes.ErrCompacted
	case rev > s.revision:
		return rpctypes.ErrFutureRev
	}
	s.history, s.compacted = slices.Clone(s.sinceLocked(rev)), rev
	return nil
}

// expireLocked ends due leases, and deletes their keys, each at its own revision (etcd: all at one). Errors: ctx's, or
// ErrLeaseNotFound if wanted does not exist.
func (s *Store) expireLocked(ctx context.Context, wanted clientv3.LeaseID) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(s.leases)) {
		ended := s.leases[id]
		if s.clock.Now().Before(ended.ends) {
			continue
		}
		delete(s.leases, id)
		for _, key := range slices.Sorted(maps.Keys(ended.keys)) {
			if s.getLocked(key, s.revision).GetModRevision() == ended.keys[key] {
				s.commitLocked(key, nil, true)
			}
		}
	}
	if wanted != clientv3.NoLease && s.leases[wanted] == nil {
		return rpctypes.ErrLeaseNotFound
	}
	return nil
}

// readableLocked ends due leases, and then returns why rev cannot be read, or nil if it can.
func (s *Store) readableLocked(ctx context.Context, rev int64) error {
	err := s.expireLocked(ctx, clientv3.NoLease)
	switch {
	case err != nil:
		return err
	case rev > s.revision:
		return rpctypes.ErrFutureRev
	case rev > 0 && rev < s.compacted:
		return rpctypes.ErrCompacted
	}
	return nil
}

// sinceLocked returns the history from rev on; 0 means the newest revision, and a compacted rev the oldest one.
func (s *Store) sinceLocked(rev int64) []revision {
	if rev <= 0 {
		rev = s.revision
	}
	return s.history[max(0, int64(len(s.history))-1-(s.revision-rev)):]
}

// getLocked returns key at rev, or nil if it does not exist. The caller must not change the result.
func (s *Store) getLocked(key string, rev int64) *mvccpb.KeyValue {
	found, _ := s.sinceLocked(rev)[0].keys.Get(&mvccpb.KeyValue{Key: []byte(key)})
	return found
}

// compareLocked reports whether key's ModRevision equals expected. If not, getOnFailure copies key to current.
func (s *Store) compareLocked(key string, expected int64, getOnFailure bool) (current *mvccpb.KeyValue, ok bool) {
	found := s.getLocked(key, s.revision)
	if ok = found.GetModRevision() == expected; !ok && getOnFailure {
		current = proto.CloneOf(found)
	}
	return current, ok
}

// commitLocked makes the next revision and queues its event for the watches. A key to be deleted must exist.
func (s *Store) commitLocked(key string, value []byte, deleted bool) {
	before := s.getLocked(key, s.revision)
	keys := s.sinceLocked(s.revision)[0].keys.Clone()
	s.revision++
	written := &mvccpb.KeyValue{Key: []byte(key), ModRevision: s.revision}
	event := &clientv3.Event{Type: clientv3.EventTypeDelete, Kv: written, PrevKv: before}
	if deleted {
		keys.Delete(written)
	} else {
		event.Type, written.Value, written.Version = clientv3.EventTypePut, bytes.Clone(value), before.GetVersion()+1
		written.CreateRevision = cmp.Or(before.GetCreateRevision(), s.revision)
		keys.ReplaceOrInsert(written)
	}
	made := revision{keys, event}
	s.history = append(s.history, made)
	for w := range s.watches {
		w.offerLocked(made)
	}
}
