package viz

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"listwatch/internal/kube/redact"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/recording"
	"listwatch/internal/observe/takes"
)

func TestATraceParsesAndItsSpansAddUp(t *testing.T) {
	clk := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	log := probe.NewLog(clk, 64)
	pods := probe.New(log).Resource("pods")
	step := func(us int) { clk.SetTime(clk.Now().Add(time.Duration(us) * time.Microsecond)) }
	step(100)
	pods.Event(probe.TxnCommitted, "ADDED", "/registry/pods/default/a", 7)
	step(30)
	pods.Event(probe.TxnCommitted, "ADDED", "/registry/pods/default/b", 8)
	step(20)
	pods.Subject("w1").Event(probe.InputSent, "ADDED", "/registry/pods/default/a", 7, 1, 10)
	step(10)
	pods.Subject("w2").Event(probe.InputSent, "ADDED", "/registry/pods/default/a", 7, 1, 10)
	step(40)
	pods.Subject("w1").Event(probe.InputReceived, "ADDED", "/registry/pods/default/a", 7, 0, 10)
	step(5)
	pods.Subject("l1").Event(probe.HandlerCalled, `Added"<script>`, "default/a", 7)

	ui := New(Config{Log: log})
	answer := ask(ui, "GET", "/viz/trace?key=default/a", "")
	var file struct {
		TraceEvents []struct {
			Name, Ph string
			PID, TID int
			TS, Dur  float64
			Args     map[string]any
		}
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &file); err != nil {
		t.Fatalf("%v: %s", err, answer.Body)
	}
	spans := map[string][2]float64{} // start and duration by point and subject
	arrows := ""
	for _, e := range file.TraceEvents {
		switch e.Ph {
		case "X":
			spans[e.Name+" "+e.Args["subject"].(string)] = [2]float64{e.TS, e.Dur}
		case "s", "t", "f":
			arrows += e.Ph
		}
	}
	want := map[string][2]float64{
		"TxnCommitted ": {100, 0}, "InputSent w1": {100, 50}, "InputSent w2": {150, 10}, "InputReceived w1": {150, 50}, "HandlerCalled l1": {200, 5},
	}
	if len(spans) != len(want) {
		t.Errorf("spans: got %v, want %v", spans, want)
	}
	for name, span := range want {
		if spans[name] != span {
			t.Errorf("%s: got %v, want %v", name, spans[name], span)
		}
	}
	if sum := spans["InputSent w1"][1] + spans["InputReceived w1"][1] + spans["HandlerCalled l1"][1]; sum != 105 {
		t.Errorf("from commit to handler: the hops add up to %v us, want 105", sum)
	}
	checkTrace(t, answer.Body.Bytes())
	if arrows != "stttf" {
		t.Errorf("arrows: got %s, want stttf", arrows)
	}
	if code := ask(ui, "GET", "/viz/trace", "").Code; code != http.StatusBadRequest {
		t.Errorf("a trace without a revision: got %d, want 400", code)
	}
}

// TestRevisionsUnderWayAtOnceDoNotCrossInATrace follows two of one object that a watcher has at the same time.
func TestRevisionsUnderWayAtOnceDoNotCrossInATrace(t *testing.T) {
	clk := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	log := probe.NewLog(clk, 64)
	pods := probe.New(log).Resource("pods")
	for _, point := range []probe.Point{probe.TxnCommitted, probe.InputSent, probe.InputReceived} {
		for rv := uint64(7); rv < 10; rv++ {
			clk.SetTime(clk.Now().Add(time.Millisecond))
			pods.Subject("w1").Event(point, "MODIFIED", "/registry/pods/default/a", rv, 1, 10)
		}
	}
	if spans := checkTrace(t, ask(New(Config{Log: log}), "GET", "/viz/trace?key=default/a", "").Body.Bytes()); spans != 9 {
		t.Errorf("%d spans, want 9", spans)
	}
}

// TestTheTraceOfARealRunIsValid exports what the recordings of the repository tell of their object.
func TestTheTraceOfARealRunIsValid(t *testing.T) {
	for _, take := range takes.All {
		t.Run(take.Name, func(t *testing.T) {
			start, records, err := take.Load()
			if err != nil {
				t.Fatal(err)
			}
			log := probe.NewLog(clocktesting.NewFakePassiveClock(time.Unix(0, 0)), len(records))
			recording.Load(log, records)
			ui := New(Config{Log: log, Replay: true, Keyframe: start})
			spans := checkTrace(t, ask(ui, "GET", "/viz/trace?resource=pods&key="+take.Key, "").Body.Bytes())
			want := 0
			for _, r := range records {
				if r.Resource == "pods" && r.RV > 0 && r.Key != "" && probe.ObjectKey(r.Key) == take.Key {
					want++
				}
			}
			if spans != want {
				t.Errorf("%d spans for %d records", spans, want)
			}
		})
	}
}

