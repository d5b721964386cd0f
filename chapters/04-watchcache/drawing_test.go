package watchcache

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"listwatch/internal/check/chapterdrawing"
	"listwatch/internal/check/require"
)

// node is a node of the library's tree, which has no way to look inside.
type node struct {
	address  uintptr
	elements int
	children []node
}

func nodeOf(n reflect.Value) node {
	found := node{address: n.Pointer(), elements: n.Elem().FieldByName("items").Len()}
	children := n.Elem().FieldByName("children")
	for i := range children.Len() {
		found.children = append(found.children, nodeOf(children.Index(i)))
	}
	return found
}

func rootOf(s btreeStore) node { return nodeOf(reflect.ValueOf(s.tree).Elem().FieldByName("root")) }

// copied returns the position of the one child that a change has copied.
func copied(t *testing.T, before, after node) int {
	require.Equal(t, len(before.children), len(after.children), "another number of children")
	at := -1
	for i, child := range after.children {
		if child.address != before.children[i].address {
			require.Equal(t, -1, at, "two children are copied")
			at = i
		}
	}
	return at
}

// The drawing of path copying: a clone of a tree of 2,000 pods, and the tree after one more write, node by node.
func TestTheDrawingOfPathCopyingIsOfThisTree(t *testing.T) {
	tree := newBtreeStore()
	for i := range 2000 {
		tree.tree.ReplaceOrInsert(&Element{Key: fmt.Sprintf("default/p%04d", i)})
	}
	before := tree.clone()
	tree.tree.ReplaceOrInsert(&Element{Key: "default/p0800"})
	oldRoot, newRoot := rootOf(before), rootOf(tree)
	at := copied(t, oldRoot, newRoot)
	oldBranch, newBranch := oldRoot.children[at], newRoot.children[at]
	leafAt := copied(t, oldBranch, newBranch)
	leaf := newBranch.children[leafAt]
	require.Equal(t, 0, len(leaf.children), "the tree has more than three levels")
	nodes := map[uintptr]bool{}
	count(oldRoot, nodes)
	all := len(nodes)
	count(newRoot, nodes)

	d := chapterdrawing.New("path-copying.svg", 380)
	d.Text(16, 24, "bold", "before")
	d.Text(624, 24, "end bold", "after a write of default/p0800")
	across := func(n, i int) int { return 20 + (i*2+1)*450/(n*2) } // the middle of box i of n
	branchX := across(len(oldRoot.children), at)
	d.In("kept", func() {
		d.Box(190, 38, 110, 34, "wall")
		for i := range oldRoot.children {
			x := across(len(oldRoot.children), i)
			d.Path("way", "M245 72L%d 128", x)
			d.Box(x-18, 128, 36, 30, "wall")
		}
		for i := range oldBranch.children {
			class := "wall"
			if i == leafAt {
				class = "fill"
			}
			d.Box(across(len(oldBranch.children), i)-5, 226, 10, 36, class)
		}
		d.Path("way", "M%d 158L20 218M%d 158L470 218M20 218H470", branchX, branchX)
	})
	d.In("acts", func() {
		d.Box(505, 38, 110, 34, "wall")
		d.Box(542, 128, 36, 30, "wall")
		d.Box(555, 226, 10, 36, "fill")
		d.Path("wall", "M560 72V128M560 158V226")
	})
	for i := range oldRoot.children {
		if i != at {
			d.Path("way later", "M545 72L%d 128", across(len(oldRoot.children), i)+4)
		}
	}
	d.Path("way later", "M542 158L500 200V282H%d", across(len(oldBranch.children), 0))
	for i := range oldBranch.children {
		if i != leafAt {
			d.Path("way", "M%d 282V268", across(len(oldBranch.children), i))
		}
	}
	d.Text(245, 60, "mid", "root")
	d.Text(560, 60, "mid", "new root")
	d.Text(583, 148, "", "branch")
	d.Text(574, 250, "", "leaf")
	x := across(len(oldBranch.children), leafAt)
	d.Arrow("way", "M%d 300V268", x)
	d.Text(x, 318, "mid", "the old leaf")
	d.Text(470, 318, "end soft", "the %d leaves of one branch", len(oldBranch.children))
	d.Text(16, 346, "", "%d pods in %d nodes: a root, %d branches, %d leaves. The old leaf has %d pods.",
		before.tree.Len(), all, len(oldRoot.children), all-1-len(oldRoot.children), leaf.elements)
	d.Text(16, 368, "", "The write copies the %d green nodes. It shares %d: the thin lines lead to them.",
		len(nodes)-all, 2*all-len(nodes))
	d.Check(t)
}

func count(n node, seen map[uintptr]bool) {
	seen[n.address] = true
	for _, child := range n.children {
		count(child, seen)
	}
}

