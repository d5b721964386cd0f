package indexer

import (
	"slices"
	"strings"
)

// TransactionType says what a [Transaction] does.
//
// Upstream: k8s.io/client-go/tools/cache/store.go: TransactionType
// Differs: there is no Add: whether an object is new is for the store to say, in [Transaction.Existed].
type TransactionType string

// The types of a [Transaction].
const (
	TransactionTypeUpdate TransactionType = "Update"
	TransactionTypeDelete TransactionType = "Delete"
)

// Transaction is one write among several that are applied under one lock, and its result.
//
// Upstream: k8s.io/client-go/tools/cache/store.go: Transaction
// Differs: the store writes down what was there before; upstream's caller asks for it beforehand, one by one.
type Transaction struct {
	Type   TransactionType
	Key    string
	Object any

	// Set by the store.
	Old     any  // what was stored under Key
	Existed bool // whether anything was
}

// Transaction applies txns, whose keys the caller has filled in, in order as one step: no
// reader sees only some of them.
//
// Upstream: k8s.io/client-go/tools/cache/thread_safe_store.go: (*threadSafeMap).Transaction
// Differs: cannot fail; upstream's cache makes the keys and skips objects that have none.
func (c *Indexer) Transaction(txns []Transaction) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range txns {
		txn := &txns[i]
		switch txn.Type {
		case TransactionTypeUpdate:
			txn.Old, txn.Existed = c.updateLocked(txn.Key, txn.Object)
		case TransactionTypeDelete:
			txn.Old, txn.Existed = c.deleteLocked(txn.Key, txn.Object)
		}
	}
}

// compare completes txns with what was there before and returns what is there no more.
func compare(before, now map[string]any, txns []Transaction) (gone []Transaction) {
	for i := range txns {
		txns[i].Old, txns[i].Existed = before[txns[i].Key]
	}
	for key, old := range before {
		if _, still := now[key]; !still {
			gone = append(gone, Transaction{Type: TransactionTypeDelete, Key: key, Old: old, Existed: true})
		}
	}
	slices.SortFunc(gone, func(a, b Transaction) int { return strings.Compare(a.Key, b.Key) })
	return gone
}
