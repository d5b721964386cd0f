package cacher

import (
	"context"
	"time"

	"listwatch/internal/observe/routine"
)

// compactorPollPeriod is the time between two questions for the beginning of the storage's history. Upstream's.
const compactorPollPeriod = 15 * time.Second

// Compaction knows how far back the storage's history reaches.
type Compaction interface {
	// CompactRevision returns the newest version below which the storage has forgotten everything, 0 if it has
	// forgotten nothing. It does not block.
	CompactRevision() int64
}

// followCompactions lets the watchCache forget what the storage has forgotten. It runs until ctx is done.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/compactor.go: (*compactor).Run
func (c *Cacher) followCompactions(ctx context.Context) {
	if c.config.Compaction == nil {
		return
	}
	routine.Every(ctx, c.clock, compactorPollPeriod, func(context.Context) {
		c.watchCache.Compact(uint64(c.config.Compaction.CompactRevision()))
	})
}
