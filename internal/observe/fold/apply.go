package fold

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strings"

	"listwatch/internal/observe/probe"
)

const (
	bookmark = "BOOKMARK" // the type of a record that only shows that all changes up to its version were delivered
	cacher   = "cacher"   // the subject of every cacher, and of its store and its reflector
)

// Apply folds records, which must be in the order of the log. It skips records up to s.Seq, so batches may overlap. If
// records are missing, it adds their number to s.Lost, and drops the queues, rows, cells and waits, which are then
// unknown. It keeps no reference to the records.
func (s *State) Apply(records []probe.Record) {
	for i := range records {
		s.apply(&records[i])
	}
}

func (s *State) apply(written *probe.Record) {
	if written.Seq <= s.Seq {
		return
	}
	cut := bounded(written)
	r := &cut
	if missing := r.Seq - s.Seq - 1; missing > 0 {
		s.forget(missing)
	}
	s.Seq = r.Seq
	s.T = int64(r.Time)
	if r.Point == probe.Unknown {
		return
	}
	info := &table[r.Point]
	res := s.resource(r.Resource)
	if r.Point == probe.CrowdLookedAt {
		res.crowd(r)
		r.Texts = "" // crowd has already set the watchers' Fill
	}
	last := Last{Seq: s.Seq, T: s.T, Point: info.Name, Subject: r.Subject, Token: tokenOf(r), Texts: r.Texts}
	res.Points[info.Name]++
	res.station(string(info.Station)).note(last, info, r)
	switch info.Op {
	case probe.Open:
		opened := newSubject(info.Opens, r.Seq)
		opened.Began = r.RV
		res.Subjects[r.Subject] = opened
	case probe.Close:
		delete(res.Subjects, r.Subject)
		res.endAllWaits(r.Subject)
		return
	}
	res.wait(info, r)
	if subject := s.subjectOf(res, info, r); subject != nil {
		subject.note(last, info, r)
		subject.move(info, r)
		if info.Op == probe.Look {
			subject.look(info, r)
		}
	}
	res.applySpecial(info, r)
}

// note counts a record, and keeps it as the station's newest, with its version and args.
func (st *Station) note(last Last, info *Point, r *probe.Record) {
	st.Count++
	st.Last = last
	if r.RV != 0 {
		st.RV = r.RV
	}
	keepArgs(st.Vars, info, r)
}

// note counts a record of a point, and keeps it as the subject's newest, with its version, texts and args.
func (sub *Subject) note(last Last, info *Point, r *probe.Record) {
	sub.Last = last
	sub.Counts[info.Name]++
	if sub.has(info) {
		sub.RV = cmp.Or(r.RV, sub.RV)
	}
	if r.Texts != "" {
		sub.Texts[info.Name] = last.Texts
	}
	keepArgs(sub.Vars, info, r)
}

// has reports whether a record sets the subject's version. A watcher has the version of its last written frame. Any
// other subject that opens has the version of its last record. The rest get it only from a reflector's records:
// a resync hands an informer older versions again.
func (sub *Subject) has(info *Point) bool {
	if sub.Kind == "watcher" {
		return info.Name == "FrameWritten"
	}
	return sub.Kind != "" || info.Station == probe.Reflector
}

// move moves a token into or out of one of the subject's queues, if the point is about a queue.
func (sub *Subject) move(info *Point, r *probe.Record) {
	token, length, capacity := tokenOf(r), int64(r.Args[0]), int64(r.Args[1])
	switch info.Op {
	case probe.Send, probe.Recv:
		sub.queue(info.Queue).transfer(info.Op == probe.Send, token, capacity)
	case probe.Push, probe.Pop:
		sub.queue(info.Queue).change(token, length, capacity)
	}
}

// look sets the queues' lengths and drops their tokens, which may have left while the lane was quiet. Fill becomes 0.
func (sub *Subject) look(info *Point, r *probe.Record) {
	sub.Fill = 0
	for i, name := range info.Args.List() {
		q := sub.queue(name)
		q.Cap = sub.Vars["capacity"]
		q.Tokens = q.Tokens[:0]
		q.Sent = q.Received + int64(r.Args[i])
		q.settle(int64(r.Args[i]))
	}
}

