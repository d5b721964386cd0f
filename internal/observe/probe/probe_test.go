package probe

import (
	"flag"
	"go/format"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

func TestNilProbeIsOff(t *testing.T) {
	var p *Probe
	p.At(RingAppend, "default/a", 1)
	p.Event(RingAppend, "ADDED", "default/a", 1)
	p.Text(WatchChanError, "boom", "", 0)
	assert.Equal(t, nil, p.Subject("w1").Resource("pods"), "derived from nil")
	assert.Equal(t, nil, New(nil), "New(nil)")
	assert.Equal(t, nil, Of("no probe in here"), "Of")
}

func TestRecordsCarryWhatWasReported(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Unix(1000, 0))
	log := NewLog(clk, 8)
	p := New(log).Resource("pods").Subject("w1")
	clk.Step(3 * time.Second)
	p.Event(InputSent, "ADDED", "/registry/pods/default/a", 7, 1, 10)

	records, ok := log.Since(nil, 0, 10)
	want := Record{Seq: 1, Time: 3 * time.Second, Point: InputSent, Resource: "pods", Subject: "w1", Type: "ADDED",
		Key: "/registry/pods/default/a", RV: 7, Args: [4]int{1, 10}}
	require.True(t, ok && len(records) == 1 && records[0] == want, "got %+v, %v, want %+v", records, ok, want)
	assert.Equal(t, "ADDED default/a at 7 enters the input of w1.", records[0].Sentence(), "sentence")
}

func TestLogSaysWhenItHasMovedOn(t *testing.T) {
	log := NewLog(clock.RealClock{}, 4)
	p := New(log)
	for rv := uint64(1); rv <= 10; rv++ {
		p.At(RingAppend, "default/a", rv)
	}
	tests := []struct {
		since uint64
		max   int
		want  []uint64
		ok    bool
	}{
		{since: 10, max: 9, want: nil, ok: true},
		{since: 6, max: 9, want: []uint64{7, 8, 9, 10}, ok: true},
		{since: 6, max: 2, want: []uint64{7, 8}, ok: true},
		{since: 5, max: 9, ok: false},  // the log has dropped record 6
		{since: 11, max: 9, ok: false}, // a number from another log
	}
	for _, test := range tests {
		t.Run(strconv.FormatUint(test.since, 10), func(t *testing.T) {
			records, ok := log.Since(nil, test.since, test.max)
			var got []uint64
			for _, r := range records {
				got = append(got, r.Seq)
			}
			assert.True(t, ok == test.ok && slices.Equal(got, test.want),
				"Since(%d, %d): got %v %v, want %v %v", test.since, test.max, got, ok, test.want, test.ok)
		})
	}
	oldest, last := log.Oldest(), log.Last()
	assert.True(t, oldest == 7 && last == 10, "oldest, last: got %d, %d, want 7, 10", oldest, last)
}

func TestReportingDoesNotAllocate(t *testing.T) {
	log := NewLog(clock.RealClock{}, 16)
	p := New(log).Subject("w1")
	ch := make(chan int, 10)
	log.Gate().Hold() // a gate that was closed and opened again does not cost more, either
	log.Gate().Release()
	n := testing.AllocsPerRun(100, func() { p.Event(InputSent, "ADDED", "default/a", 7, len(ch), cap(ch)) })
	assert.True(t, n == 0, "on: got %v allocations, want 0", n)
	var off *Probe
	n = testing.AllocsPerRun(100, func() { off.Event(InputSent, "ADDED", "default/a", 7, len(ch), cap(ch)) })
	assert.True(t, n == 0, "off: got %v allocations, want 0", n)
}

// placeholder matches the places that Sentence fills in.
var placeholder = regexp.MustCompile(`\{([^}]*)\}`)

func TestEveryPointIsDeclaredWhole(t *testing.T) {
	builtin := []string{"type", "key", "rv", "subject", "resource"}
	for _, p := range Points() {
		t.Run(p.String(), func(t *testing.T) {
			info := p.Info()
			require.True(t, info.Name != "" && info.Station != "" && info.Op != "" && info.Fact != "" &&
				info.Says != "", "incomplete: %+v", info)
			assert.True(t, slices.Contains(Stations, info.Station), "unknown station %q", info.Station)
			assert.True(t, len(info.Args.List()) <= len(Record{}.Args),
				"%d args, a record keeps %d", len(info.Args.List()), len(Record{}.Args))
			switch info.Op {
			case Send, Recv, Push, Pop:
				assert.True(t, info.Queue != "" && info.Args == "len cap",
					"a queue operation needs a queue and the args len cap, got %q and %q", info.Queue, info.Args)
			case Open:
				assert.True(t, info.Opens != "", "opens nothing")
			}
			for _, found := range placeholder.FindAllStringSubmatch(info.Says, -1) {
				name, _, counts := strings.Cut(found[1], " ")
				assert.True(t, info.Station != Ring || name != "start" && name != "end",
					"the sentence says a position of the ring, which stands beside versions")
				assert.True(t, slices.Contains(info.Args.List(), name) || !counts &&
					slices.Contains(append(builtin, info.Texts.List()...), name),
					"the sentence names {%s}, which no record has", found[1])
			}
		})
	}
}

