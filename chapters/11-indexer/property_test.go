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
		must(rebuilt.Add(obj))
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
			objs := []any{} // perhaps two of one key
			for range rapid.IntRange(0, 4).Draw(t, "n") {
				objs = append(objs, draw(t))
			}
			return objs
		}
		t.Repeat(map[string]func(*rapid.T){
			"":        func(t *rapid.T) { checkIndices(t, c) },
			"add":     func(t *rapid.T) { must(c.Add(draw(t))) },
			"update":  func(t *rapid.T) { must(c.Update(draw(t))) },
			"delete":  func(t *rapid.T) { must(c.Delete(draw(t))) },
			"replace": func(t *rapid.T) { must(c.Replace(list(t), fmt.Sprint(rv))) },
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
