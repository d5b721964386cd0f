package deltafifo

import "slices"

// gone returns a tombstone for each key that the consumer's store knows, that is not in listed, and for which nothing
// is queued. They are sorted by key, so that the same relist gives the same deletions in the same order.
//
// Upstream: k8s.io/client-go/tools/cache/the_real_fifo.go: reconcileReplacement
// Differs: sorted; upstream emits them in the order of a Go map. It also returns them instead of calling back.
func gone(known KeyListerGetter, listed, queued map[string]struct{}) []DeletedFinalStateUnknown {
	if known == nil {
		return nil
	}
	var keys []string
	for _, key := range known.ListKeys() {
		_, isListed := listed[key]
		_, isQueued := queued[key]
		if !isListed && !isQueued {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	tombstones := make([]DeletedFinalStateUnknown, 0, len(keys))
	for _, key := range keys {
		obj, exists, err := known.GetByKey(key)
		if err != nil || !exists {
			obj = nil // the key is all that is left to say
		}
		tombstones = append(tombstones, DeletedFinalStateUnknown{Key: key, Obj: obj})
	}
	return tombstones
}

// unqueued returns the stored objects for which nothing is queued. The others are skipped by a resync: what waits for
// them is newer than what the store has.
func unqueued(known KeyListerGetter, queued func(key string) bool) []any {
	if known == nil {
		return nil
	}
	keys := known.ListKeys()
	slices.Sort(keys)
	objs := make([]any, 0, len(keys))
	for _, key := range keys {
		if queued(key) {
			continue
		}
		obj, exists, err := known.GetByKey(key)
		if err == nil && exists {
			objs = append(objs, obj)
		}
	}
	return objs
}

func keySet(deltas []Delta) map[string]struct{} {
	keys := make(map[string]struct{}, len(deltas))
	for i := range deltas {
		keys[deltas[i].Key] = struct{}{}
	}
	return keys
}
