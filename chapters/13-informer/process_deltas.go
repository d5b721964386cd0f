package informer

import (
	"fmt"

	deltafifo "listwatch/chapters/10-deltafifo"
	indexer "listwatch/chapters/11-indexer"
	processor "listwatch/chapters/12-processor"
)

// deltaProcessor applies deltas to the store and tells a handler: the store first, the handler second, always. A
// handler that looks into the store finds there what it has just been told, or something newer, which includes that the
// object is gone: a later change may have been applied already. (Older only if etcd was restored from a backup.)
//
// Differs: upstream has functions that are handed store and handler each time.
type deltaProcessor struct {
	// Set when it is made, never changed.
	clientState *indexer.Indexer
	handler     processor.ResourceEventHandler
}

// processDeltas applies deltas, oldest first. It stops at the first that cannot be applied.
//
// Upstream: k8s.io/client-go/tools/cache/controller.go: processDeltas
func (p *deltaProcessor) processDeltas(deltas deltafifo.Deltas, isInInitialList bool) error {
	for i := range deltas {
		if err := p.processDelta(deltas[i:i+1], isInInitialList); err != nil {
			return err
		}
	}
	return nil
}

// processDelta applies one delta. It comes as a slice of one, since a batch is a slice, too.
func (p *deltaProcessor) processDelta(one []deltafifo.Delta, isInInitialList bool) error {
	switch info := one[0].Object.(type) {
	case deltafifo.ReplacedAllInfo:
		return p.processReplacedAllInfo(info, isInInitialList)
	case deltafifo.SyncAllInfo:
		for _, obj := range p.clientState.List() { // shows the handler everything once more
			p.handler.OnUpdate(obj, obj)
		}
		return nil
	case deltafifo.BookmarkInfo:
		return p.clientState.Bookmark(info.ResourceVersion)
	default:
		return p.processDeltasInBatch(one, isInInitialList)
	}
}

// processDeltasInBatch applies deltas, which are of different keys, as one step, and then tells
// of each in order. When the handler is told of the first, the store holds the last.
//
// Upstream: k8s.io/client-go/tools/cache/controller.go: processDeltasInBatch
func (p *deltaProcessor) processDeltasInBatch(deltas []deltafifo.Delta,
	isInInitialList bool) error {
	txns := make([]indexer.Transaction, len(deltas))
	for i := range deltas {
		var err error
		if txns[i], err = transaction(&deltas[i]); err != nil {
			return err
		}
	}
	p.clientState.Transaction(txns)
	for i := range txns {
		p.notify(&txns[i], isInInitialList)
	}
	return nil
}

func transaction(delta *deltafifo.Delta) (indexer.Transaction, error) {
	txn := indexer.Transaction{Key: delta.Key, Object: delta.Object}
	switch delta.Type {
	case deltafifo.Added, deltafifo.Updated, deltafifo.Replaced, deltafifo.Sync:
		txn.Type = indexer.TransactionTypeUpdate
	case deltafifo.Deleted:
		txn.Type = indexer.TransactionTypeDelete
	default:
		return txn, fmt.Errorf("process delta of %q: type %s with a %T", delta.Key, delta.Type, delta.Object)
	}
	return txn, nil
}

// notify tells the handler what txn has done. Whether the store had the key decides between
// OnAdd and OnUpdate, and not the type of the delta: a watch may begin with ADDED for objects
// we hold, and after a gap MODIFIED may be the first we hear of an object. A deletion is told
// even if the store had nothing.
func (p *deltaProcessor) notify(txn *indexer.Transaction, isInInitialList bool) {
	switch {
	case txn.Type == indexer.TransactionTypeDelete:
		p.handler.OnDelete(txn.Object)
	case txn.Existed:
		p.handler.OnUpdate(txn.Old, txn.Object)
	default:
		p.handler.OnAdd(txn.Object, isInInitialList)
	}
}

// processReplacedAllInfo makes a list the content of the store and then tells what that
// changed: deletions first, as tombstones, because the watch missed them; then additions and
// updates in the order of the list. Objects that did not change are told as updates, too.
//
// Upstream: k8s.io/client-go/tools/cache/controller.go: processReplacedAllInfo
// Upstream: k8s.io/client-go/tools/cache/the_real_fifo.go: reconcileReplacement
func (p *deltaProcessor) processReplacedAllInfo(info deltafifo.ReplacedAllInfo,
	isInInitialList bool) error {
	changes, gone, err := p.clientState.ReplaceAll(info.Objects, info.ResourceVersion)
	if err != nil {
		return err
	}
	for _, txn := range gone {
		p.handler.OnDelete(deltafifo.DeletedFinalStateUnknown{Key: txn.Key, Obj: txn.Old})
	}
	for i := range changes {
		p.notify(&changes[i], isInInitialList)
	}
	return nil
}
