// Package mvcc is a small etcd in memory: numbered revisions, reads of the past, optimistic transactions, watches that
// can begin in the past, and compaction. It fulfils etcd3.Client, so a whole server half can run in a
// testing/synctest bubble or in a browser's tab, where a real etcd cannot go. Everywhere else we use the real one; one
// contract test runs the same script against both.
//
// Each revision has its own tree of keys, which is never written to again. It shares with the tree of the revision
// before all but the path to the one key that was written.
//
// A lease ends when its time is over and the store is used again, for reading, writing or asking for progress: nothing
// ticks in it. What it does not have: transactions of more than one key, and delay. A watch sees a commit as soon as
// its goroutine runs, also when it resumes from the past.
//
// # Goroutines and locks
//
// A Store starts no goroutine. Each [Store.Watch] starts one, which ends with the watch's context or after the watch
// was cancelled. Store.mu guards everything; a watch takes what is pending under it and sends without it.
package mvcc
