package watchcache

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// fault returns what is wrong with a tree that should hold want, "" if nothing is.
func fault(t tree, want map[string]*Element) string {
	if t.length != len(want) {
		return fmt.Sprintf("length %d, want %d", t.length, len(want))
	}
	for key, e := range want {
		if got := t.get(key); got != e {
			return fmt.Sprintf("%s is not what was set", key)
		}
	}
	keys := slices.Sorted(maps.Keys(want))
	for _, from := range []string{"", "5", "50", "999"} {
		var got []string
		for e := range t.from("", from) {
			got = append(got, e.Key)
		}
		at, _ := slices.BinarySearch(keys, from)
		if !slices.Equal(got, keys[at:]) {
			return fmt.Sprintf("from %q: got %v, want %v", from, got, keys[at:])
		}
	}
	return shapeFault(t.root, t.root)
}

// shapeFault returns what is wrong with the nodes.
func shapeFault(n, root *node) string {
	switch {
	case n == nil:
		return ""
	case len(n.elements) > maxSlots || len(n.children) > maxSlots:
		return "a node is too large"
	case len(n.elements)+len(n.children) == 0:
		return "a node is empty"
	case n == root && len(n.children) == 1:
		return "the root has one child"
	case n.children == nil && n.least != n.elements[0].Key, n.children != nil && n.least != n.children[0].least:
		return "a node does not know its least key"
	}
	for _, child := range n.children {
		if (child.children == nil) != (n.children[0].children == nil) {
			return "leaves at different levels"
		}
		if text := shapeFault(child, root); text != "" {
			return text
		}
	}
	return ""
}

// Whatever is set and deleted, the tree holds what a map would, in order; and every tree that was kept on the way still
// holds what it did when it was kept.
func TestATreeIsAMapInOrderAndKeepsItsPast(t *testing.T) {
	type kept struct {
		tree tree
		want map[string]*Element
	}
	rapid.Check(t, func(r *rapid.T) {
		now := tree{}
		want := map[string]*Element{}
		var past []kept
		bound := rapid.SampledFrom([]int{10, 200, 4000}).Draw(r, "keys")
		atOnce := rapid.Bool().Draw(r, "at once")
		var before []*Element
		for i := range rapid.SampledFrom([]int{0, bound / 2, bound}).Draw(r, "there before") {
			e := &Element{Key: fmt.Sprint(i)}
			before = append(before, e)
			want[e.Key] = e
			if !atOnce {
				now, _ = now.set(e)
			}
		}
		if atOnce {
			now = newTree(before)
		}
		for range rapid.IntRange(1, 6).Draw(r, "phases") {
			deleting := rapid.IntRange(0, 10).Draw(r, "deletions of ten")
			numbers := rapid.SliceOfN(rapid.IntRange(0, bound), 0, 600).Draw(r, "numbers")
			for i, number := range numbers {
				key := fmt.Sprint(number)
				var old *Element
				if i%10 < deleting {
					now, old = now.delete(key)
				} else {
					e := &Element{Key: key}
					now, old = now.set(e)
					require.Equal(r, old, want[key], "set %s: another element was there", key)
					want[key] = e
					continue
				}
				require.Equal(r, old, want[key], "delete %s: another element was there", key)
				delete(want, key)
			}
			past = append(past, kept{now, maps.Clone(want)})
		}
		for i, k := range past {
			require.Equal(r, fault(k.tree, k.want), "", "after phase %d", i)
		}
	})
}

func TestATreeThatIsMadeAtOnceIsFullAndTakesTheLastOfEachKey(t *testing.T) {
	for _, n := range []int{0, 1, maxSlots, maxSlots + 1, maxSlots * maxSlots, maxSlots*maxSlots + 1, 10000} {
		want := map[string]*Element{}
		var elements []*Element
		for i := range n + n/3 { // a third of them comes twice
			e := &Element{Key: fmt.Sprintf("%05d", i*7919%max(n, 1))}
			elements = append(elements, e)
			want[e.Key] = e
		}
		made := newTree(elements)
		assert.Equal(t, fault(made, want), "", "%d elements", n)
		levels, room := 0, 1
		for m := made.root; m != nil && len(m.children) > 0; m = m.children[0] {
			levels++
		}
		for range levels {
			room *= maxSlots
		}
		assert.False(t, levels > 0 && room >= n, "%d elements in more than %d levels", n, levels)
	}
}

// A tree that loses most of its elements loses most of its nodes: what is left of them is joined.
func TestATreeThatShrinksGivesItsNodesBack(t *testing.T) {
	shrunk := tree{}
	for i := range 10000 {
		shrunk, _ = shrunk.set(&Element{Key: fmt.Sprintf("%05d", i)})
	}
	for i := range 10000 {
		if i%100 != 0 {
			shrunk, _ = shrunk.delete(fmt.Sprintf("%05d", i))
		}
	}
	leaves := 0
	for n := []*node{shrunk.root}; len(n) > 0; {
		if n[0].children == nil {
			leaves++
		}
		n = append(n[1:], n[0].children...)
	}
	assert.True(t, leaves <= 100*4/maxSlots+1, "100 elements in %d leaves", leaves)
}

func TestAChangeCopiesOneNodeOfEachLevelInTwoAllocationsEach(t *testing.T) {
	big := tree{}
	for i := range 10000 {
		big, _ = big.set(&Element{Key: fmt.Sprintf("%05d", i)})
	}
	levels := 1
	for n := big.root; n.children != nil; n = n.children[0] {
		levels++
	}
	e := &Element{Key: "05000"}
	allocs := testing.AllocsPerRun(100, func() { big.set(e) })
	assert.True(t, int(allocs) == 2*levels && levels <= 4, "%v allocations in a tree of %d levels", allocs, levels)
}
