//go:build !race

package viz

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/takes"
)

// newTraced returns a twin whose engine has the space-time view's trace; ends lists the seqs of arrows' two records.
func newTraced(t *testing.T) *twin {
	t.Helper()
	w := twinWith(t, map[string]string{"fold": "log/fold.js", "handovers": "spacetime/handovers.js"})
	run[bool](t, w.engine, `var ends = (list) => list.map((a) => [a.sent.r.seq, a.taken.r.seq]);
		var trace = (records, delta = false) => page.handovers.trace(twin, delta, state, records,
			(r) => !r.resource || r.resource === "pods");
		Map.groupBy ??= (list, of) => list.reduce((map, each) => map.set(of(each), [...map.get(of(each)) ?? [], each]),
			new Map());
		true`)
	return w
}

// counters returns the counts of items put into and taken out of every queue, except queues of deltas.
func counters(res *fold.Resource) map[string][2]int64 {
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

// expect folds records into state, and returns the seqs of those on stage, and of each transfer's two records. It omits
// queues of deltas, which hand over by object: TestWhatIsHandedOver covers them.
func expect(state *fold.State, records []probe.Record) (columns []uint64, transfers [][2]uint64) {
	ends, met := map[string][2]uint64{}, map[[2]uint64]bool{}
	for i := range records {
		r := &records[i]
		before := counters(state.Resources[r.Resource])
		state.Apply(records[i : i+1])
		if r.Resource != "" && r.Resource != "pods" {
			continue
		}
		columns = append(columns, r.Seq)
		for queue, now := range counters(state.Resources[r.Resource]) {
			for side := range 2 {
				for k := before[queue][side] + 1; k <= now[side]; k++ {
					id := fmt.Sprint(queue, " ", k)
					a := ends[id]
					a[side] = r.Seq
					if ends[id] = a; a[0] != 0 && a[1] != 0 {
						met[a] = true
					}
				}
			}
		}
	}
	return columns, slices.SortedFunc(maps.Keys(met), byTaker)
}

func byTaker(a, b [2]uint64) int { return int(a[1]*1e6+a[0]) - int(b[1]*1e6+b[0]) }

// TestTheSpaceTimeViewKnowsWhoHandedWhatToWhom traces six parts of each recording, each of up to eighty records.
// The arrows of queues must be the transfers that the fold counts, except those of deltas.
func TestTheSpaceTimeViewKnowsWhoHandedWhatToWhom(t *testing.T) {
	t.Parallel()
	nTransfers, nPassages := 0, 0
	for _, take := range takes.All {
		start, records, err := take.Load()
		require.NoError(t, err)
		w := newTraced(t)
		for part := range 6 {
			from := part * max(0, len(records)-80) / 5
			state := start.Clone()
			state.Apply(records[:from])
			w.begin(t, state)
			part := records[from:min(len(records), from+80)]
			columns, transfers := expect(state, part)
			got := run[struct {
				Columns             []uint64
				Transfers, Passages [][2]uint64
			}](t, w.engine, `(({ columns, arrows }) => ({ columns: columns.map((c) => c.r.seq),
				transfers: ends(arrows.filter((a) => a.queue && a.taken.r.point !== "FIFOPopped")),
				passages: ends(arrows.filter((a) => !a.queue)) }))(trace(JSON.parse(`+quote(t, feedOf(part))+`)))`)
			at := fmt.Sprintf("%s after %d", take.Name, from)
			assert.EqualSlices(t, columns, got.Columns, at)
			slices.SortFunc(got.Transfers, byTaker)
			assert.EqualSlices(t, transfers, got.Transfers, at)
			nTransfers, nPassages = nTransfers+len(transfers), nPassages+len(got.Passages)
		}
	}
	assert.True(t, nTransfers >= 100 && nPassages >= 50,
		"%d transfers, %d passages: too few to be a test", nTransfers, nPassages)
}

// TestEveryRecordStandsWithWhoReportedIt expects each record of a subject s on the line of its point's first goroutine,
// or on that of its station if this goroutine is unknown or viz.ui.
func TestEveryRecordStandsWithWhoReportedIt(t *testing.T) {
	w := newTraced(t)
	titles := func(subject string) map[string]string {
		return run[map[string]string](t, w.engine, fmt.Sprintf(`
			Object.fromEntries([...twin.infos.keys()].map((point) => {
			const line = page.handovers.lineOf(twin.infos, { point, subject: %q });
			return [point, line.title + (line.place ? " *" : "")];
		}))`, subject))
	}
	got := titles("s")
	for _, point := range probe.Points() {
		info := point.Info()
		want := string(info.Station) + " *"
		if lanes := info.Lanes(); len(lanes) > 0 && lanes[0] != "viz.ui" {
			want = lanes[0][strings.LastIndex(lanes[0], ".")+1:]
		}
		title := got[info.Name]
		assert.True(t, title == want || title == "s "+want || want == "informer" && title == "s",
			"%s stands with %q, want %q", info.Name, title, want)
	}
	assert.Equal(t, "dispatchEvents", got["InputSent"])
	assert.Equal(t, "s processInterval", got["InputReceived"])
	// The Cacher's reflector runs in the goroutine that fills the ring.
	assert.Equal(t, "ring *", titles("cacher")["ReflectorReceived"])
}

func TestWhatIsHandedOver(t *testing.T) {
	const key = "/registry/pods/default/a"
	text := func(point probe.Point, subject string, texts ...string) probe.Record {
		return probe.Record{Point: point, Subject: subject, Texts: probe.TextsOf(point, texts...)}
	}
	opened := func(subject string) []probe.Record {
		return []probe.Record{{Point: probe.WatcherAdded, Subject: subject},
			text(probe.WireOpened, subject, "listwatch-informer/1", "/api")}
	}
	event := func(point probe.Point, subject string) probe.Record {
		return rec(point, subject, "ADDED", key, 7, 0, 10)
	}
	for name, c := range map[string]struct {
		records             []probe.Record
		transfers, passages string
	}{
		"a queue that gives by object": {[]probe.Record{
			rec(probe.FIFOAdded, "delta", "Sync", "default/a", 1, 1),
			rec(probe.FIFOAdded, "delta", "Sync", "default/b", 2, 2),
			rec(probe.FIFOAdded, "delta", "Updated", "default/a", 3, 3),
			rec(probe.FIFOPopped, "delta", "Sync", "default/a", 1, 2),
			rec(probe.FIFOPopped, "delta", "Updated", "default/a", 3, 1),
			rec(probe.FIFOPopped, "delta", "Sync", "default/b", 2, 0),
		}, "1>4 3>5 2>6", ""},
		"listeners of one informer": {[]probe.Record{
			text(probe.ListenerAdded, "one", "inf"), text(probe.ListenerAdded, "other", "inf"),
			event(probe.IndexerUpdated, "inf"), event(probe.AddReceived, "one"), event(probe.HandlerCalled, "one"),
			event(probe.PendingPushed, "other"),
		}, "", "3>4 4>5 3>6"},
		"a frame that was lost with its stream": {slices.Concat(opened("w1"),
			[]probe.Record{event(probe.FrameWritten, "w1"), event(probe.FrameDecoded, "informer"),
				event(probe.FrameWritten, "w1"), {Point: probe.ReflectorWatchEnded, Subject: "informer"}},
			opened("w2"), []probe.Record{event(probe.FrameWritten, "w2"), event(probe.FrameDecoded, "informer"),
				event(probe.ReflectorReceived, "informer")}), "", "3>4 9>10 10>11"},
		"receivers that write first": {[]probe.Record{
			rec(probe.WatchChanOpened, "etcd3-1", "", key, 7), {Point: probe.WatcherAdded, Subject: "w1"},
			event(probe.ResultReceived, "w1"), event(probe.ResultSent, "w1"),
			event(probe.Etcd3IncomingReceived, "etcd3-1"), event(probe.Etcd3IncomingSent, "etcd3-1"),
			event(probe.TxnCommitted, "")}, "4>3 6>5", "7>6"},
	} {
		w := newTraced(t)
		for i := range c.records {
			c.records[i].Seq, c.records[i].Resource = uint64(i+1), "pods"
		}
		got := run[string](t, w.engine, `((list) => [list.filter((a) => a.queue), list.filter((a) => !a.queue)]
			.map((of) => ends(of).map((each) => each.join(">")).join(" ")).join("; "))(
			trace(JSON.parse(`+quote(t, feedOf(c.records))+`), true).arrows)`)
		assert.Equal(t, c.transfers+"; "+c.passages, got, name)
	}
}
