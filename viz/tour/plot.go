package tour

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
)

// noVersion and noWatcher stand for what is not known yet: no record is about them.
const (
	noVersion = math.MaxUint64
	noWatcher = "-"
)

// plot is what happened to the pod and to the client. The pod is created twice, at version and at last. The client
// has one watcher until its connection is dropped, another one when it comes back, and, if it then comes too late,
// a third.
type plot struct {
	*Tour
	past

	version, last          uint64
	begun                  probe.Record // the first one about version
	asked, stalled, mended probe.Record // see [Tour]
	until                  uint64       // the record that ends what the client does not read; 0: not yet
	reader, client         string       // watchers: the informer's, and the client's first
	back, again            probe.Record // how the client's second stream was opened, and its third
	refused                probe.Record // the client comes too late; without a number: the ring has kept all
	knew                   uint64       // the version with which it comes too late
	handlers               []string     // that were called with last
}

func newPlot(t *Tour, start *fold.State, records []probe.Record) *plot {
	p := &plot{Tour: t, version: noVersion, last: noVersion, reader: noWatcher, client: noWatcher}
	p.past = past{t.Key, records}
	for id, subject := range pods(start).Subjects {
		name := probe.AgentOf(subject.Said(probe.WireOpened, probe.FieldAgent))
		if subject.Kind == "watcher" && (name == t.Informer || name+"-informer" == t.Informer) {
			p.reader = id
		}
	}
	created := p.all(probe.Query{Points: on(probe.TxnCommitted), Type: "ADDED", Key: p.key})
	if len(created) > 0 {
		p.version = created[0].RV
	}
	if len(created) > 1 {
		p.last = created[len(created)-1].RV
	}
	p.begun = p.first(probe.Query{RV: p.version})
	p.asked = p.newest(probe.Query{Points: on(probe.RequestReceived), To: p.begun.Seq,
		Fields: map[probe.Field]string{probe.FieldMethod: "POST"}})
	for _, r := range p.all(probe.Query{Points: on(probe.HandlerCalled), RV: p.last}) {
		p.handlers = append(p.handlers, feeds(r))
	}
	turned := func(knob, value string) probe.Query {
		return probe.Query{Points: on(probe.KnobTurned), Fields: map[probe.Field]string{
			probe.FieldName: knob, probe.FieldTarget: t.Agent, probe.FieldValue: value}}
	}
	opened := openedBy(t.Agent)
	opened.Subject = "*"
	p.stalled = p.first(turned("line.stall", "true"))
	p.until = p.newest(turned("line.drop", "")).Seq
	opened.To = p.until
	p.client = cmp.Or(p.newest(opened).Subject, noWatcher)
	if p.until == 0 {
		return p
	}
	opened.From, opened.To = p.until, 0
	p.back = p.first(opened)
	p.mended = p.newest(turned("line.cut", "false"))
	if cut := p.newest(turned("line.cut", "true")); cut.Seq > 0 {
		p.refused = p.first(probe.Query{Points: on(probe.FrameWritten), Type: "ERROR", From: cut.Seq})
	}
	if p.refused.Seq > 0 {
		refused := openedBy(t.Agent)
		refused.To = p.refused.Seq
		late := p.newest(refused)
		p.knew = resumedAt(late)
		opened.From = p.refused.Seq
		p.again = p.first(opened)
	}
	return p
}

// pods is the picture of the pods.
func pods(state *fold.State) *fold.Resource {
	return cmp.Or(state.Resources["pods"], &fold.Resource{})
}

// during returns the records that are meant while the client does not read.
func (p *plot) during(m probe.Query) []probe.Record {
	if p.stalled.Seq == 0 {
		return nil
	}
	m.From, m.To = p.stalled.Seq, p.until
	return p.all(m)
}

// change is when the ring takes a change of the pod.
func (p *plot) change() probe.Query { return probe.Query{Points: on(probe.RingAppend), Key: p.key} }

// rests returns the record at which each step rests; one without a number is not in the log yet.
func (p *plot) rests() []probe.Record {
	first := func(point probe.Point, who string) probe.Record {
		return p.first(probe.Query{Points: on(point), RV: p.version, Subject: who})
	}
	full, late, worked := probe.Record{}, p.caughtUp(),
		p.newest(probe.Query{Points: on(probe.HandlerCalled), RV: p.last})
	if len(p.during(p.change())) > 0 {
		full = p.newest(probe.Query{To: p.until})
	}
	if p.refused.Seq > 0 {
		late = called(p.first(probe.Query{Points: on(probe.ResultSent), Subject: p.again.Subject,
			Type: "BOOKMARK"}), p.again)
	}
	stored := p.first(probe.Query{Points: on(probe.IndexerUpdated), RV: p.last, Subject: p.Informer})
	if queued := p.queued(probe.Query{From: stored.Seq + 1}); stored.Seq > 0 && len(queued) > 0 {
		worked = queued[0]
	}
	return []probe.Record{
		p.begun, first(probe.Etcd3ResultSent, ""), first(probe.StoreUpdate, ""), first(probe.DispatchStarted, ""),
		first(probe.InputSent, p.reader), first(probe.ResultSent, p.reader),
		full, p.caughtUp(), late, stored, worked,
	}
}

