package fold

import (
	"slices"

	"listwatch/internal/observe/probe"
)

// waiting are the points at which a wait begins, and ends says of each point which waits it ends.
var waiting, ends = waitsOf(probe.Points())

func waitsOf(all []probe.Point) (waiting []*probe.Info, ends map[string][]*probe.Info) {
	ends = map[string][]*probe.Info{}
	for _, p := range all {
		info := p.Info()
		if info.Waits == "" {
			continue
		}
		waiting = append(waiting, info)
		for _, name := range info.Until.List() {
			ends[name] = append(ends[name], info)
		}
	}
	return waiting, ends
}

// wait ends the wait that the point ends, if there is such a wait, and begins the one that it begins. A late record
// about a subject that has gone begins nothing.
func (r *Resource) wait(info *probe.Info, rec *probe.Record) {
	for _, begun := range ends[info.Name] {
		r.endWait(begun, rec)
	}
	opens := aboutOpened(info) || ownerKinds[info.Queue] != ""
	if info.Waits == "" || opens && r.Subjects[rec.Subject] == nil {
		return
	}
	key := waitKey(info, rec.Subject)
	r.Waits[key] = append(r.Waits[key], Wait{
		Seq: rec.Seq, T: int64(rec.Time), Point: info.Name, Kind: string(info.Waits), Subject: bound(rec.Subject),
		Lane: info.Lane,
		On:   info.On, Type: bound(rec.Type), Key: bound(rec.Key), RV: rec.RV,
	})
}

func waitKey(info *probe.Info, subject string) string { return info.Name + " " + subject }

func (r *Resource) endWait(begun *probe.Info, rec *probe.Record) {
	key := waitKey(begun, rec.Subject)
	waits := r.Waits[key]
	n := slices.IndexFunc(waits, func(w Wait) bool { return w.endedBy(rec) })
	if n < 0 {
		return
	}
	if len(waits) == 1 {
		delete(r.Waits, key)
		return
	}
	r.Waits[key] = slices.Delete(waits, n, n+1)
}

// endedBy reports whether a record that ends waits of this kind ends this one. Many goroutines may wait for a version,
// or do some work, at the same time. A hand-over is reported by its receiver, which may report the one before this one
// late; the end of a stream names no event, and ends the wait whatever was to be handed over.
func (w *Wait) endedBy(r *probe.Record) bool {
	switch probe.Wait(w.Kind) {
	case probe.ForVersion:
		return w.Key == bound(r.Key) && w.RV == r.RV
	case probe.ForTaker:
		return r.Type == "" || w.Type == bound(r.Type) && w.Key == bound(r.Key) && w.RV == r.RV
	case probe.ForReturn:
		return w.Key == bound(r.Key)
	}
	return true
}

// endAllWaits drops the waits of a subject that has closed.
func (r *Resource) endAllWaits(subject string) {
	for _, info := range waiting {
		delete(r.Waits, waitKey(info, subject))
	}
}
