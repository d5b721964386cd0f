package watchcache

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"listwatch/internal/check/drawing"
	"listwatch/internal/check/require"
)

// The drawing of path copying: a tree of 10,000 pods and the one that a change makes of it, node by node.
func TestTheDrawingOfPathCopyingIsOfThisTree(t *testing.T) {
	var elements []*Element
	for i := range 10_000 {
		elements = append(elements, &Element{Key: fmt.Sprintf("default/p%04d", i)})
	}
	before := newTree(elements)
	after, _ := before.set(&Element{Key: "default/p4500"})
	oldRoot, newRoot := before.root, after.root
	at := slices.IndexFunc(newRoot.children, func(n *node) bool { return !slices.Contains(oldRoot.children, n) })
	oldBranch, newBranch := oldRoot.children[at], newRoot.children[at]
	leafAt := slices.IndexFunc(newBranch.children, func(n *node) bool {
		return !slices.Contains(oldBranch.children,
			n)
	})
	nodes := map[*node]bool{}
	count(before.root, nodes)
	all := len(nodes)
	count(after.root, nodes)

	d := drawing.New("path-copying.svg", 322)
	d.Text(16, 24, "bold", "before")
	d.Text(704, 24, "end bold", "after a write of default/p4500")
	across := func(n, i int) int { return 30 + (i*2+1)*520/(n*2) } // the middle of box i of n
	d.In("kept", func() {
		d.Box(235, 38, 110, 34, "wall")
		for i := range oldRoot.children {
			x := across(len(oldRoot.children), i)
			d.Path("way", "M290 72L%d 128", x)
			d.Box(x-20, 128, 40, 30, "wall")
		}
		for i := range oldBranch.children {
			d.Box(across(len(oldBranch.children), i)-6, 226, 12, 36, "wall")
		}
		x := across(len(oldRoot.children), at)
		d.Path("way", "M%d 158L%d 218M%d 158L%d 218M30 218H550", x, 40, x, 540)
	})
	d.In("acts", func() {
		d.Box(580, 38, 110, 34, "wall")
		d.Box(615, 128, 40, 30, "wall")
		d.Box(629, 226, 12, 36, "fill")
		d.Path("wall", "M635 72V128M635 158V226")
	})
	for i := range oldRoot.children {
		if i != at {
			d.Path("way later", "M620 72L%d 128", across(len(oldRoot.children), i)+4)
		}
	}
	d.Path("way later", "M615 158L550 214")
	d.Text(290, 60, "mid", "root")
	d.Text(635, 60, "mid bold", "root")
	d.Text(550, 284, "end soft", "%d of %d leaves, shared", len(newBranch.children)-1, len(newBranch.children))
	d.Text(648, 206, "bold", "copied")
	x := across(len(oldBranch.children), leafAt)
	d.Box(x-6, 226, 12, 36, "full")
	d.Arrow("way", "M%d 278V266", x)
	d.Text(x, 294, "mid soft", "the leaf of p4500, as it was")
	d.Text(635, 284, "mid soft", "%d pods", len(newBranch.children[leafAt].elements))
	d.Text(16, 314, "", "%d pods in %d nodes: the write copies %d, and shares %d.",
		before.length, all, len(nodes)-all, 2*all-len(nodes))
	d.Check(t)
}

func count(n *node, seen map[*node]bool) {
	seen[n] = true
	for _, child := range n.children {
		count(child, seen)
	}
}