// caughtUp returns the record with which the client, which has come back, is sent the last that it had missed.
func (p *plot) caughtUp() probe.Record {
	if p.back.Seq == 0 {
		return probe.Record{}
	}
	read := p.first(probe.Query{Points: on(probe.FrameWritten), Subject: p.back.Subject})
	sent := probe.Query{Points: on(probe.ResultSent), Subject: p.back.Subject}
	if read.Seq > 0 {
		sent.To = read.Seq + 1
	}
	return called(p.newest(sent), p.back)
}

// called returns a record about a channel, or that of the log which says whose the channel is, if that is later.
func called(r, opened probe.Record) probe.Record {
	if r.Seq == 0 || opened.Seq == 0 {
		return probe.Record{}
	}
	r.Seq = max(r.Seq, opened.Seq)
	return r
}

// queued returns the records with which the pod comes into workqueues whose handlers are on the stage; not while a
// worker has it: then it waits elsewhere.
func (p *plot) queued(m probe.Query) []probe.Record {
	m.Points, m.Key = on(probe.WorkAdded), p.key
	return slices.DeleteFunc(p.all(m), func(r probe.Record) bool {
		return r.Args[0] == 0 || !slices.Contains(p.handlers, r.Subject)
	})
}

// feeds is whose workqueue a handler fills.
func feeds(handler probe.Record) string { return strings.TrimSuffix(handler.Subject, "-handler") }

// happened says what happened up to the record r at which a step rests, res being the picture there.
func (p *plot) happened(step *Step, r probe.Record, res *fold.Resource, words map[string]any) string {
	ring := p.first(probe.Query{Points: on(probe.RingAppend), RV: p.version})
	places, capacity := ring.Args[1]-ring.Args[0], ring.Args[2]
	queue := func(watcher, name string) fold.Queue {
		if subject := res.Subjects[watcher]; subject != nil && subject.Queues[name] != nil {
			return *subject.Queues[name]
		}
		return fold.Queue{}
	}
	of := func(q fold.Queue) string { return fmt.Sprintf("%d of %d", q.Len, q.Cap) }
	input := queue(p.client, "input")
	end := []string{"open", "taken", "gone", r.Point.String()}
	if input.Len > 0 && input.Len == input.Cap {
		end[0] = "full"
	}
	if len(p.during(probe.Query{Points: on(probe.WatcherForced), Subject: p.client})) > 0 {
		end[0] = "closed"
	}
	if places < capacity {
		end[1] = "room"
	}
	if p.refused.Seq == 0 {
		end[2] = "kept"
	}
	// On a stage with several informers, another one's handler may have been earlier.
	other := slices.DeleteFunc(p.queued(probe.Query{To: r.Seq}),
		func(r probe.Record) bool { return r.RV == p.version })
	if r.Point == probe.HandlerCalled && len(other) > 0 {
		end[3], words["other"] = "both", other[len(other)-1].Subject
	}
	text := step.Happened
	for _, each := range end {
		text = strings.ReplaceAll(text, "{end}", cmp.Or(step.End[each], "{end}"))
	}
	watchers := 0
	for _, subject := range res.Subjects {
		if subject.Kind == "watcher" {
			watchers++
		}
	}
	changes, stored := p.during(p.change()), 0
	for _, change := range changes {
		if len(p.during(probe.Query{Points: on(probe.IndexerUpdated), Subject: p.Informer, RV: change.RV})) > 0 {
			stored++
		}
	}
	words["stored"], words["wait"] = "every change", "nothing held it up"
	if stored != len(changes) {
		words["stored"] = fmt.Sprintf("%d of %d changes", stored, len(changes))
	}
	if len(p.during(probe.Query{Points: on(probe.DispatchBlocked)})) > 0 {
		words["wait"] = "the dispatcher waited a moment"
	}
	words["places"], words["capacity"], words["knew"], words["mark"] = places, capacity, p.knew, r.RV
	words["clients"], words["handler"] = watchers, feeds(r)
	words["picked"] = p.first(probe.Query{Points: on(probe.DispatchStarted), RV: p.version}).Args[0]
	words["input"], words["result"] = of(queue(p.reader, "input")), of(queue(p.client, "result"))
	words["full"] = of(input)
	words["from"] = p.first(probe.Query{Points: on(probe.WatcherAdded),
		Subject: cmp.Or(p.back.Subject, noWatcher)}).RV
	words["pods"] = len(p.all(probe.Query{Points: on(probe.ResultSent), Subject: cmp.Or(p.again.Subject, noWatcher),
		Type: "ADDED", To: r.Seq + 1}))
	return filled(text, words)
}

// filled returns a text with words in the place of their names in braces.
func filled(text string, words map[string]any) string {
	return os.Expand(strings.NewReplacer("{", "${").Replace(text), func(name string) string {
		return fmt.Sprint(words[name])
	})
}
