package e2e

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/takes"
)

// shown is a page that replays a recording of the repository, whose every moment is known here, too.
type shown struct {
	*page
	before  *fold.State
	records []probe.Record // records[i] has the number before.Seq+1+i
}

// TestEveryControlOfTimeGoesWhereItSays presses what there is to move through a log: each goes to the record that a
// look at the recording says is the next.
func TestEveryControlOfTimeGoesWhereItSays(t *testing.T) {
	t.Parallel()
	take, _ := takes.Find("slow")
	before, records, err := take.Load()
	require.NoError(t, err)
	v := startViz(t, "-replay", "../../../observe/takes/slow"+takes.Suffix)
	s := &shown{page: openPage(t, v.URL), before: before, records: records}
	p := s.page
	p.until(t, `document.body.dataset.mode === "replay" && window.listwatch?.player.head === %d &&
		listwatch.state.seq > %d &&
		listwatch.state.seq < %[1]d`, s.last(), before.Seq) // it plays
	p.run(t, `await listwatch.player.tape.load(%d, %d)`, before.Seq+1, s.last()+1)
	t.Run("record by record", s.stepsByRecord)
	t.Run("hop by hop", s.stepsByHop)
	t.Run("from anomaly to anomaly", s.stepsByAnomaly)
	t.Run("the timeline is scrubbed", s.scrubs)
	t.Run("speed", s.keepsItsPace)
}

func (s *shown) last() uint64 { return s.records[len(s.records)-1].Seq }

// next returns the number of the first record after a cursor, or the last one before it, that match accepts; 0: none.
func (s *shown) next(cursor uint64, direction int, match func(r *probe.Record) bool) uint64 {
	for i := int(cursor-s.before.Seq) - 1 + direction; i >= 0 && i < len(s.records); i += direction {
		if match(&s.records[i]) {
			return s.records[i].Seq
		}
	}
	return 0
}

// stands waits until the page shows the picture at a cursor.
func (s *shown) stands(t *testing.T, what string, cursor uint64) {
	t.Helper()
	require.True(t, cursor != 0, "%s: there is no such record in the recording", what)
	state := s.before.Clone()
	state.Apply(s.records[:cursor-s.before.Seq])
	program.Eventually(t, patience, func() (bool, string) {
		m := s.moment(t)
		return m.Seq == cursor && m.Hash == hashOf(t, state), fmt.Sprintf("%s: %+v, want %d", what, m, cursor)
	})
}

// at goes somewhere without any control.
func (s *shown) at(t *testing.T, cursor uint64) uint64 {
	t.Helper()
	s.seek(t, int(cursor))
	return cursor
}

func (s *shown) middle() uint64 { return s.before.Seq + uint64(len(s.records)/2) }

func (s *shown) stepsByRecord(t *testing.T) {
	cursor := s.at(t, s.middle())
	for _, step := range []struct {
		what string
		by   int
		act  func()
	}{
		{"the button on", 1, func() { s.click(t, "#step-on") }},
		{"the button back", -1, func() { s.click(t, "#step-back") }},
		{"the button back", -1, func() { s.click(t, "#step-back") }},
		{"the key on", 1, func() { s.strike(t, ".") }},
		{"the key back", -1, func() { s.strike(t, ",") }},
	} {
		step.act()
		cursor = uint64(int(cursor) + step.by)
		s.stands(t, step.what, cursor)
	}
	s.strike(t, "Home")
	s.stands(t, "Home", s.before.Seq)
	s.strike(t, ",")
	s.stands(t, "before the first", s.before.Seq)
	s.strike(t, "End")
	s.stands(t, "End", s.last())
	s.strike(t, ".")
	s.stands(t, "after the last", s.last())
}

func (s *shown) stepsByHop(t *testing.T) {
	const key = "default/a"
	cursor := s.at(t, s.middle())
	s.strike(t, "f")
	s.is(t, key, "following", "listwatch.follow.key")
	hop := func(r *probe.Record) bool {
		return r.Resource == "pods" && r.Key != "" && probe.ObjectKey(r.Key) == key
	}
	for _, direction := range []int{1, 1, 1, 1, 1, 1, -1, -1, 1} {
		cursor = s.next(cursor, direction, hop)
		s.strike(t, map[int]string{1: ">", -1: "<"}[direction])
		s.stands(t, fmt.Sprint("hop ", direction), cursor)
	}
	s.strike(t, "f")
	s.is(t, "false", "it is followed still", "listwatch.follow.has()")
}

func (s *shown) stepsByAnomaly(t *testing.T) {
	anomaly := (*probe.Record).Anomaly
	cursor, n := s.at(t, s.before.Seq), 0
	for next := s.next(cursor, 1, anomaly); next != 0; next = s.next(cursor, 1, anomaly) {
		cursor = next
		s.strike(t, "n")
		s.stands(t, "the next anomaly", cursor)
		n++
	}
	require.True(t, n >= 2, "%d anomalies in the recording: that proves nothing", n)
	s.strike(t, "n")
	s.becomes(t, fmt.Sprint("no other anomaly at ", cursor), `$text("#notice") + " at " + listwatch.state.seq`)
	cursor = s.next(cursor, -1, anomaly)
	s.click(t, "#prev-anomaly")
	s.stands(t, "the anomaly before", cursor)
	s.click(t, "#next-anomaly")
	s.stands(t, "the anomaly after", s.next(cursor, 1, anomaly))
}