func TestASentenceIsFilledIn(t *testing.T) {
	for _, test := range []struct {
		r    Record
		want string
	}{
		{Record{Point: ListServed, RV: 7, Args: [4]int{0}}, "A list of 0 objects is served from the cache at 7."},
		{Record{Point: ListServed, RV: 7, Args: [4]int{1}}, "A list of 1 object is served from the cache at 7."},
		{Record{Point: ListServed, RV: 7, Args: [4]int{2}}, "A list of 2 objects is served from the cache at 7."},
		// Sentence fills in a client's text as it is.
		{Record{Point: RequestReceived, Texts: TextsOf(RequestReceived, "GET", "/{n object}{key}[a]")},
			strings.NewReplacer("{method}", "GET", "{path}", "/{n object}{key}[a]", "[?{query}][ by {agent}]", "").
				Replace(RequestReceived.Info().Says)},
		{Record{Point: KnobTurned, Texts: TextsOf(KnobTurned, "line.stall", "a", "true")},
			"One client stops reading: a."},
		{Record{Point: KnobTurned, Texts: TextsOf(KnobTurned, "line.drop", "a")}, "The connection of a breaks."},
		{Record{Point: KnobTurned, Texts: TextsOf(KnobTurned, "traffic.rate", "", "200")},
			"A knob is turned: traffic.rate to 200."},
		// A record about no object, or without a version, leaves no gap in the sentence.
		{Record{Point: Etcd3IncomingSent, RV: 7}, "Revision 7 enters incomingEventChan."},
		{Record{Point: ResultSent, RV: 7, Type: "BOOKMARK", Subject: "w1"}, "BOOKMARK at 7 enters the result of w1."},
		{Record{Point: FIFOAdded, RV: 7, Type: "BOOKMARK", Subject: "w1"}, "BOOKMARK is queued for w1; 0 in line."},
		{Record{Point: FrameDecoded, Type: "ERROR"}, "The client decodes ERROR."},
	} {
		assert.Equal(t, test.want, test.r.Sentence())
	}
}

func TestObjectKeyIsTheSameInBothHalves(t *testing.T) {
	for key, want := range map[string]string{
		"/registry/pods/default/a":           "default/a",
		"/registry/nodes/n1":                 "n1",
		"default/a":                          "default/a",
		"":                                   "",
		"/registry/services/specs/default/a": "default/a",
	} {
		assert.Equal(t, want, ObjectKey(key), "ObjectKey(%q)", key)
	}
}

func TestTheLogKeepsLittleOfWhatAClientSent(t *testing.T) {
	for name, test := range map[string]struct{ sent, text, key string }{
		"short": {sent: "GET /", text: "GET /", key: "GET /"},
		"long": {sent: strings.Repeat("x", 1<<20), text: strings.Repeat("x", MaxText),
			key: strings.Repeat("x", MaxKey)},
		"long, in runes": {sent: strings.Repeat("é", 1000), text: strings.Repeat("é", MaxText),
			key: strings.Repeat("é", MaxKey/2)},
		"just short enough": {sent: strings.Repeat("é", MaxText), text: strings.Repeat("é", MaxText),
			key: strings.Repeat("é", MaxText)},
	} {
		t.Run(name, func(t *testing.T) {
			l := NewLog(clock.RealClock{}, 4)
			New(l).Text(WireClosed, test.sent, test.sent, 0)
			records, _ := l.Since(nil, 0, 1)
			got := records[0]
			text := got.Texts.Get(FieldWhy)
			require.True(t, text == test.text && got.Key == test.key,
				"got a text of %d bytes and a key of %d, want %d and %d", len(text), len(got.Key), len(test.text),
				len(test.key))
			cut := len(test.text) < len(test.sent)
			assert.False(t, cut && unsafe.StringData(text) == unsafe.StringData(test.sent),
				"the text holds on to all that was sent")
		})
	}
}

func TestAReplayedLogBeginsWhereItsRecordingDoes(t *testing.T) {
	log := NewLog(clock.RealClock{}, 7)
	for seq := uint64(41); seq <= 45; seq++ {
		log.Replay(Record{Seq: seq, Point: RingAppend})
	}
	oldest, last := log.Oldest(), log.Last()
	assert.True(t, oldest == 41 && last == 45, "log holds [%d, %d], want [41, 45]", oldest, last)
	records, ok := log.Since(nil, 42, 10)
	assert.True(t, ok && len(records) == 3 && records[0].Seq == 43, "since 42: got %v, %v, want 43 to 45", records, ok)
	_, ok = log.Since(nil, 39, 10)
	assert.True(t, !ok, "since 39: got an answer, want none: 40 was never here")
	for range 10 {
		log.Replay(Record{Point: RingAppend})
	}
	assert.Equal(t, 49, log.Oldest(), "oldest after 15 records in a log of 7")
}