// The drawing of who may resume, for six capacities: it shows the answer for each version.
func TestTheDrawingOfWhoMayResumeIsOfThisRing(t *testing.T) {
	d := chapterdrawing.New("who-may-resume.svg", 252)
	for capacity := 1; capacity <= 6; capacity++ {
		d.Pose("slots of the ring", capacity, 4, func() { drawRing(t, d, capacity) })
	}
	d.Check(t)
}

func drawRing(t *testing.T, d *chapterdrawing.Drawing, capacity int) {
	f := newFixture(t, capacity)
	f.list(3)
	events := []uint64{4, 9, 12, 13, 15}
	for _, rv := range events {
		f.update("default/x", rv)
	}
	oldest := f.Snapshot().OldestRV

	at := func(rv uint64) int { return 30 + int(rv-2)*41 }
	d.Text(16, 22, "", "A ring of %d, after the cache’s list at 3 and %d changes of pods", f.Snapshot().Capacity,
		len(events))
	d.Arrow("way", "M12 114H630")
	refused, dropped := uint64(0), uint64(0)
	for rv := uint64(2); rv <= 16; rv++ {
		x := at(rv)
		d.Text(x, 146, "mid", "%d", rv)
		switch {
		case !slices.Contains(events, rv):
			d.Path("way", "M%d 108v12", x)
		case rv < oldest:
			d.Box(x-16, 100, 32, 28, "wall later")
			dropped = rv
		default:
			d.In("kept", func() { d.Box(x-16, 100, 32, 28, "wall"); d.Box(x-13, 103, 26, 22, "fill") })
		}
		interval, err := f.since(rv)
		if apierrors.IsResourceExpired(err) {
			d.Text(x, 204, "mid", "410")
			refused = rv
			continue
		}
		f.must(err)
		replayed := f.events(interval)
		d.In("acts", func() { d.Path("wall", "M%d 188h30", x-15) })
		d.Text(x, 204, "mid bold", "%d", len(replayed))
	}
	d.Text(at(oldest), 96, "mid", "oldest")
	if dropped > 0 {
		d.Text(at(dropped)+14, 96, "end soft", "dropped")
	}
	if dropped > 0 && dropped+1 < oldest {
		from, to := at(dropped)+21, at(oldest)-21
		d.Path("way", "M%d 78v-6H%dv6", from, to)
		d.Text((from+to)/2, 46, "mid soft", "pods, or other resources?")
		d.Text((from+to)/2, 64, "mid soft", "The ring no longer knows.")
	}
	d.Text(16, 176, "soft", "how many events a watch from this version is sent, or 410:")
	d.Text(16, 238, "", "From %d or older: 410. From %d or newer: all events that came after.", refused, refused+1)
}

// The drawing of a reader that is overtaken: three looks at one ring and one interval.
func TestTheDrawingOfTheOvertakenReaderIsOfThisRing(t *testing.T) {
	f := newFixture(t, 150)
	f.list(1)
	f.fill(2, 152)
	interval, err := f.since(1)
	f.must(err)
	reader := interval.source.(*historySource)

	d := chapterdrawing.New("overtaken.svg", 336)
	d.Text(16, 22, "soft", "A ring of %d events. The reader holds no lock.", f.Snapshot().Capacity)
	at := func(position int) int { return 24 + position*9/4 }
	frame := func(y int, says string, args ...any) {
		d.Text(16, y, "", says, args...)
		d.Path("way", "M24 %dH624", y+58)
		from, to := f.history.startIndex, f.history.endIndex
		d.In("kept", func() { d.Box(at(from), y+38, at(to)-at(from), 20, "fill") })
		next := at(reader.startIndex)
		if reader.startIndex < from {
			d.Path("cross", "M%d %dl10 10m0 -10l-10 10", at(from)-13, y+43)
		}
		d.Text(at(from)+4, y+75, "soft", "startIndex %d", from)
		d.Text(at(to), y+75, "end soft", "endIndex %d", to)
		d.In("acts", func() { d.Path("fill", "M%d %dl-6 -11h12z", next, y+37) })
		d.Text(next+12, y+31, "soft", "the reader’s next: %d", reader.startIndex)
	}
	require.Value(interval.Next())(t)
	frame(52, "1  The reader has copied %d events.", len(interval.buffer))
	before := f.history.endIndex
	f.fill(152, 252)
	frame(152, "2  The writer appends %d: the reader’s next is the oldest event.", f.history.endIndex-before)
	f.fill(252, 253)
	frame(252, "3  One more: that event is gone (×), and the watch ends without an error.")
	_, err = reader.fill(make([]*Event, 0, intervalBufferSize))
	require.True(t, errors.Is(err, ErrIntervalOvertaken), "got %v, want %v", err, ErrIntervalOvertaken)
	d.Check(t)
}
