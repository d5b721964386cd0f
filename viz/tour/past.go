package tour

import (
	"strconv"

	"listwatch/internal/observe/probe"
)

// past is what has happened, oldest first.
type past struct {
	key     string // of the tour's pod
	records []probe.Record
}

// on returns a list of points.
func on(points ...probe.Point) []probe.Point { return points }

// openedBy means how the streams of a client were opened.
func openedBy(agent string) probe.Query {
	return probe.Query{Points: on(probe.WireOpened), Fields: map[probe.Field]string{probe.FieldAgent: agent}}
}

// all returns the records of pods, or of no resource, that are meant, oldest first.
func (p *past) all(q probe.Query) (found []probe.Record) {
	for i := range p.records {
		if r := &p.records[i]; (r.Resource == "pods" || r.Resource == "") && q.Matches(r) {
			found = append(found, *r)
		}
	}
	return found
}

// first returns the oldest record that is meant; without a number: there is none.
func (p *past) first(q probe.Query) probe.Record {
	return append(p.all(q), probe.Record{})[0]
}

// newest returns the newest record that is meant; without a number: there is none.
func (p *past) newest(q probe.Query) probe.Record {
	all := append([]probe.Record{{}}, p.all(q)...)
	return all[len(all)-1]
}

// resumedAt returns the version at which a stream was opened, 0 if it was opened without one.
func resumedAt(opened probe.Record) uint64 { return versionOf(opened.Texts.Get(probe.FieldVersion)) }

// versionOf returns a resource version as the log has it.
func versionOf(text string) uint64 {
	rv, _ := strconv.ParseUint(text, 10, 64) // our own server's
	return rv
}
