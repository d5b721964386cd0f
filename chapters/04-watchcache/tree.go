package watchcache

import (
	"iter"
	"slices"
	"strings"
)

// maxSlots is how many elements a leaf holds, and how many children any other node. A change copies one node of each
// level, so larger nodes mean fewer copies of more bytes.
const maxSlots = 32

// tree is a set of elements, ordered by their keys, that never changes: set and delete leave it
// alone and return another one. The two share all nodes but those on the way from the root to
// the change, which is called path copying.
//
//	t:  root ─┬─ m ─┬─ leaf a b            t.set(d):  root' ─┬─ (m of t)
//	          │     └─ leaf c                                 └─ n' ─┬─ leaf d e f
//	          └─ n ─┬─ leaf e f                                      └─ (leaf g of t)
//	                └─ leaf g
//
// A tree is therefore its own snapshot: to keep a state is to keep two words, and it is read
// without any lock. It is a B+ tree: elements are in the leaves only. Nodes that have become
// small are joined when both fit into one, and are not refilled.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/store/store_btree.go: newThreadedBtreeStoreIndexer
// Differs: upstream's tree (k8s.io/utils/third_party/forked/golang/btree) changes in place, and
// copies a node that it shares with a clone; it is cloned after every event. Ours has nodes of
// exact size: docs/COSTS.md has what that saves.
type tree struct {
	root   *node // nil: empty
	length int
}

// node is a leaf, which has elements, or has children. It never changes once it is in a tree.
type node struct {
	least    string // the smallest key below
	elements []*Element
	children []*node
}

// newTree returns the tree of elements, built from the leaves up. Of several elements with the same key the last one
// counts. Nodes are full as far as possible: a tree with fewer levels copies less for each update. Set one by one in
// the order of their keys, elements would leave every node half empty.
func newTree(elements []*Element) tree {
	sorted := slices.Clone(elements)
	slices.Reverse(sorted) // of those with the same key the last comes first, and that one is kept
	slices.SortStableFunc(sorted, func(a, b *Element) int { return strings.Compare(a.Key, b.Key) })
	sorted = slices.CompactFunc(sorted, func(a, b *Element) bool { return a.Key == b.Key })
	var level []*node
	for some := range slices.Chunk(sorted, maxSlots) {
		level = append(level, leaf(slices.Clone(some)))
	}
	for len(level) > 1 {
		var above []*node
		for some := range slices.Chunk(level, maxSlots) {
			above = append(above, branch(slices.Clone(some)))
		}
		level = above
	}
	if len(level) == 0 {
		return tree{}
	}
	return tree{level[0], len(sorted)}
}

// leaf and branch take over what they are given, of which there is at least one.
func leaf(elements []*Element) *node {
	return &node{least: elements[0].Key, elements: elements}
}

func branch(children []*node) *node {
	return &node{least: children[0].least, children: children}
}

// get returns the element at key, nil if there is none.
func (t tree) get(key string) *Element {
	n := t.root
	if n == nil {
		return nil
	}
	for n.children != nil {
		n = n.children[n.childFor(key)]
	}
	if i, ok := n.search(key); ok {
		return n.elements[i]
	}
	return nil
}

// from yields the elements whose keys begin with prefix, in key order, beginning at the key first (inclusive) or, if
// that is "", at the first there is.
func (t tree) from(prefix, first string) iter.Seq[*Element] {
	return func(yield func(*Element) bool) {
		if t.root == nil {
			return
		}
		t.root.ascend(max(prefix, first), func(e *Element) bool { return strings.HasPrefix(e.Key, prefix) && yield(e) })
	}
}

// ascend returns false when yield has had enough.
func (n *node) ascend(from string, yield func(*Element) bool) bool {
	if n.children == nil {
		i, _ := n.search(from)
		return !slices.ContainsFunc(n.elements[i:], func(e *Element) bool { return !yield(e) })
	}
	for _, child := range n.children[n.childFor(from):] {
		if !child.ascend(from, yield) {
			return false
		}
	}
	return true
}

