package tour

import (
	"regexp"
	"strconv"
	"strings"

	"listwatch/internal/observe/probe"
)

// past is what has happened, oldest first.
type past struct {
	key     string // of the tour's pod
	records []probe.Record
}

// moment says which records are meant: those that have all that is not zero.
type moment struct {
	point    probe.Point
	rv       uint64
	typ, who string // the record's Type and Subject
	text     string // its first words
	served   bool   // it has a subject
	own      bool   // it is about the pod
	from, to uint64 // [from, to)
}

// matches reports whether a record of pods, or of no resource, is meant.
func (m *moment) matches(r *probe.Record, key string) bool {
	return (r.Resource == "pods" || r.Resource == "") &&
		(m.point == 0 || m.point == r.Point) && (m.rv == 0 || m.rv == r.RV) &&
		(m.typ == "" || m.typ == r.Type) && (m.who == "" || m.who == r.Subject) && (!m.served || r.Subject != "") &&
		(m.text == "" || strings.HasPrefix(r.Text+" ", m.text+" ")) &&
		(!m.own || probe.ObjectKey(r.Key) == key) && r.Seq >= m.from && (m.to == 0 || r.Seq < m.to)
}

// all returns the records that are meant, oldest first.
func (p *past) all(m moment) (found []probe.Record) {
	for i := range p.records {
		if m.matches(&p.records[i], p.key) {
			found = append(found, p.records[i])
		}
	}
	return found
}

// first returns the oldest record that is meant; without a number: there is none.
func (p *past) first(m moment) probe.Record {
	return append(p.all(m), probe.Record{})[0]
}

// newest returns the newest record that is meant; without a number: there is none.
func (p *past) newest(m moment) probe.Record {
	all := append([]probe.Record{{}}, p.all(m)...)
	return all[len(all)-1]
}

var resumes = regexp.MustCompile(`resourceVersion=(\d+)`)

// resumedAt returns the version at which a stream was opened, 0 if it was opened without one.
func resumedAt(opened probe.Record) uint64 {
	return versionOf(resumes.FindStringSubmatch(opened.Text + " resourceVersion=0")[1])
}

// versionOf returns a resource version as the log has it.
func versionOf(text string) uint64 {
	rv, _ := strconv.ParseUint(text, 10, 64) // our own server's
	return rv
}
