package indexer

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	deltafifo "listwatch/chapters/10-deltafifo"
	"listwatch/internal/check/require"
)

// checkIndices compares the indices with those of a store that is filled from scratch.
func checkIndices(t require.TB, c *Indexer) {
	t.Helper()
	rebuilt := NewIndexer(Config{Indexers: c.index.indexers})
	for _, obj := range c.List() {
		rebuilt.Add(obj)
	}
	require.Equal(t, "", cmp.Diff(rebuilt.index.indices, c.index.indices), "indices (-rebuilt +kept)")
}

func TestIndicesEqualARebuild(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newPodStore()
		rv := 0
		draw := func(t *rapid.T) any {
			rv++
			p := pod(rapid.SampledFrom([]string{"default", "system"}).Draw(t, "namespace"),
				rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name"),
				rapid.SampledFrom([]string{"", "node-1", "node-2"}).Draw(t, "node"), rv)
			p.Labels = rapid.MapOf(rapid.SampledFrom([]string{"k", "l"}), rapid.SampledFrom([]string{"1", "2"})).
				Draw(t, "labels")
			return p
		}
		list := func(t *rapid.T) []any {
			objs := []any{}
			seen := map[string]bool{}
			for range rapid.IntRange(0, 4).Draw(t, "n") {
				obj := draw(t)
				key, _ := deltafifo.DeletionHandlingMetaNamespaceKeyFunc(obj)
				if !seen[key] {
					seen[key] = true
					objs = append(objs, obj)
				}
			}
			return objs
		}
		t.Repeat(map[string]func(*rapid.T){
			"":       func(t *rapid.T) { checkIndices(t, c) },
			"add":    func(t *rapid.T) { c.Add(draw(t)) },
			"update": func(t *rapid.T) { c.Update(draw(t)) },
			"delete": func(t *rapid.T) { c.Delete(draw(t)) },
			"replace": func(t *rapid.T) {
				objs := list(t)
				known := map[string]any{}
				for _, key := range c.ListKeys() {
					known[key], _, _ = c.GetByKey(key)
				}
				changes, gone, _ := c.ReplaceAll(objs, fmt.Sprint(rv))
				for _, txn := range append(changes, gone...) {
					old, existed := known[txn.Key]
					require.True(t, existed == txn.Existed && old == txn.Old, "%s: old %v, want %v", txn.Key, txn.Old,
						old)
					delete(known, txn.Key)
				}
				require.True(t, len(known) == 0, "neither changed nor gone: %v", known)
			},
			"transaction": func(t *rapid.T) {
				var txns []Transaction
				for _, obj := range list(t) {
					key, _ := deltafifo.DeletionHandlingMetaNamespaceKeyFunc(obj)
					typ := rapid.SampledFrom([]TransactionType{TransactionTypeUpdate, TransactionTypeDelete}).Draw(t,
						"type")
					txns = append(txns, Transaction{Type: typ, Key: key, Object: obj})
				}
				c.Transaction(txns)
			},
		})
	})
}
