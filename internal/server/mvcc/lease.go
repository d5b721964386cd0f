package mvcc

import (
	"context"
	"maps"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// lease is a set of keys that end together. It is guarded by Store.mu.
type lease struct {
	ends time.Time
	keys map[string]int64 // to the revision that was written under the lease; a key written since then is not concerned
}

// GrantLease returns a lease that lasts for ttl.
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

// expireLocked ends the leases whose time is over. The error is ctx's, or that the lease wanted does not exist.
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
			if s.currentLocked(key, s.revision).modRevision() == ended.keys[key] {
				s.commitLocked(key, nil, true)
			}
		}
	}
	if wanted != clientv3.NoLease && s.leases[wanted] == nil {
		return rpctypes.ErrLeaseNotFound
	}
	return nil
}
