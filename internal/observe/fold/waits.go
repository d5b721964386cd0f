package fold

import (
	"slices"

	"listwatch/internal/observe/probe"
)

// wait ends one wait of each point in info.Ends. It begins the point's own wait unless the record's subject is closed.
func (r *Resource) wait(info *Point, rec *probe.Record) {
	for _, begun := range info.Ends {
		r.endWait(waitKey(begun, rec.Subject), rec)
	}
	if info.Waits == "" || info.Owner != "" && r.Subjects[rec.Subject] == nil {
		return
	}
	key := waitKey(info.Name, rec.Subject)
	r.Waits[key] = append(r.Waits[key], Wait{
		Seq: rec.Seq, T: int64(rec.Time), Point: info.Name, Kind: string(info.Waits), Subject: rec.Subject,
		Lane: info.Lane, On: info.On, Token: tokenOf(rec),
	})
}

func waitKey(point, subject string) string { return point + " " + subject }

func (r *Resource) endWait(key string, rec *probe.Record) {
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

// endedBy reports whether a record that ends waits of this kind ends this one. Many goroutines may work or wait for a
// version at the same time, so the keys must agree and, for a version, the versions. A receiver may report the previous
// hand-over late, so the events must agree; the end of a stream, which has no event, ends any wait for a taker.
func (w *Wait) endedBy(r *probe.Record) bool {
	switch probe.Wait(w.Kind) {
	case probe.ForVersion:
		return w.Key == r.Key && w.RV == r.RV
	case probe.ForTaker:
		return r.Type == "" || w.Token == tokenOf(r)
	case probe.ForReturn:
		return w.Key == r.Key
	}
	return true
}

// endAllWaits drops the waits of a subject that has closed.
func (r *Resource) endAllWaits(subject string) {
	for i := range table {
		if table[i].Waits != "" {
			delete(r.Waits, waitKey(table[i].Name, subject))
		}
	}
}
