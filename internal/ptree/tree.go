// Package ptree is an ordered set that never changes: [Tree.Set] and [Tree.Delete] leave the tree alone and return another
// one. The two share all nodes but those on the way from the root to the change.
//
//	t:  root ─┬─ m ─┬─ leaf a b            t.Set(d):  root' ─┬─ (m of t)
//	          │     └─ leaf c                                 └─ n' ─┬─ leaf d e f
//	          └─ n ─┬─ leaf e f                                      └─ (leaf g of t)
//	                └─ leaf g
//
// A tree is therefore its own snapshot: to keep a state is to keep three words, and it is read without any lock. It is a
// B+ tree: elements are in the leaves only. Nodes that have become small are joined when both fit into one, and are not
// refilled.
package ptree

import (
	"iter"
	"slices"
	"strings"
)

// maxSlots is how many elements a leaf holds, and how many children any other node. A change copies one node of each level,
// so larger nodes mean fewer copies of more bytes.
const maxSlots = 32

// Tree is a set of elements, ordered by their keys, each of which is in it once.
type Tree[T any] struct {
	key    func(T) string
	root   *node[T] // nil: empty
	length int
}

// node is a leaf, which has elements, or has children. It never changes once it is in a tree.
type node[T any] struct {
	least    string // the smallest key below
	elements []T
	children []*node[T]
}

// New returns the tree of elements, built from the leaves up. Of several elements with the same key the last one counts.
// Nodes are full as far as possible: a tree with fewer levels copies less for each update. Set one by one in the order of
// their keys, elements would leave every node half empty.
func New[T any](key func(T) string, elements []T) Tree[T] {
	t := Tree[T]{key: key}
	sorted := t.lastOfEach(elements)
	var level []*node[T]
	for some := range slices.Chunk(sorted, maxSlots) {
		level = append(level, t.leaf(slices.Clone(some)))
	}
	for len(level) > 1 {
		var above []*node[T]
		for some := range slices.Chunk(level, maxSlots) {
			above = append(above, branch(slices.Clone(some)))
		}
		level = above
	}
	if len(level) == 1 {
		t.root, t.length = level[0], len(sorted)
	}
	return t
}

// lastOfEach returns elements ordered by key, without those that are followed by another one with their key.
func (t Tree[T]) lastOfEach(elements []T) []T {
	sorted := slices.Clone(elements)
	slices.SortStableFunc(sorted, func(a, b T) int { return strings.Compare(t.key(a), t.key(b)) })
	kept := sorted[:0]
	for i, e := range sorted {
		if i+1 == len(sorted) || t.key(sorted[i+1]) != t.key(e) {
			kept = append(kept, e)
		}
	}
	return kept
}

// leaf and branch take over what they are given, of which there is at least one.
func (t Tree[T]) leaf(elements []T) *node[T] {
	return &node[T]{least: t.key(elements[0]), elements: elements}
}

func branch[T any](children []*node[T]) *node[T] {
	return &node[T]{least: children[0].least, children: children}
}

// Len returns how many elements there are.
func (t Tree[T]) Len() int { return t.length }

// Get returns the element at key, if there is one.
func (t Tree[T]) Get(key string) (e T, ok bool) {
	n := t.root
	if n == nil {
		return e, false
	}
	for n.children != nil {
		n = n.children[n.childFor(key)]
	}
	i, ok := t.search(n, key)
	if ok {
		e = n.elements[i]
	}
	return e, ok
}

// Leaves yields the elements from key on, in order, leaf by leaf. The slices must not be changed.
func (t Tree[T]) Leaves(key string) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		if t.root != nil {
			t.ascend(t.root, key, yield)
		}
	}
}

// ascend returns false when yield has had enough.
func (t Tree[T]) ascend(n *node[T], from string, yield func([]T) bool) bool {
	if n.children == nil {
		i := 0
		if n.least < from {
			i, _ = t.search(n, from)
		}
		return i == len(n.elements) || yield(n.elements[i:])
	}
	for _, child := range n.children[n.childFor(from):] {
		if !t.ascend(child, from, yield) {
			return false
		}
	}
	return true
}

