package watchcache

import (
	"slices"
	"strings"
)

// maxSlots is how many elements a leaf holds, and how many children any other node. A change copies one node of each level,
// so larger nodes mean fewer copies of more bytes.
const maxSlots = 32

// tree is a set of elements, ordered by key, that never changes: [tree.set] and [tree.delete] leave it alone and return
// another one. The two share all nodes but those on the way from the root to the change.
//
//	t:  root ─┬─ m ─┬─ leaf a b            t.set(d):  root' ─┬─ (m of t)
//	          │     └─ leaf c                                 └─ n' ─┬─ leaf d e f
//	          └─ n ─┬─ leaf e f                                      └─ (leaf g of t)
//	                └─ leaf g
//
// A tree is therefore its own snapshot: to keep a state is to keep two words, and it is read without any lock.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/store/store_btree.go: btreeStore
// Differs: upstream's tree is changed in place and copies a node when it is shared with a clone, which one has to make
// after every event. Ours never changes in place; elements are in the leaves only; nodes that have become small are
// joined when both fit into one, and not refilled.
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

// leaf and branch are a node with room for what it holds, so that each takes one allocation.
type leaf struct {
	node
	room [maxSlots]*Element
}

type branch struct {
	node
	room [maxSlots]*node
}

// newLeaf copies elements, of which there is at least one.
func newLeaf(elements []*Element) *node {
	l := &leaf{}
	l.least = elements[0].Key
	l.elements = l.room[:copy(l.room[:], elements)]
	return &l.node
}

// newBranch copies children, of which there is at least one.
func newBranch(children []*node) *node {
	b := &branch{}
	b.least = children[0].least
	b.children = b.room[:copy(b.room[:], children)]
	return &b.node
}

// newTree returns the tree of elements, built from the leaves up. Of several elements with the same key the last one
// counts. Nodes are full as far as possible: most of what will happen are updates, and a tree with fewer levels copies
// less for each. Set one by one in the order of their keys, elements would leave every node half empty.
func newTree(elements []*Element) tree {
	sorted := lastOfEach(elements)
	var level []*node
	for some := range slices.Chunk(sorted, maxSlots) {
		level = append(level, newLeaf(some))
	}
	if len(level) == 0 {
		return tree{}
	}
	for len(level) > 1 {
		var above []*node
		for some := range slices.Chunk(level, maxSlots) {
			above = append(above, newBranch(some))
		}
		level = above
	}
	return tree{level[0], len(sorted)}
}

// lastOfEach returns elements ordered by key, without those that are followed by another one with their key.
func lastOfEach(elements []*Element) []*Element {
	sorted := slices.Clone(elements)
	slices.SortStableFunc(sorted, compareKeys)
	kept := sorted[:0]
	for i, e := range sorted {
		if i+1 == len(sorted) || sorted[i+1].Key != e.Key {
			kept = append(kept, e)
		}
	}
	return kept
}

func compareKeys(a, b *Element) int { return strings.Compare(a.Key, b.Key) }

// get returns the element at key, nil if there is none.
func (t tree) get(key string) *Element {
	n := t.root
	if n == nil {
		return nil
	}
	for n.children != nil {
		n = n.children[n.childFor(key)]
	}
	if i, found := n.search(key); found {
		return n.elements[i]
	}
	return nil
}

// set returns the tree with e, in the place of the element with the same key if there is one.
func (t tree) set(e *Element) (_ tree, replaced *Element) {
	if t.root == nil {
		return tree{newLeaf([]*Element{e}), 1}, nil
	}
	left, right, replaced := t.root.set(e)
	if right != nil {
		left = newBranch([]*node{left, right})
	}
	if replaced == nil {
		t.length++
	}
	return tree{left, t.length}, replaced
}

// delete returns the tree without the element at key.
func (t tree) delete(key string) (_ tree, deleted *Element) {
	if deleted = t.get(key); deleted == nil {
		return t, nil
	}
	root := t.root.delete(key)
	for root != nil && len(root.children) == 1 {
		root = root.children[0]
	}
	return tree{root, t.length - 1}, deleted
}

// ascend yields the elements from the key from on, in order, until yield has had enough, which it then reports.
func (t tree) ascend(from string, yield func(*Element) bool) bool {
	return t.root == nil || t.root.ascend(from, yield)
}