// The drawing of who may resume: each version is asked for, and the answer is what is drawn.
func TestTheDrawingOfWhoMayResumeIsOfThisRing(t *testing.T) {
	f := newFixture(t, 4)
	f.list(3)
	events := []uint64{4, 9, 12, 13, 15}
	for _, rv := range events {
		f.update("default/x", rv)
	}
	oldest := f.Snapshot().OldestRV

	d := drawing.New("who-may-resume.svg", 286)
	at := func(rv uint64) int { return 36 + int(rv-2)*46 }
	d.Text(16, 26, "", "a ring of %d, after the cache's list at 3 and five changes of pods", f.Snapshot().Capacity)
	d.Arrow("way", "M16 110H706")
	refused := uint64(0)
	for rv := uint64(2); rv <= 16; rv++ {
		x := at(rv)
		d.Text(x, 136, "mid", "%d", rv)
		switch {
		case !slices.Contains(events, rv):
			d.Path("way", "M%d 104v12", x)
		case rv < oldest:
			d.Box(x-17, 96, 34, 28, "wall later")
		default:
			d.In("kept", func() { d.Box(x-17, 96, 34, 28, "wall"); d.Box(x-14, 99, 28, 22, "fill") })
		}
		interval, err := f.since(rv)
		if apierrors.IsResourceExpired(err) {
			d.Path("way", "M%d 156l12 12M%d 168l12 -12", x-6, x-6)
			d.Text(x, 188, "mid soft", "410")
			refused = rv
			continue
		}
		f.must(err)
		replayed := f.events(interval)
		d.In("acts", func() { d.Path("wall", "M%d 162l5 6l9 -12", x-7) })
		d.Text(x, 188, "mid bold", "%d", len(replayed))
	}
	d.Text(at(4), 84, "mid soft", "dropped")
	d.Text(at(oldest), 84, "mid", "oldest")
	d.Path("way", "M%d 66v-8H%dv8", at(events[0])+23, at(oldest)-23)
	d.Text(at(events[0])+23, 50, "soft", "pods, or other resources? The ring no longer knows.")
	d.Text(16, 218, "", "A watch from %d or older gets 410. A watch from %d or newer gets what it missed.",
		refused, refused+1)
	d.Text(16, 250, "soft", "A client's mark moves right with its events, and with bookmarks.")
	d.Text(16, 272, "soft", "The ring's oldest moves right when a pod is written while the ring is full.")
	d.Check(t)
}

// The drawing of a reader that is overtaken: three looks at one ring and one interval.
func TestTheDrawingOfTheOvertakenReaderIsOfThisRing(t *testing.T) {
	f := newFixture(t, 150)
	f.list(1)
	f.fill(2, 152)
	interval, err := f.since(1)
	f.must(err)
	reader := interval.source.(*historySource)

	d := drawing.New("overtaken.svg", 296)
	at := func(position int) int { return 40 + position*5/2 }
	frame := func(y int, says string, args ...any) {
		d.Text(16, y, "bold", says, args...)
		d.Path("way", "M40 %dH704", y+42)
		from, to := f.history.startIndex, f.history.endIndex
		d.In("kept", func() { d.Box(at(from), y+22, at(to)-at(from), 20, "fill") })
		if hole := at(from) - at(reader.startIndex); hole > 0 {
			d.Box(at(reader.startIndex), y+22, hole+1, 20, "full")
		}
		d.Text(at(from)+4, y+60, "soft", "startIndex %d", from)
		d.Text(at(to), y+60, "end soft", "endIndex %d", to)
		d.In("acts", func() { d.Path("fill", "M%d %dl-6 -11h12z", at(reader.startIndex), y+21) })
		d.Text(at(reader.startIndex)+10, y+17, "", "reader at %d", reader.startIndex)
	}
	if _, err := interval.Next(); err != nil {
		t.Fatal(err)
	}
	frame(24, "1")
	d.Text(704, 24, "end", "It copied %d events, and holds no lock.", len(interval.buffer))
	f.fill(152, 252)
	frame(124, "2")
	d.Text(704, 112, "end", "The writer has appended 100: just in time.")
	f.fill(252, 253)
	frame(224, "3")
	_, err = reader.fill(make([]*Event, 0, intervalBufferSize))
	require.True(t, errors.Is(err, ErrIntervalOvertaken), "got %v, want %v", err, ErrIntervalOvertaken)
	d.Text(704, 212, "end", "One more: the reader's next event is gone, so its watch ends.")
	d.Check(t)
}
