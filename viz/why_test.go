//go:build !race

package viz

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"listwatch/internal/check/assert"
	"listwatch/internal/observe/probe"
)

// newWhy numbers the records, a millisecond apart, and returns an engine with the picture of pods after the last one.
func newWhy(t *testing.T, records []probe.Record) *engine {
	t.Helper()
	for i := range records {
		records[i].Seq, records[i].Time, records[i].Resource = uint64(i+1), time.Duration(i)*time.Millisecond, "pods"
	}
	e := newEngine(t, map[string]string{"fold": "log/fold.js", "why": "inspector/why.js", "query": "log/query.js"})
	run[bool](t, e, `var fold = page.fold.newFold(`+points(t)+`), state = page.fold.newState();
		fold.apply(state, JSON.parse(`+quote(t, feedOf(records))+`));
		var pods = state.resources.pods, w = page.why.newWhy(fold.infos); true`)
	return e
}

func rec(point probe.Point, subject, typ, key string, rv uint64, args ...int) probe.Record {
	r := probe.Record{Point: point, Subject: subject, Type: typ, Key: key, RV: rv}
	copy(r.Args[:], args)
	return r
}

// stalled returns records of a server half whose watcher w3 has a client that does not read. w4's client reads.
func stalled() []probe.Record {
	return []probe.Record{
		rec(probe.WatchChanOpened, "etcd3-1", "", "", 1), rec(probe.WatcherAdded, "w3", "", "", 1, 10),
		rec(probe.WatcherAdded, "w4", "", "", 1, 10),
		rec(probe.ResultReceived, "w3", "ADDED", "a", 5, 10, 10), // w3 never writes it
		rec(probe.ResultReceived, "w4", "ADDED", "a", 5, 0, 10), rec(probe.WireFlushed, "w4", "", "a", 5),
		rec(probe.ResultBlocked, "w3", "ADDED", "b", 6), rec(probe.InputBlocked, "w3", "ADDED", "c", 7),
		rec(probe.IncomingBlocked, "cacher", "ADDED", "d", 8),
		rec(probe.Etcd3ResultBlocked, "etcd3-1", "ADDED", "e", 9),
		rec(probe.Etcd3IncomingBlocked, "etcd3-1", "", "f", 10),
	}
}

func TestWhyIsThisBlocked(t *testing.T) {
	toTheClient := "w3/result (client)"
	opened := func(agent string) []probe.Record {
		r := rec(probe.WireOpened, "w3", "", "", 0)
		r.Texts = probe.TextsOf(probe.WireOpened, agent, "/api/v1/pods", "watch=1")
		return []probe.Record{r}
	}
	tests := []struct {
		name    string
		records []probe.Record
		queue   string
		subject string
		want    string
	}{
		{"from etcd to the client", stalled(), "etcd3-incoming", "etcd3-1", "etcd3-1/etcd3-incoming (room) → " +
			"etcd3-1/etcd3-result (room) → cacher/incoming (room) → w3/input (room) → " + toTheClient},
		{"from the middle", stalled(), "incoming", "cacher", "cacher/incoming (room) → w3/input (room) → " +
			toTheClient},
		{"of two watchers that of the one that has waited longest", append(stalled(),
			rec(probe.InputBlocked, "w4", "ADDED", "c", 7)), "incoming", "cacher",
			"cacher/incoming (room) → w3/input (room) → " + toTheClient},
		{"the innocent", stalled(), "input", "w4", "w4/input (nothing)"},
		{"an older watch of etcd", append([]probe.Record{rec(probe.WatchChanOpened, "etcd3-0", "", "", 1)},
			stalled()...), "etcd3-result", "etcd3-0", "etcd3-0/etcd3-result (nothing)"},
		{"into an informer of a client of ours", append(append(stalled(), opened("listwatch-scheduler/v1")...),
			rec(probe.FrameDecoded, "informer", "ADDED", "a", 4),
			rec(probe.FrameDecoded, "scheduler-informer", "ADDED", "a", 4),
			rec(probe.StreamBlocked, "scheduler-informer", "ADDED", "a", 4)), "result", "w3",
			"w3/result (client) → scheduler-informer/wire (taker) → scheduler-informer/stream (nothing)"},
		{"a client that tells nothing", append(stalled(), opened("kubectl/v1.37")...), "result", "w3", toTheClient},
		{"a slow handler holds up no goroutine", []probe.Record{
			rec(probe.ListenerAdded, "observer", "", "", 0), rec(probe.HandlerCalled, "observer", "ADDED", "a", 1),
			rec(probe.PendingPushed, "observer", "ADDED", "b", 2, 1, 1024),
		}, "pending", "observer", "observer/pending (return)"},
		{"another queue of its name", []probe.Record{
			rec(probe.WorkGot, "scheduler", "", "default/a", 0, 3, 0),
			rec(probe.WorkGot, "kubelet", "", "default/a", 0, 3, 0), rec(probe.WorkDone, "kubelet", "", "default/a", 0),
		}, "workqueue", "kubelet", "kubelet/workqueue (nothing)"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWhy(t, test.records)
			got := run[string](t, w, fmt.Sprintf(`w.why(pods, %q, %q).map((l) => `+"`${l.subject}/${l.queue} "+
				"(${l.taker?.kind ?? \"nothing\"})`"+`).join(" → ")`, test.queue, test.subject))
			assert.Equal(t, test.want, got)
		})
	}
}

