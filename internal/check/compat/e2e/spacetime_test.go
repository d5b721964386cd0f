package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/takes"
)

// arrow joins the record of who brought something to the record of who took it.
type arrow struct{ Sent, Taken uint64 }

// spacetime is what the space-time view shows.
type spacetime struct {
	View      string
	Cursor    uint64
	From, To  uint64
	Records   []uint64 // in columns
	Lines     []string
	Transfers []arrow
	Passages  []arrow
	Spans     int
}

const readSpacetime = `(() => {
	const root = $("#spacetime"), d = root.dataset;
	const arrows = (name) => [...root.querySelectorAll(".arrows ." + name)]
		.map((el) => ({ Sent: Number(el.dataset.sent), Taken: Number(el.dataset.taken) }));
	return {
		View: root.hasAttribute("hidden") ? "" : document.body.dataset.view, Cursor: Number(d.cursor ?? 0),
			From: Number(d.from ?? 0), To: Number(d.to ?? 0),
		Records: [...root.querySelectorAll(".marks g")].map((el) => Number(el.dataset.seq)),
		Lines: [...root.querySelectorAll(".names tspan")].map((el) => el.textContent),
		Transfers: arrows("transfer"), Passages: arrows("passage"),
			Spans: root.querySelectorAll(".spans rect").length,
	};
})()`

// spaceTimeAt waits until the view is drawn for a cursor.
func (p *page) spaceTimeAt(t *testing.T, cursor uint64) (s spacetime) {
	t.Helper()
	program.Eventually(t, patience, func() (bool, string) {
		s = evaluate[spacetime](t, p, readSpacetime)
		return s.View == "space-time" && s.Cursor == cursor, fmt.Sprintf("the view %q is at %d, want %d", s.View,
			s.Cursor, cursor)
	})
	return s
}

// expected is what a run of records should look like, by our own count.
type expected struct {
	records   []uint64
	transfers map[arrow]bool
	spans     int
}

// countersOf returns how much has gone into and out of every queue but those of deltas.
func countersOf(res *fold.Resource) map[string][2]int64 {
	all := map[string][2]int64{}
	if res == nil {
		return all
	}
	for id, subject := range res.Subjects {
		for name, q := range subject.Queues {
			if name != "fifo" {
				all[fmt.Sprint(id, " ", subject.Opened, " ", name)] = [2]int64{q.Sent, q.Received}
			}
		}
	}
	return all
}

func waitsOf(res *fold.Resource) map[uint64]bool {
	all := map[uint64]bool{}
	if res == nil {
		return all
	}
	for _, waits := range res.Waits {
		for _, w := range waits {
			if w.Kind != string(probe.ForWork) {
				all[w.Seq] = true
			}
		}
	}
	return all
}

// expect folds records, of which the first follows on state, and counts what passes from one to another. Queues of
// deltas give by object: TestEveryRecordStandsWithWhoReportedIt has them.
func expect(state *fold.State, records []probe.Record, resource string) expected {
	want := expected{transfers: map[arrow]bool{}}
	ends := map[string]arrow{}
	spans := map[uint64]bool{}
	for _, name := range []string{"", resource} {
		maps.Copy(spans, waitsOf(state.Resources[name]))
	}
	for i := range records {
		r := &records[i]
		before := countersOf(state.Resources[r.Resource])
		state.Apply(records[i : i+1])
		if r.Resource != "" && r.Resource != resource {
			continue
		}
		want.records = append(want.records, r.Seq)
		maps.Copy(spans, waitsOf(state.Resources[r.Resource]))
		for queue, now := range countersOf(state.Resources[r.Resource]) {
			for side := range 2 {
				for k := before[queue][side] + 1; k <= now[side]; k++ {
					id := fmt.Sprint(queue, " ", k)
					a := ends[id]
					if side == 0 {
						a.Sent = r.Seq
					} else {
						a.Taken = r.Seq
					}
					if ends[id] = a; a.Sent != 0 && a.Taken != 0 {
						want.transfers[a] = true
					}
				}
			}
		}
	}
	want.spans = len(spans)
	return want
}