// search returns the position of key in a leaf, or the one where it would be.
func (t Tree[T]) search(n *node[T], key string) (int, bool) {
	low, high := 0, len(n.elements)
	for low < high {
		middle := (low + high) / 2
		if t.key(n.elements[middle]) < key {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low, low < len(n.elements) && t.key(n.elements[low]) == key
}

// childFor returns the position of the child below which key belongs.
func (n *node[T]) childFor(key string) int {
	low, high := 1, len(n.children) // a key that is less than all belongs below the first
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

// Set returns the tree with e, and the element with the same key that e replaces, if there is one.
func (t Tree[T]) Set(e T) (with Tree[T], replaced T, ok bool) {
	if t.root == nil {
		return Tree[T]{t.key, t.leaf([]T{e}), 1}, replaced, false
	}
	replaced, ok = t.Get(t.key(e))
	left, right := t.set(t.root, e)
	if right != nil {
		left = branch([]*node[T]{left, right})
	}
	if !ok {
		t.length++
	}
	return Tree[T]{t.key, left, t.length}, replaced, ok
}

// set returns a copy of n with e in it; in two halves, if it does not fit into one.
func (t Tree[T]) set(n *node[T], e T) (left, right *node[T]) {
	if n.children != nil {
		return t.setBelow(n, e)
	}
	elements := n.elements
	i, found := t.search(n, t.key(e))
	if found {
		elements = slices.Clone(elements)
		elements[i] = e
		return t.leaf(elements), nil
	}
	elements = with(elements, i, e)
	if len(elements) <= maxSlots {
		return t.leaf(elements), nil
	}
	return t.leaf(slices.Clone(elements[:maxSlots/2])), t.leaf(slices.Clone(elements[maxSlots/2:]))
}

func (t Tree[T]) setBelow(n *node[T], e T) (left, right *node[T]) {
	i := n.childFor(t.key(e))
	child, second := t.set(n.children[i], e)
	if second == nil {
		children := slices.Clone(n.children)
		children[i] = child
		return branch(children), nil
	}
	children := with(n.children, i+1, second)
	children[i] = child
	if len(children) <= maxSlots {
		return branch(children), nil
	}
	return branch(slices.Clone(children[:maxSlots/2])), branch(slices.Clone(children[maxSlots/2:]))
}

// with and without return copies of s that differ in one element.
func with[E any](s []E, i int, e E) []E {
	copied := append(make([]E, 0, len(s)+1), s[:i]...)
	copied = append(copied, e)
	return append(copied, s[i:]...)
}

func without[E any](s []E, i int) []E {
	copied := append(make([]E, 0, len(s)-1), s[:i]...)
	return append(copied, s[i+1:]...)
}

// Delete returns the tree without the element at key, and that element, if there is one.
func (t Tree[T]) Delete(key string) (without Tree[T], deleted T, ok bool) {
	if deleted, ok = t.Get(key); !ok {
		return t, deleted, false
	}
	root := t.delete(t.root, key)
	for root != nil && len(root.children) == 1 {
		root = root.children[0]
	}
	return Tree[T]{t.key, root, t.length - 1}, deleted, true
}

// delete returns a copy of n without the element at key, which is there; nil if nothing is left.
func (t Tree[T]) delete(n *node[T], key string) *node[T] {
	if n.children != nil {
		return t.deleteBelow(n, key)
	}
	if len(n.elements) == 1 {
		return nil
	}
	i, _ := t.search(n, key)
	return t.leaf(without(n.elements, i))
}

func (t Tree[T]) deleteBelow(n *node[T], key string) *node[T] {
	i := n.childFor(key)
	child := t.delete(n.children[i], key)
	switch {
	case child == nil && len(n.children) == 1:
		return nil
	case child == nil:
		return branch(without(n.children, i))
	}
	children := slices.Clone(n.children)
	children[i] = child
	for _, at := range [2]int{i - 1, i} { // with the neighbour before it, or with the one after
		if at < 0 || at+1 >= len(children) {
			continue
		}
		if joined := t.join(children[at], children[at+1]); joined != nil {
			children[at] = joined
			return branch(without(children, at+1))
		}
	}
	return branch(children)
}

// join returns what two neighbours hold in one node, if that leaves half of it free: otherwise it would soon be split
// again. They are at the same level, so both are leaves or neither is.
func (t Tree[T]) join(a, b *node[T]) *node[T] {
	if len(a.elements)+len(b.elements)+len(a.children)+len(b.children) > maxSlots/2 {
		return nil
	}
	if a.children != nil {
		return branch(slices.Concat(a.children, b.children))
	}
	return t.leaf(slices.Concat(a.elements, b.elements))
}
