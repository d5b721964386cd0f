package viz

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"listwatch/internal/kube/redact"
	"listwatch/internal/observe/probe"
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
	t := newTrace(waysOf(u.recordsWanted(want)))
	w.Header().Set("Content-Disposition", `attachment; filename="listwatch-trace.json"`)
	writeJSON(w, http.StatusOK, t)
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

// trace is a file in the Trace Event Format. Spans on one thread must contain each other or lie apart: two revisions that
// are under way at the same place at once are shown on two threads.
type trace struct {
	Events []traceEvent      `json:"traceEvents"`
	Unit   string            `json:"displayTimeUnit"`
	Other  map[string]string `json:"otherData"`

	lanes map[string][]*track // of each station's subject, as many as are needed
	last  int                 // tid that was given last
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

// track is a line of the trace.
type track struct {
	pid, tid int
	ends     []int64 // of the spans that are open, the innermost last
}

// takes reports whether a span fits on the thread, and takes it if it does. Spans come in the order of their beginnings.
func (t *track) takes(from, to int64) bool {
	for len(t.ends) > 0 && t.ends[len(t.ends)-1] <= from {
		t.ends = t.ends[:len(t.ends)-1]
	}
	if len(t.ends) > 0 && t.ends[len(t.ends)-1] < to {
		return false
	}
	t.ends = append(t.ends, to)
	return true
}

// The two halves are the processes of a trace.
const (
	serverProcess = 1
	clientProcess = 2
)

// newTrace writes the ways of some revisions: a span for each hop, on a line of its station and subject, and an arrow through
// those of one revision.
func newTrace(ways [][]hop) *trace {
	t := &trace{Unit: "ns", lanes: map[string][]*track{}, Other: map[string]string{"source": "listwatch"}}
	t.name("process_name", "server half", serverProcess, 0)
	t.name("process_name", "client half", clientProcess, 0)
	hops := slices.Concat(ways...)
	slices.SortStableFunc(hops, func(a, b hop) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.Time, a.Time)) // what contains another first
	})
	left := map[uint64]int{} // hops by revision, of those still to come
	for _, way := range ways {
		left[way[0].RV] = len(way)
	}
	begun := map[uint64]bool{}
	for _, h := range hops {
		left[h.RV]--
		t.add(h, arrow(begun[h.RV], left[h.RV]))
		begun[h.RV] = true
	}
	return t
}

// arrow returns the phase of the arrow's event at a hop, "" for the only one of its revision.
func arrow(begun bool, left int) string {
	switch {
	case !begun && left == 0:
		return ""
	case !begun:
		return "s"
	case left == 0:
		return "f"
	}
	return "t"
}

// add writes a hop, with nothing in its text that opens doors.
func (t *trace) add(h hop, arrow string) {
	h.Text = redact.Text(h.Text)
	info := h.Point.Info()
	on := t.lane(&h)
	start, dur := float64(h.from)/1e3, float64(int64(h.Time)-h.from)/1e3
	t.Events = append(t.Events, traceEvent{
		Name: info.Name, Phase: "X", Cat: string(info.Station), PID: on.pid, TID: on.tid, TS: start, Dur: &dur,
		Args: map[string]any{
			"seq": h.Seq, "rv": fmt.Sprint(h.RV), "key": probe.ObjectKey(h.Key), "type": h.Type, "subject": h.Subject, "says": h.Sentence(),
		},
	})
	if arrow != "" {
		t.Events = append(t.Events, traceEvent{
			Name: "revision", Phase: arrow, Cat: "revision", PID: on.pid, TID: on.tid, TS: start, ID: fmt.Sprint(h.RV), Bind: "e",
		})
	}
}

func (t *trace) name(kind, name string, pid, tid int) {
	t.Events = append(t.Events, traceEvent{Name: kind, Phase: "M", PID: pid, TID: tid, Args: map[string]any{"name": name}})
}

// lane returns the first track of the hop's station and subject on which there is room for it.
func (t *trace) lane(h *hop) *track {
	station := h.Point.Info().Station
	name := strings.TrimSpace(string(station) + " " + h.Subject)
	for _, each := range t.lanes[name] {
		if each.takes(h.from, int64(h.Time)) {
			return each
		}
	}
	t.last++
	added := &track{pid: serverProcess, tid: t.last}
	if slices.Index(probe.Stations, station) > slices.Index(probe.Stations, probe.Wire) {
		added.pid = clientProcess
	}
	added.takes(h.from, int64(h.Time))
	t.lanes[name] = append(t.lanes[name], added)
	t.name("thread_name", name, added.pid, added.tid)
	return added
}