// isTrue compares the view with what is to be seen between its ends.
func (s *spacetime) isTrue(t *testing.T, start *fold.State, records []probe.Record, resource string) {
	t.Helper()
	state := start.Clone()
	state.Apply(records[:s.From-1-start.Seq])
	run := records[s.From-1-start.Seq : s.To-start.Seq]
	want := expect(state, run, resource)
	assert.True(t, slices.Equal(s.Records, want.records), "columns: got %v, want %v", s.Records, want.records)
	got, counted := map[arrow]bool{}, 0
	for _, a := range s.Transfers {
		if run[a.Taken-s.From].Point != probe.FIFOPopped {
			got[a] = true
			counted++
		}
	}
	assert.False(t, !maps.Equal(got, want.transfers) || counted != len(got),
		"records %d to %d: %d transfers, %v, want %v", s.From, s.To, counted, got, want.transfers)
	assert.True(t, s.Spans == want.spans, "records %d to %d: %d waits, want %d", s.From, s.To, s.Spans, want.spans)
}

// TestTheSpaceTimeViewShowsWhoHandedWhatToWhom looks at several moments of every recording: each arrow is a transfer
// that the fold counts, and none is missing.
func TestTheSpaceTimeViewShowsWhoHandedWhatToWhom(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-demo=false", "-controllers=false")
	p := openPage(t, v.URL)
	transfers, spans, passages := 0, 0, 0
	for _, take := range takes.All {
		start, records, err := take.Load()
		require.NoError(t, err)
		last := records[len(records)-1].Seq
		p.navigate(t, v.URL+"/?take="+take.Name)
		program.Eventually(t, patience, func() (bool, string) {
			m := p.moment(t)
			return m.Head == last, fmt.Sprintf("%+v, want the recording up to %d", m, last)
		})
		p.strike(t, "v")
		resource := evaluate[string](t, p, "document.body.dataset.resource")
		for part := 1; part <= 6; part++ {
			cursor := start.Seq + uint64(part*len(records)/6)
			// A record that the view shows: of the resource on stage, or of none.
			for records[cursor-start.Seq-1].Resource != "" && records[cursor-start.Seq-1].Resource != resource {
				cursor--
			}
			p.seek(t, int(cursor))
			s := p.spaceTimeAt(t, cursor)
			assert.True(t, s.From <= cursor && s.To >= cursor && len(s.Records) <= 80 && len(s.Records) >= 20,
				"%s at %d: from %d to %d, %d records", take.Name, cursor, s.From, s.To, len(s.Records))
			s.isTrue(t, start, records, resource)
			transfers, passages, spans = transfers+len(s.Transfers), passages+len(s.Passages), spans+s.Spans
		}
	}
	assert.True(t, transfers >= 100 && spans >= 20 && passages >= 50,
		"in all recordings there were %d transfers, %d waits, %d passages: too few to be a test", transfers, spans,
		passages)
}

// hasty is a recording in which each receiver writes a hand-over down before its sender, and in which there are more
// goroutines than there is room for.
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

func TestWhoTakesMayReportFirst(t *testing.T) {
	t.Parallel()
	records := hasty()
	p := openPage(t, startViz(t, "-replay", writeRecording(t, records)).URL)
	p.until(t, "window.listwatch?.player.head === %d", len(records))
	p.strike(t, "v")
	p.seek(t, len(records))
	s := p.spaceTimeAt(t, uint64(len(records)))
	s.isTrue(t, fold.New(), records, "pods")
	n := uint64(len(records))
	if want := []arrow{{n - 3, n - 4}, {n - 1, n}}; !slices.Equal(s.Passages, want) {
		t.Errorf("passages: got %v, want %v", s.Passages, want)
	}
	if wrong := evaluate[int](t, p, `(() => {
		const arrows = $$("#spacetime .arrows .arrow");
		const back = arrows.filter((el) => Number(el.dataset.taken) < Number(el.dataset.sent));
		const wrong = (el) => el.classList.contains("back") !== back.includes(el);
		return back.length === 0 ? -1 : arrows.filter(wrong).length;
	})()`); wrong != 0 {
		t.Errorf("%d arrows are not drawn as what they are: pointing back where the receiver wrote first", wrong)
	}
	shown := 0
	for _, r := range records[s.From-1 : s.To] {
		if r.Point == probe.ResultSent || r.Point == probe.Etcd3IncomingSent {
			shown++
		}
	}
	assert.True(t, len(s.Transfers) == shown, "%d transfers, want %d", len(s.Transfers), shown)
	if !slices.Equal(s.Lines[:3], []string{"callers", "startWatching", "schedule…entProcessing"}) ||
		len(s.Lines) != 26 || !strings.HasSuffix(s.Lines[25], " more") {
		t.Errorf("lines: %q, want those of etcd3 after their callers, and that there are more than 26", s.Lines)
	}
	p.run(t, `listwatch.stage.setResource("nodes")`)
	p.until(t,
		`$("#spacetime").matches(".blank") &&
			$("#spacetime .about").textContent === "no record of this resource is here"`)
}