// TestWhoWaitsForWhomIsTold checks the words about the chain from a station's longest queue, or from a chosen one.
func TestWhoWaitsForWhomIsTold(t *testing.T) {
	var alone []probe.Record
	for i := range 3 {
		alone = append(alone, rec(probe.IncomingSent, "cacher", "ADDED", "a", 10, i+1, 3))
	}
	busy := []probe.Record{
		rec(probe.HandlerCalled, "observer", "ADDED", "/registry/pods/default/a", 1),
		rec(probe.PendingPushed, "observer", "ADDED", "b", 2, 1, 1024),
	}
	for name, test := range map[string]struct {
		records []probe.Record
		place   string
		want    string
	}{
		"full": {alone, `{station: "incoming"}`, "incoming of cacher 3/3: cacher.dispatchEvents takes from it"},
		"held up by a client": {append(alone, append(stalled(),
			rec(probe.IncomingBlocked, "cacher", "ADDED", "e", 11))...), `{station: "incoming"}`,
			"incoming of cacher 3/3: cacher.dispatchEvents has waited 4.00 ms for room at the next one (c), input of " +
				"w3 0/0: cacheWatcher.processInterval has waited 5.00 ms for room at the next one (b), result of w3 " +
				"0/10: handlers.WatchServer has waited 8.00 ms for its client to read (a)"},
		"the queue that was chosen": {stalled(), `{station: "watcher", queue: "input", subject: "w4"}`, ""},
		"a slow handler": {append([]probe.Record{rec(probe.ListenerAdded, "observer", "", "", 0)}, busy...),
			`{station: "listener"}`, "pending of observer 1/1024: processorListener.pop has waited 1.00 ms for its " +
				"own code to return (default/a)"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newWhy(t, test.records)
			got := run[string](t, e, `(() => {
				const titles = new Proxy({}, { get: (_, name) => name });
				const [chain = []] = w.chains(pods, state.t, `+test.place+`, titles);
				return chain.map(({ name, len, cap, waits }) => name + " " + len + "/" + cap + ": " + waits).join(", ");
			})()`)
			assert.Equal(t, test.want, got)
		})
	}
}

// TestHowAPlaceStandsIsRead expects the rows of the state leaf for several places of a stalled server half.
func TestHowAPlaceStandsIsRead(t *testing.T) {
	const key = "/registry/pods/default/a"
	w := newWhy(t, append(stalled(), rec(probe.RingAppend, "cacher", "ADDED", key, 5, 3, 7, 4, 4),
		rec(probe.StoreUpdate, "cacher", "ADDED", key, 5, 1)))
	for _, test := range []struct{ place, want string }{
		{`{ station: "watcher", queue: "result", subject: "w3" }`, "result of w3: len 0, cap 10, sent 0, received 1, " +
			"high 0"},
		{`{ station: "watcher", queue: "", subject: "w4" }`, "result of w4: len 0"},
		{`{ station: "watcher", queue: "", subject: "w4" }`, "watcher w4: kind watcher, opened 3, began 1, rv 0, " +
			"vars capacity 10, counts"},
		{`{ station: "ring", queue: "", subject: "" }`, "ring: start 3, end 7, capacity 4, oldest 4, newest 5"},
		{`{ station: "ring", queue: "", subject: "" }`, "station: count 1, rv 5, vars start 3, vars end 7, vars " +
			"capacity 4, vars oldest 4, last RingAppend cacher ADDED default/a 5"},
		{`{ station: "store", queue: "", subject: "" }`, "store/cacher: objects, the newest change last: n 1, rows 0 " +
			"ADDED default/a 5"},
		{`{ station: "handler", queue: "", subject: "" }`, ""},
	} {
		got := run[string](t, w, `(() => {
			const place = `+test.place+`, query = page.why.meant(fold.infos, "pods", place);
			const about = (r) => page.query.matches(query, r, fold.infos.get(r.point));
			return page.why.stateOf(pods, place, { input: "input", result: "result" }, about)
				.map(({ title, rows }) => title + ": " + rows.map((row) => row.join(" ")).join(", ")).join("\n");
		})()`)
		assert.True(t, strings.Contains(got, test.want) && (got == "") == (test.want == ""), "%s: got %s, want %s",
			test.place, got, test.want)
	}
	assert.True(t, run[bool](t, w, `page.why.meant(fold.infos, "pods", { station: "watcher", queue: "result",
		subject: "w3" }).points.includes("WatcherForced")`), "the program counts this record, the page does not")
}