// bucket is the width of a bar, as viz.bucketWidth.
const bucket = 500 * time.Millisecond

// axis is where time runs on the timeline when the whole log is shown.
type axis struct {
	Left, Top, Width, Height float64
	from, to                 time.Duration
}

func (s *shown) axis(t *testing.T) axis {
	t.Helper()
	s.run(t, choose("#span", "all"))
	a := evaluate[axis](t, s.page, `(({ left, top, width, height }) => ({ Left: left, Top: top, Width: width,
		Height: height }))(
		$("#timeline").getBoundingClientRect())`)
	a.from, a.to = s.records[0].Time.Truncate(bucket), s.records[len(s.records)-1].Time
	return a
}

func (a *axis) x(at time.Duration) float64 {
	return math.Round(a.Left + float64(at-a.from)/float64(a.to-a.from)*a.Width)
}

func (a *axis) time(x float64) time.Duration {
	return a.from + time.Duration((x-a.Left)/a.Width*float64(a.to-a.from))
}

// mouse presses at the first x, moves to the others, and lets go.
func (s *shown) mouse(t *testing.T, x, y float64, modifiers int64, to ...float64) {
	t.Helper()
	s.do(t, func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		send := func(kind input.DispatchMouseEventType, x float64) error {
			_, err := cdp.Call(ctx, target, input.DispatchMouseEvent, input.DispatchMouseEventParams{
				Type: kind, X: x, Y: y, Button: input.MouseButtonLeft, Buttons: 1, ClickCount: 1, Modifiers: modifiers,
			})
			return err
		}
		err := send(input.DispatchMouseEventTypeMousePressed, x)
		for _, next := range to {
			x = next
			if err == nil {
				err = send(input.DispatchMouseEventTypeMouseMoved, x)
			}
		}
		if err == nil {
			err = send(input.DispatchMouseEventTypeMouseReleased, x)
		}
		return chromedp.Void{}, err
	})
}

// reached returns the number of the last record at a time or before.
func (s *shown) reached(at time.Duration) uint64 {
	cursor := s.before.Seq
	for _, r := range s.records {
		if r.Time <= at {
			cursor = r.Seq
		}
	}
	return cursor
}

func (s *shown) scrubs(t *testing.T) {
	a := s.axis(t)
	y := a.Top + a.Height - 6 // below the flags
	for _, fraction := range []float64{0.7, 0.2, 0.55} {
		x := math.Round(a.Left + fraction*a.Width)
		s.mouse(t, x, y, 0)
		s.stands(t, fmt.Sprint("a click at ", fraction), s.reached(a.time(x)))
	}
	to := math.Round(a.Left + 0.4*a.Width)
	s.mouse(t, math.Round(a.Left+0.9*a.Width), y, 0, math.Round(a.Left+0.6*a.Width), to)
	cursor := s.reached(a.time(to))
	s.stands(t, "dragged", cursor)
	s.becomes(t, fmt.Sprint(cursor), `$("#timeline").getAttribute("aria-valuenow")`)
	flag := s.records[slices.IndexFunc(s.records, func(r probe.Record) bool { return r.Point == probe.WatcherForced })]
	s.mouse(t, a.x(flag.Time), a.Top+8, 0) // pointing at a flag means it
	program.Eventually(t, patience, func() (bool, string) {
		m := s.moment(t)
		r := s.records[m.Seq-s.before.Seq-1]
		return r.Anomaly() && math.Abs(a.x(r.Time)-a.x(flag.Time)) <= 8, fmt.Sprintf("%+v: %s", m, r.Point)
	})
}

// keepsItsPace: what the pace does to the cursor is told in viz/plan_test.go.
func (s *shown) keepsItsPace(t *testing.T) {
	for value, want := range map[string]string{"-3": "0.001 1/1000×", "-1": "0.1 1/10×", "-0.3": "0.5012 1/2×",
		"1": "10 10×", "0": "1 1×"} {
		s.run(t, setSpeed(value))
		s.is(t, want, "speed at "+value, `Number(listwatch.player.speed.toPrecision(4)) + " " + $text("#speed-text")`)
	}
	s.run(t, setSpeed("0"))
	for _, key := range []string{"+", "+", "-"} {
		s.strike(t, key)
	}
	s.is(t, "0.3", "after + + - the slider stands at", `$("#speed").value`)
}

func setSpeed(exponent string) string {
	return fmt.Sprintf(`const el = $("#speed"); el.value = %q; el.dispatchEvent(new Event("input", { bubbles: true }))`,
		exponent)
}

// TestLiveCanBeSlowedDown: what is live has the program's pace. Slowed down it becomes a replay from where it is, that
// goes on as records come; to be live again is to be at the end.
func TestLiveCanBeSlowedDown(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-demo=false", "-controllers=false")
	p := openPage(t, v.URL)
	v.busy(t, 100)
	p.sameAsServer(t, v)
	p.run(t, setSpeed("-2"))
	slow := p.moment(t)
	v.busy(t, 300)
	program.Eventually(t, patience, func() (bool, string) {
		m := p.moment(t)
		return m.Mode == "replay" && m.Seq > slow.Seq && m.Seq < m.Head, fmt.Sprintf("%+v, slowed down at %+v", m, slow)
	})
	p.strike(t, "End")
	p.sameAsServer(t, v)
	p.is(t, "1×", "live again at", `$("#speed-text").textContent`)
}