// crowd sets how full each watcher is, and drops a quiet one's wait for its client. The record lists the watchers in
// the order in which they began, so crowd can match them only if the picture has all of them.
func (r *Resource) crowd(rec *probe.Record) {
	fill, err := base64.StdEncoding.DecodeString(rec.Texts.Get(probe.FieldFill))
	watchers := r.opened("watcher")
	if err != nil || len(watchers) != rec.Args[0] {
		return
	}
	for i, id := range watchers[:min(len(watchers), len(fill))] {
		r.Subjects[id].Fill = min(int64(fill[i]), 101)
		if fill[i] > 0 {
			delete(r.Waits, waitKey(probe.ResultReceived.String(), id))
		}
	}
}

// subjectOf returns the record's subject, or nil. A queue's record is always about a subject, whose name may be "". A
// subject that always exists is created by its first record. After a gap, a send also creates one that opens, because
// the log may have lost the opening. Otherwise the result is nil, so a late record of a closed subject moves no queue.
func (s *State) subjectOf(res *Resource, info *Point, r *probe.Record) *Subject {
	if r.Subject == "" && info.Queue == "" {
		return nil
	}
	if subject, ok := res.Subjects[r.Subject]; ok {
		return subject
	}
	if info.Owner != "" && (s.Lost == 0 || info.Op != probe.Send) {
		return nil
	}
	subject := newSubject(info.Owner, 0)
	res.Subjects[r.Subject] = subject
	return subject
}

// forget applies a gap: it drops the contents of queues, shelves and the ring, and the waits, because they are unknown.
// It keeps the subjects, because most of them are probably still open.
func (s *State) forget(missing uint64) {
	s.Lost += missing
	for _, res := range s.Resources {
		for _, subject := range res.Subjects {
			clear(subject.Queues)
		}
		for _, shelf := range res.Shelves {
			shelf.Rows = []Row{} // the gap may have removed any row
		}
		res.Ring.Cells = []Cell{}
		clear(res.Waits)
	}
}

// applySpecial applies the few facts that the table of points cannot express.
func (r *Resource) applySpecial(info *Point, rec *probe.Record) {
	switch rec.Point {
	case probe.RingAppend, probe.RingResize, probe.RVAdvanced, probe.CacheReplaced:
		r.Ring.apply(info, rec)
	case probe.ReflectorReceived:
		r.takeResult(rec)
	}
	switch rec.Point {
	case probe.StoreUpdate, probe.IndexerUpdated:
		r.shelf(ShelfName(info.Station, rec.Subject)).update(rec, arg(info, rec, "n"))
	case probe.StoreHolds, probe.IndexerHolds:
		r.shelf(ShelfName(info.Station, rec.Subject)).hold(rec, arg(info, rec, "n"))
	case probe.CacheReplaced:
		r.Shelves[ShelfName(probe.Store, rec.Subject)] = &Shelf{N: arg(info, rec, "n"), Rows: []Row{}}
	case probe.CacherStopped:
		r.stop()
	}
}

// stop removes the server half from the picture, but keeps the counters of its stations.
func (r *Resource) stop() {
	r.Ring = Ring{Cells: []Cell{}}
	delete(r.Shelves, ShelfName(probe.Store, cacher))
	for id, subject := range r.Subjects {
		if id == cacher || subject.Kind == "watcher" || subject.Kind == "watchchan" {
			delete(r.Subjects, id)
			r.endAllWaits(id)
		}
	}
	for _, station := range []probe.Station{probe.Etcd3, probe.Ring, probe.Store, probe.Dispatch, probe.Watcher} {
		clear(r.station(string(station)).Vars)
	}
}

