package watchcache

import "sort"

// snapshotter remembers the state of the store after every event, as far back as the ring and
// the storage's own history reach. That is affordable because neighbouring states share nearly
// all of their tree: see [store].
//
// Resource versions only grow, so a slice that is appended to at one end and cut at the other
// is always sorted.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/store/store_btree.go: storeSnapshotter
// Differs: a slice instead of a second tree, and WatchCache.mu instead of a lock of its own.
type snapshotter struct {
	// Guarded by WatchCache.mu.
	snapshots       []versionedSnapshot
	compactRevision uint64 // the storage has forgotten what is older; 0 if it never forgot
}

type versionedSnapshot struct {
	resourceVersion uint64
	state           btreeStore
}

// addLocked remembers the state at rv, which never changes again. Several events may share a
// resource version: the last state counts.
func (s *snapshotter) addLocked(rv uint64, state btreeStore) {
	if n := len(s.snapshots); n > 0 && s.snapshots[n-1].resourceVersion == rv {
		s.snapshots[n-1].state = state
		return
	}
	s.snapshots = append(s.snapshots, versionedSnapshot{rv, state})
}

// lessOrEqualLocked returns the newest state that is not newer than rv, unless the storage has forgotten what was at
// rv: whether an old version can still be read must not depend on who is asked.
func (s *snapshotter) lessOrEqualLocked(rv uint64) (btreeStore, bool) {
	if rv < s.compactRevision {
		return btreeStore{}, false
	}
	after := sort.Search(len(s.snapshots), func(i int) bool { return s.snapshots[i].resourceVersion > rv })
	if after == 0 {
		return btreeStore{}, false
	}
	return s.snapshots[after-1].state, true
}

// removeLessLocked forgets the states older than rv.
func (s *snapshotter) removeLessLocked(rv uint64) {
	n := 0
	for n < len(s.snapshots) && s.snapshots[n].resourceVersion < rv {
		// The slice's array outlives the cut: do not keep the tree alive with it.
		s.snapshots[n] = versionedSnapshot{}
		n++
	}
	s.snapshots = s.snapshots[n:]
}

// compactLocked forgets the states that had passed before rv. The one that lasted until rv or
// beyond stays: it is what the storage, too, still has at rv.
func (s *snapshotter) compactLocked(rv uint64) {
	s.compactRevision = max(s.compactRevision, rv)
	after := sort.Search(len(s.snapshots), func(i int) bool { return s.snapshots[i].resourceVersion > rv })
	if after > 0 {
		s.removeLessLocked(s.snapshots[after-1].resourceVersion)
	}
}

// resetLocked forgets every state.
func (s *snapshotter) resetLocked() { s.snapshots = nil }
