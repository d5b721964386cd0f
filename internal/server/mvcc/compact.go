package mvcc

import (
	"context"
	"sort"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// CompactHistory forgets every revision before rev. The error is ctx's, ErrCompacted if they are gone already,
// ErrFutureRev if rev has not happened. Watches that are under way are not concerned, as in etcd once they have caught
// up.
func (s *Store) CompactHistory(ctx context.Context, rev int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if rev <= s.compacted {
		return rpctypes.ErrCompacted
	}
	if rev > s.revision {
		return rpctypes.ErrFutureRev
	}
	s.compacted = rev
	var gone []*history
	s.keys.Ascend(func(h *history) bool {
		h.compact(rev)
		if len(h.versions) == 0 {
			gone = append(gone, h)
		}
		return true
	})
	for _, h := range gone {
		s.keys.Delete(h)
	}
	first := sort.Search(len(s.log), func(i int) bool { return s.log[i].current.mod >= rev })
	s.log = append([]*change(nil), s.log[first:]...)
	return nil
}
