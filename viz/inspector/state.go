package inspector

import (
	"cmp"
	"context"
	"fmt"
	"iter"
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
		groups = append(groups, fieldGroup{"station", append(varFields(station.Vars), lastFields(station.Count,
			station.Last)...)})
	}
	if p.Station == probe.Ring {
		groups = append(groups, ringFields(p.picture.Ring))
	}
	for name, shelf := range p.shelves() {
		groups = append(groups, shelfFields(name, shelf))
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
	about := varFields(l.Vars)
	for _, point := range slices.Sorted(maps.Keys(l.Texts)) {
		about = append(about, field{point, l.Texts[point]})
	}
	for _, point := range slices.Sorted(maps.Keys(l.Counts)) {
		about = append(about, field{point + " ×", fmt.Sprint(l.Counts[point])})
	}
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

// shelves yields the stores of the station, by name: several informers have one each.
func (p *part) shelves() iter.Seq2[string, *fold.Shelf] {
	return func(yield func(string, *fold.Shelf) bool) {
		for _, name := range slices.Sorted(maps.Keys(p.picture.Shelves)) {
			if strings.HasPrefix(name, string(p.Station)+"/") && !yield(name, p.picture.Shelves[name]) {
				return
			}
		}
	}
}

func shelfFields(name string, shelf *fold.Shelf) fieldGroup {
	group := fieldGroup{name + ": objects, the newest change last", []field{{"in all", fmt.Sprint(shelf.N)}}}
	for _, row := range shelf.Rows {
		group.Fields = append(group.Fields, field{probe.ObjectKey(row.Key), fmt.Sprintf("%d %s", row.RV, row.Type)})
	}
	return group
}

func varFields(vars map[string]int64) []field {
	fields := []field{}
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		fields = append(fields, field{name, fmt.Sprint(vars[name])})
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
