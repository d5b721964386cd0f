// Package mvcc is a small etcd in memory. It has numbered revisions, reads of the past, optimistic transactions,
// watches that can begin in the past, and compaction. It implements etcd3.Client, so our API server can run in a
// testing/synctest bubble or in a browser's tab, where a real etcd cannot run. Everywhere else we use the real etcd. A
// contract test runs the same scripts against both.
//
// Each revision has its own tree of keys, which never changes. Only the path to the written key is new; the rest of the
// tree is shared with the revision before.
//
// The store has no ticker for leases: a lease ends at the first read, optimistic write, new lease or request for
// progress after its time. There are no transactions of more than one key, and no delays: a watch delivers a commit as
// soon as the watch's goroutine runs, even when the watch resumes from the past.
//
// # Goroutines and locks
//
// A Store starts no goroutine. Each [Store.Watch] starts one, which ends with the watch's context or after the watch
// was cancelled. Store.mu guards all state that changes. A watch takes its pending responses with the lock held, and
// sends them without it.
package mvcc