// TestTheViewsTakeTurns goes through the views by key and by button, and through the records by a click on a mark.
func TestTheViewsTakeTurns(t *testing.T) {
	t.Parallel()
	v, p := still(t)
	view := func(want string) {
		t.Helper()
		p.until(t, `document.body.dataset.view === %q && $("#view").textContent === "View: %s" &&
			$("#spacetime").hasAttribute("hidden") === %t`, want, want, want != "space-time")
	}
	view("loop")
	p.pick(t, "#view")
	view("space-time")
	v.createPod(t, "turn")
	p.until(t,
		`$$("#spacetime .transfer").length >= 8 &&
			$$("#spacetime .passage title")
			.some((el) => el.textContent.includes("default/turn by hand, through nextCh"))`)
	way := []string{"callers", "startWatching", "startCaching", "dispatchEvents", "w1 processInterval",
		"w1 WatchServer", "informer receive", "informer reflector", "informer", "observer pop", "observer run"}
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
	if m := p.moment(t); m.Seq != seq {
		t.Errorf("a click on record %d goes to %d", seq, m.Seq)
	}
	p.strike(t, ".")
	next := s.Records[slices.Index(s.Records, seq)+1]
	if moved := p.spaceTimeAt(t, next); moved.From != s.From {
		t.Errorf("one step on, the view begins at %d, before at %d: it should stay where it is", moved.From, s.From)
	}
	p.strike(t, "v")
	view("loop")
	p.strike(t, "v")
	view("space-time")
	p.do(t, look{"phone", 390, 844, "light", "reduce"}.wear(1)) // where it is drawn larger than its place
	p.seek(t, int(seq))
	p.until(t, `(({ left, right }) => left >= 0 && right <= innerWidth)($("#spacetime .cursor").getBoundingClientRect())`)
}

// places are points that several goroutines may report, or one that the table of points does not name, of a subject s.
var places = map[string]string{
	"RequestReceived": "callers *", "TxnCommitted": "callers *", "ListServed": "callers *", "WatcherAdded": "callers *",
	"WatchChanOpened": "watchChan *", "Etcd3IncomingSent": "startWatching",
	"Etcd3IncomingReceived": "schedule…entProcessing", "Etcd3ResultSent": "collectEventProcessing",
	"RingAppend": "startCaching", "IncomingSent": "startCaching", "WatcherForced": "dispatchEvents",
	"ReflectorReceived": "s reflector *", "FIFOAdded": "s reflector *",
	"FIFOWaited": "s", "FIFOPopped": "s", "IndexerUpdated": "s",
	"AddBlocked": "s add *", "WorkAdded": "s queue *", "RingResize": "others *", "ProgramStopped": "others *",
}