// first and last return the outermost elements of a tree that is not empty.
func (t tree) first() *Element {
	n := t.root
	for n.children != nil {
		n = n.children[0]
	}
	return n.elements[0]
}

func (t tree) last() *Element {
	n := t.root
	for n.children != nil {
		n = n.children[len(n.children)-1]
	}
	return n.elements[len(n.elements)-1]
}

// search returns the position of key in a leaf, or the one where it would be.
func (n *node) search(key string) (int, bool) {
	low, high := 0, len(n.elements)
	for low < high {
		middle := (low + high) / 2
		if n.elements[middle].Key < key {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low, low < len(n.elements) && n.elements[low].Key == key
}

// childFor returns the position of the child below which key belongs.
func (n *node) childFor(key string) int {
	low, high := 1, len(n.children) // whatever is less than all belongs below the first
	for low < high {
		middle := (low + high) / 2
		if n.children[middle].least <= key {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low - 1
}

// set returns a copy of n with e in it; in two halves, if it does not fit into one.
func (n *node) set(e *Element) (left, right *node, replaced *Element) {
	if n.children != nil {
		return n.setBelow(e)
	}
	var space [maxSlots + 1]*Element
	elements := append(space[:0], n.elements...)
	i, found := n.search(e.Key)
	if found {
		replaced, elements[i] = elements[i], e
	} else {
		elements = slices.Insert(elements, i, e)
	}
	if len(elements) <= maxSlots {
		return newLeaf(elements), nil, replaced
	}
	return newLeaf(elements[:maxSlots/2]), newLeaf(elements[maxSlots/2:]), replaced
}

func (n *node) setBelow(e *Element) (left, right *node, replaced *Element) {
	var space [maxSlots + 1]*node
	children := append(space[:0], n.children...)
	i := n.childFor(e.Key)
	child, second, replaced := n.children[i].set(e)
	children[i] = child
	if second != nil {
		children = slices.Insert(children, i+1, second)
	}
	if len(children) <= maxSlots {
		return newBranch(children), nil, replaced
	}
	return newBranch(children[:maxSlots/2]), newBranch(children[maxSlots/2:]), replaced
}

// delete returns a copy of n without the element at key, which is there; nil if nothing is left.
func (n *node) delete(key string) *node {
	if n.children != nil {
		return n.deleteBelow(key)
	}
	if len(n.elements) == 1 {
		return nil
	}
	var space [maxSlots]*Element
	i, _ := n.search(key)
	return newLeaf(slices.Delete(append(space[:0], n.elements...), i, i+1))
}

func (n *node) deleteBelow(key string) *node {
	var space [maxSlots]*node
	children := append(space[:0], n.children...)
	i := n.childFor(key)
	child := n.children[i].delete(key)
	switch {
	case child == nil && len(children) == 1:
		return nil
	case child == nil:
		return newBranch(slices.Delete(children, i, i+1))
	}
	children[i] = child
	for _, at := range [2]int{i - 1, i} { // with the neighbour before it, or with the one after
		if at < 0 || at+1 >= len(children) {
			continue
		}
		if joined := join(children[at], children[at+1]); joined != nil {
			children[at] = joined
			return newBranch(slices.Delete(children, at+1, at+2))
		}
	}
	return newBranch(children)
}

// join returns what two neighbours hold in one node, if that leaves half of it free: otherwise it would soon be split
// again. They are at the same level, so both are leaves or neither is.
func join(a, b *node) *node {
	if len(a.elements)+len(b.elements)+len(a.children)+len(b.children) > maxSlots/2 {
		return nil
	}
	if a.children != nil {
		return newBranch(slices.Concat(a.children, b.children))
	}
	return newLeaf(slices.Concat(a.elements, b.elements))
}

func (n *node) ascend(from string, yield func(*Element) bool) bool {
	if n.children == nil {
		i, _ := n.search(from)
		for _, e := range n.elements[i:] {
			if !yield(e) {
				return false
			}
		}
		return true
	}
	for _, child := range n.children[n.childFor(from):] {
		if !child.ascend(from, yield) {
			return false
		}
	}
	return true
}
