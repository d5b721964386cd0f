package inspector

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
	"listwatch/viz/stage"
)

// field is one value of the state leaf. Name is unique within its group; the page marks what has changed by it.
type field struct {
	Name  string
	Value string
}

// fieldGroup is what belongs together: a station's variables, one queue, one subject.
type fieldGroup struct {
	Title  string
	Fields []field
}

func (i *Inspector) partState(_ context.Context, p *part) (templ.Component, error) {
	return partStateLeaf(p.fields()), nil
}

// fields returns what is known of the part.
func (p *part) fields() []fieldGroup {
	var groups []fieldGroup
	station := p.picture.Stations[string(p.Station)]
	if station != nil && p.Queue == "" && p.Subject == "" {
		groups = append(groups, fieldGroup{"station", append(fieldsOf(station.Vars, ""), lastFields(station.Count,
			station.Last)...)})
	}
	if p.Station == probe.Ring {
		groups = append(groups, ringFields(p.picture.Ring))
	}
	for _, name := range slices.Sorted(maps.Keys(p.picture.Shelves)) { // several informers have one each
		if strings.HasPrefix(name, string(p.Station)+"/") {
			groups = append(groups, shelfFields(name, p.picture.Shelves[name]))
		}
	}
	for _, each := range p.subjects() {
		if p.Subject == "" || each.ID == p.Subject {
			groups = append(groups, p.subjectFields(each)...)
		}
	}
	return groups
}

func (p *part) subjectFields(l stage.Lane) []fieldGroup {
	var groups []fieldGroup
	for _, name := range slices.Sorted(maps.Keys(l.Queues)) {
		if p.Queue == "" || p.Queue == name {
			groups = append(groups, queueFields(l.ID, name, l.Queues[name]))
		}
	}
	if p.Queue != "" {
		return groups
	}
	about := slices.Concat(fieldsOf(l.Vars, ""), fieldsOf(l.Texts, ""), fieldsOf(l.Counts, " ×"))
	if l.RV != 0 {
		about = append(about, field{"rv", fmt.Sprint(l.RV)})
	}
	return append(groups, fieldGroup{strings.TrimSpace(l.Kind + " " + l.ID), about})
}

func queueFields(id, name string, q *fold.Queue) fieldGroup {
	capacity := fmt.Sprint(q.Cap)
	if q.Cap == 0 {
		capacity = "0: a hand-over, or without limit"
	}
	fields := []field{
		{"len", fmt.Sprint(q.Len)}, {"cap", capacity}, {"most", fmt.Sprint(q.High)},
		{"sent", fmt.Sprint(q.Sent)}, {"received", fmt.Sprint(q.Received)},
	}
	for i, token := range q.Tokens {
		fields = append(fields, field{fmt.Sprintf("[%d]", i), fmt.Sprintf("%s %s %d", token.Type,
			probe.ObjectKey(token.Key), token.RV)})
	}
	title := places().Queues[name].Title
	if id != "" {
		title += " of " + id
	}
	return fieldGroup{title, fields}
}

func ringFields(r fold.Ring) fieldGroup {
	slot := func(position int64) string {
		if r.Capacity == 0 {
			return fmt.Sprint(position)
		}
		return fmt.Sprintf("%d, in slot %d", position, position%r.Capacity)
	}
	return fieldGroup{"ring", []field{
		{"capacity", fmt.Sprint(r.Capacity)}, {"startIndex", slot(r.Start)}, {"endIndex", slot(r.End)},
		{"holds", fmt.Sprint(r.End - r.Start)},
		{"a watch may start from", fmt.Sprint(r.Oldest)}, {"the cache is at", fmt.Sprint(r.Newest)},
	}}
}

func shelfFields(name string, shelf *fold.Shelf) fieldGroup {
	group := fieldGroup{name + ": objects, the newest change last", []field{{"in all", fmt.Sprint(shelf.N)}}}
	for _, row := range shelf.Rows {
		group.Fields = append(group.Fields, field{probe.ObjectKey(row.Key), fmt.Sprintf("%d %s", row.RV, row.Type)})
	}
	return group
}

// fieldsOf returns values in the order of their names, each name with a suffix.
func fieldsOf[V any](values map[string]V, suffix string) []field {
	fields := []field{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		fields = append(fields, field{name + suffix, fmt.Sprint(values[name])})
	}
	return fields
}

func lastFields(count uint64, last fold.Moment) []field {
	fields := []field{{"records", fmt.Sprint(count)}}
	if last.Point == "" {
		return fields
	}
	about := strings.Join(strings.Fields(fmt.Sprint(last.Subject, " ", last.Type, " ", probe.ObjectKey(last.Key))), " ")
	return append(fields, field{"last", last.Point}, field{"last about", cmp.Or(about, "–")})
}
