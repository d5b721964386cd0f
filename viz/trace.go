package viz

import (
	"fmt"
	"net/http"
	"slices"

	"listwatch/internal/probe"
)

// serveTrace answers GET /viz/trace?key=KEY or ?rv=RV, with &resource= if wanted, with the way of one object, or of one
// revision of it, in the Trace Event Format that Perfetto and chrome://tracing open.
func (u *UI) serveTrace(w http.ResponseWriter, r *http.Request) {
	want, err := readWanted(r.URL.Query())
	if err == nil && want.key == "" && want.rv == 0 {
		err = refuse(http.StatusBadRequest, "whose? want ?key=NAMESPACE/NAME or ?rv=NUMBER")
	}
	if err == nil {
		err = u.knows(r)
	}
	if err != nil {
		writeError(w, err)
		return
	}
	t := newTrace()
	for _, way := range waysOf(u.recordsWanted(want)) {
		t.add(way)
	}
	w.Header().Set("Content-Disposition", `attachment; filename="listwatch-trace.json"`)
	writeJSON(w, http.StatusOK, t)
}

// recordsWanted returns what the log holds of an object, oldest first.
func (u *UI) recordsWanted(want wanted) (records []probe.Record) {
	var batch []probe.Record
	seq := u.config.Log.Oldest() - 1
	for {
		var ok bool
		batch, ok = u.config.Log.Since(batch[:0], seq, foldBatch)
		if !ok { // overrun while we looked: go on with what is left
			seq = u.config.Log.Oldest() - 1
			continue
		}
		if len(batch) == 0 {
			return records
		}
		for i := range batch {
			if want.matches(&batch[i]) {
				records = append(records, batch[i])
			}
		}
		seq = batch[len(batch)-1].Seq
	}
}

// hop is one step of a revision: a record, and how long it took to get there from the step before.
type hop struct {
	probe.Record
	from int64 // time of the step before, in nanoseconds
}

// waysOf groups records by resource version, in the order in which the versions appeared, and finds for each record the
// step before it: what the same subject last did with this revision, or else what was last done with it at all.
// Versions are the storage's; what has none, such as a key in a workqueue, follows no revision and is left out.
func waysOf(records []probe.Record) [][]hop {
	var order []uint64
	byRV := map[uint64][]hop{}
	for _, r := range records {
		if r.RV == 0 {
			continue
		}
		way, known := byRV[r.RV]
		if !known {
			order = append(order, r.RV)
		}
		byRV[r.RV] = append(way, hop{Record: r, from: stepBefore(way, &r)})
	}
	ways := make([][]hop, len(order))
	for i, rv := range order {
		ways[i] = byRV[rv]
	}
	return ways
}

func stepBefore(way []hop, r *probe.Record) int64 {
	if len(way) == 0 {
		return int64(r.Time)
	}
	for _, before := range slices.Backward(way) {
		if before.Subject == r.Subject {
			return int64(before.Time)
		}
	}
	return int64(way[len(way)-1].Time)
}

// trace is a file in the Trace Event Format.
type trace struct {
	Events []traceEvent      `json:"traceEvents"`
	Unit   string            `json:"displayTimeUnit"`
	Other  map[string]string `json:"otherData"`

	threads map[string]int // by lane
}

// traceEvent is one line of it. Times are microseconds.
type traceEvent struct {
	Name  string         `json:"name"`
	Phase string         `json:"ph"` // X: a span; M: a name; s, t, f: the arrow that leads from span to span
	Cat   string         `json:"cat,omitempty"`
	PID   int            `json:"pid"`
	TID   int            `json:"tid"`
	TS    float64        `json:"ts"`
	Dur   *float64       `json:"dur,omitempty"`
	ID    string         `json:"id,omitempty"`
	Bind  string         `json:"bp,omitempty"`
	Args  map[string]any `json:"args,omitempty"`
}

// The two halves are the processes of a trace.
const (
	serverProcess = 1
	clientProcess = 2
)

func newTrace() *trace {
	t := &trace{Events: []traceEvent{}, Unit: "ns", threads: map[string]int{}, Other: map[string]string{"source": "listwatch"}}
	for pid, name := range map[int]string{serverProcess: "server half", clientProcess: "client half"} {
		t.Events = append(t.Events, traceEvent{Name: "process_name", Phase: "M", PID: pid, Args: map[string]any{"name": name}})
	}
	slices.SortFunc(t.Events, func(a, b traceEvent) int { return a.PID - b.PID })
	return t
}

// add writes one revision's way: a span for each hop, on the lane of its station and subject, and the arrow through them.
func (t *trace) add(way []hop) {
	for i, h := range way {
		info := h.Point.Info()
		pid, tid := t.lane(info.Station, h.Subject)
		start, dur := float64(h.from)/1e3, float64(int64(h.Time)-h.from)/1e3
		t.Events = append(t.Events, traceEvent{
			Name: info.Name, Phase: "X", Cat: string(info.Station), PID: pid, TID: tid, TS: start, Dur: &dur,
			Args: map[string]any{
				"seq": h.Seq, "rv": fmt.Sprint(h.RV), "key": probe.ObjectKey(h.Key), "type": h.Type, "subject": h.Subject, "says": h.Sentence(),
			},
		})
		if len(way) == 1 {
			continue
		}
		phase := "t"
		switch i {
		case 0:
			phase = "s"
		case len(way) - 1:
			phase = "f"
		}
		t.Events = append(t.Events, traceEvent{
			Name: "revision", Phase: phase, Cat: "revision", PID: pid, TID: tid, TS: start, ID: fmt.Sprint(h.RV), Bind: "e",
		})
	}
}

// lane returns the process and the thread on which a station's subject is shown, and names it at the first time.
func (t *trace) lane(station probe.Station, subject string) (pid, tid int) {
	pid = serverProcess
	if slices.Index(probe.Stations, station) > slices.Index(probe.Stations, probe.Wire) {
		pid = clientProcess
	}
	name := string(station)
	if subject != "" {
		name += " " + subject
	}
	tid, known := t.threads[name]
	if !known {
		tid = len(t.threads) + 1
		t.threads[name] = tid
		t.Events = append(t.Events, traceEvent{Name: "thread_name", Phase: "M", PID: pid, TID: tid, Args: map[string]any{"name": name}})
	}
	return pid, tid
}