// apply sets the ring's bounds and versions, adds or clears cells, and keeps the newest ones between the bounds.
// RVAdvanced moves Newest alone.
func (ring *Ring) apply(info *Point, r *probe.Record) {
	ring.Newest = max(ring.Newest, r.RV)
	if r.Point == probe.RVAdvanced {
		return
	}
	ring.Start, ring.End = arg(info, r, "start"), arg(info, r, "end")
	ring.Capacity = arg(info, r, "capacity")
	switch r.Point {
	case probe.RingAppend:
		ring.Oldest = uint64(arg(info, r, "oldest"))
		ring.Cells = append(ring.Cells, Cell{Pos: ring.End - 1, T: int64(r.Time), Token: tokenOf(r)})
	case probe.RingResize:
		ring.Oldest = uint64(arg(info, r, "oldest"))
	case probe.CacheReplaced:
		ring.Oldest, ring.Newest = r.RV, r.RV
		ring.Cells = []Cell{}
	}
	ring.Cells = newest(ring.Cells, min(ring.End-ring.Start, maxCells))
}

// takeResult counts a receive from resultChan when the cacher's own reflector reports an event, because the receiver at
// the channel itself reports nothing. The reflector reads the youngest watch of the resource.
func (r *Resource) takeResult(rec *probe.Record) {
	if rec.Subject != cacher {
		return
	}
	if youngest := r.youngest("watchchan"); youngest != nil {
		q := youngest.queue("etcd3-result")
		q.transfer(false, Token{}, q.Cap)
	}
}

// youngest returns the last opened subject of a kind, or nil if there is none. It does not sort the subjects, because
// there may be a thousand.
func (r *Resource) youngest(kind string) (best *Subject) {
	id := ""
	for each, sub := range r.Subjects {
		later := best == nil || sub.Opened > best.Opened || sub.Opened == best.Opened && each < id
		if sub.Kind == kind && later {
			id, best = each, sub
		}
	}
	return best
}

// opened returns the subjects of a kind in the order in which they opened.
func (r *Resource) opened(kind string) (ids []string) {
	for id, sub := range r.Subjects {
		if sub.Kind == kind {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int {
		return cmp.Or(cmp.Compare(r.Subjects[a].Opened, r.Subjects[b].Opened), strings.Compare(a, b))
	})
	return ids
}

// update sets the number of objects, and puts one on the shelf or takes it off. A bookmark has no key, and changes no
// row. Any other record without a key replaced the whole store, so the rows are unknown.
func (sh *Shelf) update(r *probe.Record, n int64) {
	sh.N = n
	if r.Key == "" {
		if r.Type != bookmark {
			sh.Rows = []Row{}
		}
		return
	}
	rows := slices.DeleteFunc(sh.Rows, func(row Row) bool { return row.Key == r.Key })
	if !strings.HasPrefix(strings.ToUpper(r.Type), "DELETE") {
		rows = append(rows, Row{Token: tokenOf(r), Seq: r.Seq})
	}
	sh.Rows = newest(rows, MaxRows)
}

// hold adds a row for an object that was on the shelf without one. The object's version determines the row's place.
func (sh *Shelf) hold(r *probe.Record, n int64) {
	sh.N = n
	at := len(sh.Rows)
	for i, row := range sh.Rows {
		if row.Key == r.Key {
			return
		}
		if at == len(sh.Rows) && row.RV > r.RV {
			at = i
		}
	}
	sh.Rows = newest(slices.Insert(sh.Rows, at, Row{Token: tokenOf(r), Seq: r.Seq}), MaxRows)
}

// keepArgs keeps the record's args by name, unless they are the lengths of queues.
func keepArgs(vars map[string]int64, info *Point, r *probe.Record) {
	if info.Queue != "" || info.Op == probe.Look && r.Subject != "" {
		return
	}
	for i, name := range info.Args.List() {
		vars[name] = int64(r.Args[i])
	}
}

// arg returns the arg called name, or 0 if the point has none.
func arg(info *Point, r *probe.Record, name string) int64 {
	for i, known := range info.Args.List() {
		if known == name {
			return int64(r.Args[i])
		}
	}
	return 0
}