// search returns the position of key in a leaf, or the one where it would be.
func (n *node) search(key string) (at int, found bool) {
	return slices.BinarySearchFunc(n.elements, key, func(e *Element, key string) int {
		return strings.Compare(e.Key, key)
	})
}

// childFor returns the position of the child below which key belongs: the last one whose least key is not greater. A
// key that is less than all belongs below the first.
func (n *node) childFor(key string) int {
	at, found := slices.BinarySearchFunc(n.children, key, func(child *node, key string) int {
		return strings.Compare(child.least, key)
	})
	if found {
		return at
	}
	return max(at-1, 0)
}

// set returns the tree with e in it, in the place of the element with the same key if there is one.
func (t tree) set(e *Element) (with tree, replaced *Element) {
	if t.root == nil {
		return tree{leaf([]*Element{e}), 1}, nil
	}
	replaced = t.get(e.Key)
	left, right := t.root.set(e)
	if right != nil {
		left = branch([]*node{left, right})
	}
	if replaced == nil {
		t.length++
	}
	return tree{left, t.length}, replaced
}

// set returns a copy of n with e in it; in two halves, if it does not fit into one.
func (n *node) set(e *Element) (left, right *node) {
	if n.children != nil {
		return n.setBelow(e)
	}
	i, found := n.search(e.Key)
	if found {
		elements := slices.Clone(n.elements)
		elements[i] = e
		return leaf(elements), nil
	}
	return halves(slices.Concat(n.elements[:i], []*Element{e}, n.elements[i:]), leaf)
}

func (n *node) setBelow(e *Element) (left, right *node) {
	i := n.childFor(e.Key)
	child, second := n.children[i].set(e)
	children := slices.Clone(n.children)
	children[i] = child
	if second != nil {
		children = slices.Concat(children[:i+1], []*node{second}, children[i+1:])
	}
	return halves(children, branch)
}

// halves returns the node of all slots, or two nodes if one does not hold them.
func halves[E any](slots []E, of func([]E) *node) (left, right *node) {
	if len(slots) <= maxSlots {
		return of(slots), nil
	}
	return of(slices.Clone(slots[:maxSlots/2])), of(slices.Clone(slots[maxSlots/2:]))
}

// delete returns the tree without the element at key, and that element, nil if there is none.
func (t tree) delete(key string) (without tree, deleted *Element) {
	deleted = t.get(key)
	if deleted == nil {
		return t, nil
	}
	root := t.root.delete(key)
	for root != nil && len(root.children) == 1 {
		root = root.children[0]
	}
	return tree{root, t.length - 1}, deleted
}

// delete returns a copy of n without the element at key, which is there; nil if nothing is left.
func (n *node) delete(key string) *node {
	if n.children != nil {
		return n.deleteBelow(key)
	}
	if len(n.elements) == 1 {
		return nil
	}
	i, _ := n.search(key)
	return leaf(slices.Concat(n.elements[:i], n.elements[i+1:]))
}

func (n *node) deleteBelow(key string) *node {
	i := n.childFor(key)
	child := n.children[i].delete(key)
	switch {
	case child == nil && len(n.children) == 1:
		return nil
	case child == nil:
		return branch(slices.Concat(n.children[:i], n.children[i+1:]))
	}
	children := slices.Clone(n.children)
	children[i] = child
	for _, at := range [2]int{i - 1, i} { // with the neighbour before it, or with the one after
		if at < 0 || at+1 >= len(children) {
			continue
		}
		if joined := join(children[at], children[at+1]); joined != nil {
			return branch(slices.Concat(children[:at], []*node{joined}, children[at+2:]))
		}
	}
	return branch(children)
}

// join returns what two neighbours hold in one node, if that leaves half of it free: otherwise it would soon be split
// again. They are at the same level, so both are leaves or neither is.
func join(a, b *node) *node {
	if len(a.elements)+len(b.elements)+len(a.children)+len(b.children) > maxSlots/2 {
		return nil
	}
	if a.children != nil {
		return branch(slices.Concat(a.children, b.children))
	}
	return leaf(slices.Concat(a.elements, b.elements))
}