func TestEveryRecordStandsWithWhoReportedIt(t *testing.T) {
	t.Parallel()
	_, p := still(t)
	titles := func(subject, modes string) map[string]string {
		return evaluate[map[string]string](t, p, fmt.Sprintf(`(async () => {
			const { lineOf } = await import("/viz/assets/spacetime/lines.js");
			const { infos } = listwatch.stage;
			return Object.fromEntries([...infos.keys()].map((point) => {
				const line = lineOf(infos, %s, { point, subject: %q });
				return [point, line.title + (line.place ? " *" : "")];
			}));
		})()`, modes, subject))
	}
	got := titles("s", "{}")
	for _, point := range probe.Points() {
		info := point.Info()
		want, told := places[info.Name]
		if lanes := info.Lanes(); !told && len(lanes) > 0 && lanes[0] != "viz.ui" {
			_, name, _ := strings.Cut(lanes[0], ".")
			want, told = name, true
		}
		if title := got[info.Name]; told && title != want && title != "s "+want {
			t.Errorf("%s stands with %q, want %q", info.Name, title, want)
		}
	}
	// The cacher has a reflector of its own, in the goroutine that writes the cache.
	assert.Equal(t, "startCaching", titles("cacher", "{}")["ReflectorReceived"])
	// Watches that ended before they began have no name.
	assert.Equal(t, "WatchServer *", titles("", "{}")["WireOpened"])
	older := titles("s", `{ "etcd-watcher": "etcd2" }`)
	for point, want := range map[string]string{"WatchChanOpened": "etcdWatcher *", "Etcd3IncomingSent": "etcdWatch",
		"Etcd3IncomingReceived": "translate", "Etcd3ResultSent": "translate"} {
		assert.Equal(t, want, older[point])
	}
	t.Run("a queue that gives by object", func(t *testing.T) {
		p.handsOver(t, []probe.Record{
			{Point: probe.FIFOAdded, Subject: "delta", Type: "Sync", Key: "default/a", RV: 1, Args: [4]int{1}},
			{Point: probe.FIFOAdded, Subject: "delta", Type: "Sync", Key: "default/b", RV: 2, Args: [4]int{2}},
			{Point: probe.FIFOAdded, Subject: "delta", Type: "Updated", Key: "default/a", RV: 3, Args: [4]int{3}},
			{Point: probe.FIFOPopped, Subject: "delta", Type: "Sync", Key: "default/a", RV: 1, Args: [4]int{2}},
			{Point: probe.FIFOPopped, Subject: "delta", Type: "Updated", Key: "default/a", RV: 3, Args: [4]int{1}},
			{Point: probe.FIFOPopped, Subject: "delta", Type: "Sync", Key: "default/b", RV: 2, Args: [4]int{0}},
		}, "1>4 3>5 2>6", "")
	})
	t.Run("listeners of one informer", func(t *testing.T) {
		event := func(point probe.Point, subject string) probe.Record {
			return probe.Record{Point: point, Subject: subject, Type: "ADDED", Key: "default/a", RV: 7}
		}
		added := func(subject string) probe.Record {
			texts := probe.TextsOf(probe.ListenerAdded, "inf")
			return probe.Record{Point: probe.ListenerAdded, Subject: subject, Texts: texts}
		}
		p.handsOver(t, []probe.Record{added("one"), added("other"), event(probe.IndexerUpdated, "inf"),
			event(probe.AddReceived, "one"), event(probe.HandlerCalled, "one"), event(probe.PendingPushed, "other"),
		}, "", "3>4 4>5 3>6")
	})
	t.Run("a frame that was lost with its stream", func(t *testing.T) {
		frame := func(point probe.Point, subject string) probe.Record {
			return probe.Record{Point: point, Subject: subject, Type: "ADDED", Key: "/registry/pods/default/a", RV: 7}
		}
		opened := func(subject string) []probe.Record {
			return []probe.Record{{Point: probe.WatcherAdded, Subject: subject}, {Point: probe.WireOpened,
				Subject: subject, Texts: probe.TextsOf(probe.WireOpened, "listwatch-informer/1", "/api")}}
		}
		records := append(opened("w1"), frame(probe.FrameWritten, "w1"), frame(probe.FrameDecoded, "informer"),
			frame(probe.FrameWritten, "w1"))
		records = append(records, probe.Record{Point: probe.ReflectorWatchEnded, Subject: "informer"})
		records = append(records, opened("w2")...)
		records = append(records, frame(probe.FrameWritten, "w2"), frame(probe.FrameDecoded, "informer"),
			frame(probe.ReflectorReceived, "informer"))
		p.handsOver(t, records, "", "3>4 9>10 10>11")
	})
}

// handsOver gives the page records of pods, numbered from 1, and compares who handed what to whom.
func (p *page) handsOver(t *testing.T, records []probe.Record, transfers, passages string) {
	t.Helper()
	var written []string
	for i := range records {
		records[i].Seq, records[i].Resource = uint64(i+1), "pods"
		written = append(written, string(fold.AppendRecord(nil, &records[i])))
	}
	got := evaluate[[]string](t, p, `(async () => {
		const [{ trace }, { newState }] = await Promise.all([import("/viz/assets/spacetime/handovers.js"),
			import("/viz/assets/log/fold.js")]);
		const { arrows } = trace(listwatch.stage.fold, { fifo: "delta" }, newState(), [`+strings.Join(written, ",")+
		`], () => true);
		const named = (list) => list.map((a) => a.sent.r.seq + ">" + a.taken.r.seq).join(" ");
		return [named(arrows.filter((a) => a.queue)), named(arrows.filter((a) => !a.queue))];
	})()`)
	if want := []string{transfers, passages}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
