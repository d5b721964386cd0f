package etcd3

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/utils/clock"
)

// The limits of a lease: the time between its first write and its last, and the number of writes. Upstream's numbers.
const (
	leaseReusePercent     = 5 // of the time to live, but no more than:
	leaseReuseDuration    = time.Minute
	leaseMaxAttachedCount = 1000
)

// leaseManager hands out leases: when a lease ends, etcd deletes the keys that were written under it. A lease costs
// etcd more than a key does, and clients that write with a time to live write often; so a lease lasts a little longer
// than asked, and serves every writer that comes in the meantime.
//
//	granted ── reused by later writes ──► │ then another is granted
//	└──────────── ttl + 5 %, at most a minute more ──────► etcd deletes all that was written under it
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/lease_manager.go: leaseManager
// Differs: a lease that etcd no longer knows is replaced: our clock may have been slower than etcd's. No metrics.
type leaseManager struct {
	// Set by newLeaseManager, never changed.
	client Client
	clock  clock.PassiveClock
	ttl    time.Duration // at least this; 0: objects live forever

	mu       sync.Mutex // guards the fields below; held while a lease is granted: later writers share that lease
	id       clientv3.LeaseID
	expires  time.Time // of id
	attached int       // writes under id, successful or not
}

// newLeaseManager returns a manager that has granted nothing yet.
func newLeaseManager(client Client, clk clock.PassiveClock, ttl time.Duration) *leaseManager {
	return &leaseManager{client: client, clock: clk, ttl: ttl}
}

// getLease returns the lease to write under, 0 for objects that live forever.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/lease_manager.go: (*leaseManager).GetLease
func (l *leaseManager) getLease(ctx context.Context) (clientv3.LeaseID, error) {
	if l.ttl == 0 {
		return 0, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	l.attached++
	if l.id != 0 && now.Add(l.ttl).Before(l.expires) && l.attached <= leaseMaxAttachedCount {
		return l.id, nil
	}
	ttl := l.ttl + min(l.ttl*leaseReusePercent/100, leaseReuseDuration)
	id, err := l.client.GrantLease(ctx, ttl)
	if err != nil {
		return 0, fmt.Errorf("grant a lease: %w", err)
	}
	l.id, l.expires, l.attached = id, now.Add(ttl), 1
	return id, nil
}

// isGone reports whether a write failed because etcd has ended its lease. If so, the next write gets another lease.
func (l *leaseManager) isGone(id clientv3.LeaseID, err error) bool {
	if id == 0 || !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.id == id {
		l.id = 0
	}
	return true
}