func TestAnAnomalyIsDeclaredOrA410(t *testing.T) {
	for _, test := range []struct {
		r    Record
		want bool
	}{
		{Record{Point: WatcherForced}, true},
		{Record{Point: RingAppend}, false},
		{Record{Point: RequestAnswered, Args: [4]int{410}}, true},
		{Record{Point: RequestAnswered, Args: [4]int{200}}, false},
		{Record{Point: FrameWritten, Type: "ERROR"}, true},
		{Record{Point: FrameWritten, Type: "ADDED"}, false},
	} {
		assert.Equal(t, test.want, test.r.Anomaly(), "%s %v", test.r.Point, test.r.Args)
	}
}

// TestBetweenYieldsWhatTheLogHolds writes 20 records into a log of 8, which then holds 13 to 20.
func TestBetweenYieldsWhatTheLogHolds(t *testing.T) {
	log := NewLog(clock.RealClock{}, 8)
	p := New(log)
	for rv := range uint64(20) {
		p.At(RingAppend, "default/a", rv)
	}
	for _, test := range []struct {
		from, to uint64
		want     []uint64
	}{
		{14, 17, []uint64{15, 16, 17}},
		{18, 40, []uint64{19, 20}},
		{2, 14, []uint64{13, 14}}, // the log has dropped the first records
		{2, 6, nil},
		{30, 40, nil},
		{15, 15, nil},
	} {
		var got []uint64
		for r := range log.Between(test.from, test.to) {
			got = append(got, r.Seq)
		}
		assert.EqualSlices(t, test.want, got, "(%d, %d]", test.from, test.to)
	}
	for r := range log.Between(12, 20) {
		p.At(RingAppend, "default/a", r.RV)
		break // a reader may report, and stop early
	}
}

func TestEveryWaitHasAnEndAndAPlace(t *testing.T) {
	var names, queues []string
	for _, p := range Points() {
		names = append(names, p.String())
		queues = append(queues, p.Info().Queue)
	}
	// Unbuffered channels and the network are not drawn as queues, but as the way between two stations.
	queues = append(queues, "stream", "wire", "add", "next")
	for _, p := range Points() {
		info := p.Info()
		if info.Waits == "" {
			assert.True(t, info.On == "" && info.Holds+info.Until == "", "%s does not wait, but has On, Holds or Until",
				p)
			continue
		}
		assert.True(t, info.Until != "", "%s waits for ever", p)
		for _, name := range info.Until.List() {
			assert.True(t, slices.Contains(names, name), "%s ends with %s, which is no point", p, name)
		}
		for _, queue := range append(info.Holds.List(), strings.Fields(info.On)...) {
			assert.True(t, slices.Contains(queues, queue), "%s waits at or holds %s, which is no queue", p, queue)
		}
	}
}

var update = flag.Bool("update", false, "write constants.go instead of comparing it")

// TestConstantsAreFresh compares constants.go with the rows of points.go; with -update it writes constants.go.
func TestConstantsAreFresh(t *testing.T) {
	const file = "constants.go"
	want := "// Code generated from points.go: make generate. DO NOT EDIT.\n\npackage probe\n\n" +
		"// The points, in path order.\nconst (\n"
	for point := range Point(len(points)) {
		info := point.Info()
		doc := info.Name + ": " + info.Fact + "."
		if args := info.Args.List(); len(args) > 0 {
			doc += " Args: " + strings.Join(args, ", ") + "."
		}
		if texts := info.Texts.List(); len(texts) > 0 {
			doc += " Texts: " + strings.Join(texts, ", ") + "."
		}
		want += comment(doc) + "\t" + info.Name + map[bool]string{true: " Point = iota"}[point == 0] + "\n"
	}
	want += "\n\tdeclared // the number of points\n)\n\n// The names of texts.\nconst (\n"
	names := map[string]bool{}
	for _, point := range points {
		for _, name := range point.Texts.List() {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		want += "\tField" + strings.ToUpper(name[:1]) + name[1:] + " Field = " + strconv.Quote(name) + "\n"
	}
	formatted := require.Value(format.Source([]byte(want + ")\n")))(t)
	want = string(formatted)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o644))
	}
	// A checkout on Windows may have other line endings.
	if got, err := os.ReadFile(file); err != nil || strings.ReplaceAll(string(got), "\r\n", "\n") != want {
		t.Errorf("%s is stale (%v): run make generate and commit the result", file, err)
	}
}

// comment returns text as an indented comment of at most 120 columns.
func comment(text string) (lines string) {
	line := "\t//"
	for _, word := range strings.Fields(text) {
		if len(line)+1+len(word) > 117 { // a tab is four columns
			lines, line = lines+line+"\n", "\t//"
		}
		line += " " + word
	}
	return lines + line + "\n"
}
