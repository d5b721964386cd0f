package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/observe/probe"
)

// spacetime is the content of the space-time view; viz/spacetime_test.go tests how the view is computed.
type spacetime struct {
	View      string
	Cursor    uint64
	Records   []uint64 // one per column
	Lines     []string
	Back, Odd int // backward arrows; arrows with the wrong look
}

const readSpacetime = `(() => {
	const root = $("#spacetime"), d = root.dataset;
	const arrows = [...root.querySelectorAll(".arrows .arrow")];
	const back = arrows.filter((el) => Number(el.dataset.taken) < Number(el.dataset.sent));
	return {
		View: root.hasAttribute("hidden") ? "" : document.body.dataset.view, Cursor: Number(d.cursor ?? 0),
		Records: [...root.querySelectorAll(".marks g")].map((el) => Number(el.dataset.seq)),
		Lines: [...root.querySelectorAll(".names text")].map((el) => el.textContent), Back: back.length,
		Odd: arrows.filter((el) => el.classList.contains("back") !== back.includes(el)).length,
	};
})()`

// spaceTimeAt waits until the page shows the space-time view for a cursor, and returns the view.
func (p *page) spaceTimeAt(t *testing.T, cursor uint64) (s spacetime) {
	t.Helper()
	program.Eventually(t, patience, func() (bool, string) {
		s = evaluate[spacetime](t, p, readSpacetime)
		return s.View == "space-time" && s.Cursor == cursor, fmt.Sprintf("the view %q is at %d, want %d", s.View,
			s.Cursor, cursor)
	})
	return s
}

// hasty is a recording with receipts before their sends, and with more goroutines than the view has lines.
func hasty() (r reel) {
	r.add(probe.WatchChanOpened, "etcd3-1", 9)
	for i := range 30 {
		r.add(probe.WatcherAdded, fmt.Sprint("w", i), 9, 10)
	}
	for i := range 30 {
		r.add(probe.ResultReceived, fmt.Sprint("w", i), 9, 0, 10)
		r.add(probe.ResultSent, fmt.Sprint("w", i), 9, 0, 10)
	}
	r.add(probe.Etcd3IncomingReceived, "etcd3-1", 9, 0, 100)
	r.add(probe.Etcd3IncomingSent, "etcd3-1", 9, 0, 100)
	r.add(probe.TxnCommitted, "", 9)
	r.add(probe.WireOpened, "w1", 9)
	r[len(r)-1].Texts = probe.TextsOf(probe.WireOpened, "listwatch-scheduler/1")
	r.add(probe.FrameWritten, "w1", 9)
	r.add(probe.FrameDecoded, "scheduler-informer", 9)
	return r
}

// TestTheSpaceTimeViewHasRoomForSomeLines replays hasty. The view must have 80 columns, 30 lines and backward arrows.
func TestTheSpaceTimeViewHasRoomForSomeLines(t *testing.T) {
	t.Parallel()
	records := hasty()
	p := openPage(t, startViz(t, "-replay", writeRecording(t, records)).URL)
	p.until(t, "window.listwatch?.player.head === %d", len(records))
	p.strike(t, "v")
	p.seek(t, len(records))
	s := p.spaceTimeAt(t, uint64(len(records)))
	assert.True(t, len(s.Records) == 80 && s.Back > 20 && s.Odd == 0, "%+v", s)
	assert.True(t, slices.Equal(s.Lines[:3], []string{"etcd", "etcd3", "w16 watcher"}) &&
		len(s.Lines) == 30 && strings.HasSuffix(s.Lines[29], " more"), "lines: %q", s.Lines)
	p.run(t, `listwatch.stage.setResource("nodes")`)
	p.until(t, `$("#spacetime").matches(".blank") &&
		$("#spacetime .about").textContent === "no record of this resource is here"`)
}

// TestTheViewsTakeTurns switches views by key and by button, and clicks a record's mark to go to the record.
func TestTheViewsTakeTurns(t *testing.T) {
	t.Parallel()
	v, p := still(t)
	view := func(want string) {
		t.Helper()
		p.until(t, `document.body.dataset.view === %q && $("#view").textContent === "View: %s" &&
			$("#spacetime").hasAttribute("hidden") === %t`, want, want, want != "space-time")
	}
	view("loop")
	p.strike(t, "k")
	p.pick(t, "#view")
	view("space-time")
	v.createPod(t, "turn")
	p.until(t, `$$("#spacetime .transfer").length >= 8 &&
			$$("#spacetime .passage title")
			.some((el) => el.textContent.includes("default/turn by hand, through nextCh"))`)
	way := []string{"http", "etcd", "etcd3", "ring", "store", "incoming", "dispatchEvents", "w1 processInterval",
		"w1 WatchServer", "informer receive", "informer reflector", "informer fifo", "observer pop", "observer run"}
	lines := slices.DeleteFunc(evaluate[spacetime](t, p, readSpacetime).Lines, func(line string) bool {
		return !slices.Contains(way, line)
	})
	assert.True(t, slices.Equal(lines, way), "from top to bottom %q, want %q", lines, way)
	p.strike(t, " ")
	p.until(t, `document.body.dataset.mode === "frozen"`)
	seq := evaluate[uint64](t, p, `(() => {
		const marks = $$("#spacetime .marks g");
		const mark = marks[Math.floor(marks.length / 2)];
		mark.querySelector(".target").dispatchEvent(new MouseEvent("click", { bubbles: true }));
		return Number(mark.dataset.seq);
	})()`)
	s := p.spaceTimeAt(t, seq)
	m := p.moment(t)
	assert.True(t, m.Seq == seq, "a click on record %d goes to %d", seq, m.Seq)
	assert.Equal(t, seq, s.Records[len(s.Records)-1], "the last column")
	p.strike(t, "v")
	view("loop")
}
