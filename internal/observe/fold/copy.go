package fold

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// MaxNumber is the largest number of a record or a picture: the page's are exact up to there.
const MaxNumber = 1 << 53

// Clone returns a state that shares nothing with s.
func (s *State) Clone() *State {
	clone := *s
	clone.Resources = copied(s.Resources, (*Resource).clone)
	return &clone
}

func (r *Resource) clone() *Resource {
	clone := *r
	clone.Stations = copied(r.Stations, func(st *Station) *Station {
		clone := *st
		clone.Vars = maps.Clone(st.Vars)
		return &clone
	})
	clone.Subjects = copied(r.Subjects, (*Subject).clone)
	clone.Points = maps.Clone(r.Points)
	clone.Ring.Cells = slices.Clone(r.Ring.Cells)
	clone.Shelves = copied(r.Shelves, func(sh *Shelf) *Shelf { return &Shelf{N: sh.N, Rows: slices.Clone(sh.Rows)} })
	clone.Waits = copied(r.Waits, slices.Clone[[]Wait])
	return &clone
}

func (s *Subject) clone() *Subject {
	clone := *s
	clone.Vars, clone.Texts, clone.Counts = maps.Clone(s.Vars), maps.Clone(s.Texts), maps.Clone(s.Counts)
	clone.Queues = copied(s.Queues, func(q *Queue) *Queue {
		clone := *q
		clone.Tokens = slices.Clone(q.Tokens)
		return &clone
	})
	return &clone
}

// copied returns a map of copies.
func copied[V any](from map[string]V, clone func(V) V) map[string]V {
	to := make(map[string]V, len(from))
	for key, value := range from {
		to[key] = clone(value)
	}
	return to
}

// Read returns the state that was written as JSON. What the text does not say is as in the beginning: an earlier
// version of the program did not know of it. The error says that the text is not a state, has a number beyond
// [MaxNumber], or holds more than [State.Fits] allows; what would take too much memory is not read at all.
func Read(written []byte) (*State, error) {
	if err := measure(written); err != nil {
		return nil, err
	}
	s := &State{}
	if err := json.Unmarshal(written, s); err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	if s.Seq > MaxNumber || s.T < 0 || s.T > MaxNumber {
		return nil, fmt.Errorf("read state: record %d at %d ns: a number is larger than 2^53, or negative", s.Seq, s.T)
	}
	fill(&s.Resources)
	for name := range s.Resources {
		s.resource(name).fill()
	}
	return s, nil
}

// fill makes what is missing.
func (r *Resource) fill() {
	fill(&r.Stations)
	fill(&r.Subjects)
	fill(&r.Points)
	fill(&r.Shelves)
	fill(&r.Waits)
	list(&r.Ring.Cells, maxCells)
	for name := range r.Stations {
		fill(&r.station(name).Vars)
	}
	for name := range r.Shelves {
		list(&r.shelf(name).Rows, MaxRows)
	}
	maps.DeleteFunc(r.Waits, func(_ string, waits []Wait) bool { return len(waits) == 0 })
	for id := range r.Subjects {
		entry(r.Subjects, id, func() *Subject { return &Subject{} }).fill()
	}
}

func (s *Subject) fill() {
	fill(&s.Vars)
	fill(&s.Texts)
	fill(&s.Counts)
	fill(&s.Queues)
	for name := range s.Queues {
		list(&s.queue(name).Tokens, maxTokens)
	}
}

func fill[V any](m *map[string]V) {
	if *m == nil {
		*m = map[string]V{}
	}
}

// list makes a list of at most n elements, as many as the fold keeps.
func list[E any](l *[]E, n int64) {
	if *l == nil {
		*l = []E{}
	}
	*l = newest(*l, n)
}
