package etcd3

import (
	"context"
	"strconv"
	"sync"
	"time"

	"go.etcd.io/etcd/client/v3/kubernetes"
	"k8s.io/utils/clock"

	"listwatch/internal/observe/routine"
)

const (
	// compactRevKey holds the revision of the last compaction. It lies outside every resource's prefix.
	//
	// Upstream: k8s.io/apiserver/pkg/storage/etcd3/compact.go: compactRevKey
	compactRevKey = "compact_rev_key"

	// DefaultCompactInterval is the time from one compaction to the next. Between one and two intervals of history
	// remain.
	DefaultCompactInterval = 5 * time.Minute
)

// Compactor makes etcd forget: each interval it compacts to the revision it saw one interval before. Several may run,
// one in each server; the one that writes compactRevKey first has the turn, and the others learn from it.
//
//	t0 ─────────── t1 ─────────── t2
//	remembers r0   compacts to r0,
//	               remembers r1   compacts to r1
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/compact.go: compactor
// Differs: the logical time that is compared is the key's revision; upstream compares its version, which changes at the
// same moments. Another server's compaction is learnt at the next turn; upstream also watches the key.
type Compactor struct {
	// Set by NewCompactor, never changed.
	client   Client
	clock    clock.WithTicker
	interval time.Duration

	mu              sync.Mutex // guards the field below; innermost
	compactRevision int64

	// Owned by Run.
	expected int64 // the newest known revision of compactRevKey; 0: there is none
	rev      int64 // the newest known revision: the next turn compacts to it
}

// NewCompactor returns a compactor that does nothing until it is run.
func NewCompactor(client Client, clk clock.WithTicker, interval time.Duration) *Compactor {
	return &Compactor{client: client, clock: clk, interval: interval}
}

// CompactRevision returns the newest compaction this compactor knows of, its own or another's; 0 if none. A cache may
// drop its snapshots of older revisions.
func (c *Compactor) CompactRevision() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.compactRevision
}

func (c *Compactor) updateCompactRevision(rev int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.compactRevision = max(c.compactRevision, rev)
}

// Run takes a turn each interval until ctx is done. The first turn only notes the newest revision.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/compact.go: (*compactor).runCompactLoop
func (c *Compactor) Run(ctx context.Context) {
	routine.Every(ctx, c.clock, c.interval, func(ctx context.Context) {
		// etcd did not answer, or others have compacted further. In both cases the next turn is soon enough.
		_ = c.compact(ctx)
	})
}

// compact takes one turn: if no other has written compactRevKey since we last looked, the turn is ours.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/compact.go: Compact
func (c *Compactor) compact(ctx context.Context) error {
	value := strconv.FormatInt(c.rev, 10)
	response, err := c.client.OptimisticPut(ctx, compactRevKey, []byte(value), c.expected, kubernetes.PutOptions{
		GetOnFailure: true})
	if err != nil {
		return err
	}
	target := c.rev
	c.rev = response.Revision
	if !response.Succeeded {
		c.learn(response)
		return nil
	}
	c.expected = response.Revision
	if target == 0 {
		return nil // our first turn: no revision is known that is an interval old
	}
	if err := c.client.CompactHistory(ctx, target); err != nil {
		return err
	}
	c.updateCompactRevision(target)
	return nil
}

// CompactNow makes etcd forget everything but the current state, without waiting for a turn, and returns the revision
// of that state. A read of an older one gets 410.
//
// Differs: upstream has no such method; operators run etcdctl.
func (c *Compactor) CompactNow(ctx context.Context) (rev int64, err error) {
	response, err := c.client.Get(ctx, compactRevKey, kubernetes.GetOptions{})
	if err != nil {
		return 0, err
	}
	if err := c.client.CompactHistory(ctx, response.Revision); err != nil {
		return 0, err
	}
	c.updateCompactRevision(response.Revision)
	return response.Revision, nil
}

// learn adopts the turn that another server has taken.
func (c *Compactor) learn(response kubernetes.PutResponse) {
	c.expected = 0
	if response.KV == nil {
		return
	}
	c.expected = response.KV.ModRevision
	rev, err := strconv.ParseInt(string(response.KV.Value), 10, 64)
	if err == nil { // otherwise no compactor wrote the key, and its value has no meaning
		c.updateCompactRevision(rev)
	}
}
