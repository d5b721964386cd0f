package e2e

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/recording"
	"listwatch/internal/observe/takes"
)

// shown is a page that replays one of the repository's recordings, with the recording's records.
type shown struct {
	*page
	before  uint64         // the number of the record before the first
	records []probe.Record // records[i] has the number before+1+i
}

// TestEveryControlOfTimeGoesWhereItSays expects that each control goes to the nearest record of its kind.
func TestEveryControlOfTimeGoesWhereItSays(t *testing.T) {
	t.Parallel()
	take, _ := takes.Find("slow")
	before, records, err := take.Load()
	require.NoError(t, err)
	v := startViz(t, "-replay", "../../../observe/takes/slow"+takes.Suffix)
	s := &shown{page: openPage(t, v.URL), before: before.Seq, records: records}
	p := s.page
	p.until(t, `document.body.dataset.mode === "replay" && window.listwatch?.player.head === %d &&
		listwatch.state.seq > %d &&
		listwatch.state.seq < %[1]d`, s.last(), before.Seq) // the replay has begun and has not ended
	p.run(t, `await listwatch.player.tape.load(%d, %d)`, before.Seq+1, s.last()+1)
	link := evaluate[string](t, p, `($("#link").click(), location.hash)`)
	assert.True(t, strings.Contains(link, "recording="+recording.Hash(take.File())), "its link: %s", link)
	t.Run("record by record", s.stepsByRecord)
	t.Run("hop by hop", s.stepsByHop)
	t.Run("from anomaly to anomaly", s.stepsByAnomaly)
	t.Run("the timeline is scrubbed", s.scrubs)
	t.Run("speed", s.keepsItsPace)
}

func (s *shown) last() uint64 { return s.records[len(s.records)-1].Seq }

// next returns the number of the nearest record that match accepts after cursor (direction 1) or before it (-1), or 0.
func (s *shown) next(cursor uint64, direction int, match func(r *probe.Record) bool) uint64 {
	for i := int(cursor-s.before) - 1 + direction; i >= 0 && i < len(s.records); i += direction {
		if match(&s.records[i]) {
			return s.records[i].Seq
		}
	}
	return 0
}

// stands waits until the page shows the moment at a cursor.
func (s *shown) stands(t *testing.T, what string, cursor uint64) {
	t.Helper()
	require.True(t, cursor != 0, "%s: there is no such record in the recording", what)
	s.page.stands(t, fmt.Sprintf("%s, want %d", what, cursor), func(m moment) bool { return m.Seq == cursor })
}

func (s *shown) middle() uint64 { return s.before + uint64(len(s.records)/2) }

func (s *shown) stepsByRecord(t *testing.T) {
	cursor := s.middle()
	s.seek(t, int(cursor))
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
	s.stands(t, "Home", s.before)
	s.strike(t, ",")
	s.stands(t, "before the first", s.before)
	s.strike(t, "End")
	s.stands(t, "End", s.last())
	s.strike(t, ".")
	s.stands(t, "after the last", s.last())
}

func (s *shown) stepsByHop(t *testing.T) {
	const key = "default/a"
	cursor := s.middle()
	s.seek(t, int(cursor))
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
	cursor, n := s.before, 0
	s.seek(t, int(cursor))
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

// bucket is the time that a bar of the timeline covers: timeline.bucketWidth.
const bucket = 500 * time.Millisecond

// axis is the timeline's rectangle, and the times at its ends when it shows the whole log.
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

func (a *axis) time(x float64) time.Duration {
	return a.from + time.Duration((x-a.Left)/a.Width*float64(a.to-a.from))
}

// mouse presses the button at x and y, moves to each x in to, and releases the button.
func (p *page) mouse(t *testing.T, x, y float64, to ...float64) {
	t.Helper()
	send := func(kind input.DispatchMouseEventType) {
		p.do(t, tells(input.DispatchMouseEvent, input.DispatchMouseEventParams{
			Type: kind, X: x, Y: y, Button: input.MouseButtonLeft, Buttons: 1, ClickCount: 1}))
	}
	send(input.DispatchMouseEventTypeMousePressed)
	for _, x = range to {
		send(input.DispatchMouseEventTypeMouseMoved)
	}
	send(input.DispatchMouseEventTypeMouseReleased)
}

// reached returns the number of the last record at or before a time.
func (s *shown) reached(at time.Duration) uint64 {
	cursor := s.before
	for _, r := range s.records {
		if r.Time <= at {
			cursor = r.Seq
		}
	}
	return cursor
}

func (s *shown) scrubs(t *testing.T) {
	a := s.axis(t)
	y := a.Top + a.Height/2
	for _, fraction := range []float64{0.7, 0.2, 0.55} {
		x := math.Round(a.Left + fraction*a.Width)
		s.mouse(t, x, y)
		s.stands(t, fmt.Sprint("a click at ", fraction), s.reached(a.time(x)))
	}
	to := math.Round(a.Left + 0.4*a.Width)
	s.mouse(t, math.Round(a.Left+0.9*a.Width), y, math.Round(a.Left+0.6*a.Width), to)
	cursor := s.reached(a.time(to))
	s.stands(t, "dragged", cursor)
	s.becomes(t, fmt.Sprint(cursor), `/record (\d+)/.exec($("#timeline input").getAttribute("aria-valuetext"))[1]`)
}

// keepsItsPace checks the slider's speeds and their texts. viz/plan_test.go tests how a speed moves the cursor.
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
