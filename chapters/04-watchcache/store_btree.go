package watchcache

import (
	"iter"
	"strings"

	"github.com/google/btree"
)

// btreeDegree is the least number of children that a node has. It has at most twice as many.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/store/store.go: btreeDegree
const btreeDegree = 16

// btreeStore is a set of elements in a B-tree, ordered by their keys. Only one goroutine at a
// time may change or clone it. A clone shares all nodes with the original. Whichever of the two
// changes next copies the nodes between its root and the change, and shares the others:
//
//	clone:  root ─┬─ m ─┬─ a b         original, with d:  root' ─┬─ (m of the clone)
//	              │     └─ c                                     └─ n' ─┬─ d e f
//	              └─ n ─┬─ e f                                          └─ (g)
//	                    └─ g
//
// So a clone that is never changed can be read by any goroutine without a lock.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/store/store_btree.go: btreeStore
// Differs: upstream has a fork of this library in k8s.io/utils, with the same copying.
type btreeStore struct {
	tree *btree.BTreeG[*Element]
}

// newBtreeStore returns the store of elements. Of several with the same key the last one counts.
func newBtreeStore(elements ...*Element) btreeStore {
	less := func(a, b *Element) bool { return a.Key < b.Key }
	s := btreeStore{btree.NewG(btreeDegree, less)}
	for _, e := range elements {
		s.tree.ReplaceOrInsert(e)
	}
	return s
}

func (s btreeStore) clone() btreeStore { return btreeStore{s.tree.Clone()} }

// getByKey returns the element at key, nil if there is none.
func (s btreeStore) getByKey(key string) *Element {
	element, _ := s.tree.Get(&Element{Key: key})
	return element
}

// orderedListPrefix yields the elements whose keys begin with prefix, in key order. It begins
// at continueKey (inclusive), or at the first of them if continueKey is "".
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/store/store_btree.go: (*btreeStore).OrderedListPrefix
func (s btreeStore) orderedListPrefix(prefix, continueKey string) iter.Seq[*Element] {
	return func(yield func(*Element) bool) {
		from := &Element{Key: max(prefix, continueKey)}
		s.tree.AscendGreaterOrEqual(from, func(e *Element) bool {
			return strings.HasPrefix(e.Key, prefix) && yield(e)
		})
	}
}