// traceFields are what the Trace Event Format wants of an event, by phase; others are not allowed here.
var traceFields = map[string][]string{
	"X": {"name", "ph", "cat", "pid", "tid", "ts", "dur", "args"},
	"M": {"name", "ph", "pid", "tid", "ts", "args"},
	"s": {"name", "ph", "cat", "pid", "tid", "ts", "id", "bp"},
	"t": {"name", "ph", "cat", "pid", "tid", "ts", "id", "bp"},
	"f": {"name", "ph", "cat", "pid", "tid", "ts", "id", "bp"},
}

// checkTrace holds a file against the Trace Event Format, as Perfetto reads it: every event has the fields of its phase and
// no others, threads are named before they are used, spans on one thread contain each other or lie apart, and an arrow begins,
// goes on and ends in that order, each time within a span. It returns how many spans there are.
func checkTrace(t *testing.T, data []byte) (spans int) {
	t.Helper()
	var file struct {
		TraceEvents     []map[string]any
		DisplayTimeUnit string
	}
	if err := json.Unmarshal(data, &file); err != nil || file.DisplayTimeUnit != "ns" {
		t.Fatalf("%v, times in %q", err, file.DisplayTimeUnit)
	}
	named := map[[2]float64]bool{}
	open := map[[2]float64][]float64{} // ends of the spans that are open, by thread
	arrows := map[string]string{}      // phases so far, by id
	last := 0.0
	for _, e := range file.TraceEvents {
		phase, _ := e["ph"].(string)
		if got := slices.Sorted(maps.Keys(e)); !slices.Equal(got, slices.Sorted(slices.Values(traceFields[phase]))) {
			t.Fatalf("an event %q with %v", phase, got)
		}
		at, ts := [2]float64{e["pid"].(float64), e["tid"].(float64)}, e["ts"].(float64)
		switch phase {
		case "M":
			named[at] = e["args"].(map[string]any)["name"] != ""
			continue
		case "X":
			spans++
			for len(open[at]) > 0 && open[at][len(open[at])-1] <= ts {
				open[at] = open[at][:len(open[at])-1]
			}
			end := ts + e["dur"].(float64)
			if n := len(open[at]); n > 0 && open[at][n-1] < end-1e-6 || end < ts {
				t.Errorf("%v from %v to %v is neither within nor after the span before it on %v, which ends at %v", e["name"], ts, end, at, open[at])
			}
			open[at] = append(open[at], end)
		default:
			if n := len(open[at]); n == 0 || open[at][n-1] < ts {
				t.Errorf("the arrow %v of %v points at no span on %v at %v", phase, e["id"], at, ts)
			}
			arrows[e["id"].(string)] += phase
		}
		if !named[at] || ts < last {
			t.Errorf("%v at %v, after %v, on the thread %v, named: %v", e["name"], ts, last, at, named[at])
		}
		last = ts
	}
	for id, phases := range arrows {
		if strings.ReplaceAll(phases, "t", "") != "sf" || phases[0] != 's' || phases[len(phases)-1] != 'f' {
			t.Errorf("the arrow of %s goes %s", id, phases)
		}
	}
	return spans
}

// TestATraceOpensNoDoors exports records whose texts hold what opens doors, as every export has to (package redact).
func TestATraceOpensNoDoors(t *testing.T) {
	log := probe.NewLog(clocktesting.NewFakePassiveClock(time.Unix(0, 0)), 64)
	pods := probe.New(log).Resource("pods")
	for i, text := range []string{
		"GET /api/v1/namespaces/default/pods/a?access_token=s3cret", "Authorization: Bearer s3cret", "Cookie: session=s3cret",
		`{"kind":"Secret","data":{"password":"s3cret"}}`,
	} {
		pods.Text(probe.RequestReceived, text, "/registry/pods/default/a", uint64(7+i))
	}
	trace := ask(New(Config{Log: log}), "GET", "/viz/trace?key=default/a", "").Body.String()
	if strings.Contains(trace, "s3cret") || strings.Count(trace, redact.Hidden) != 4 {
		t.Errorf("want %s four times, and no secret: %s", redact.Hidden, trace)
	}
}
