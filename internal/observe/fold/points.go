package fold

import "listwatch/internal/observe/probe"

// Point is a row of the table of points, with what the fold makes of the whole table. The page's fold is driven by it.
type Point struct {
	*probe.Info
	// Owner is the kind of subject that owns Queue; "": one that is always there.
	Owner string `json:"owner,omitempty"`
	// Ends are the points with which those waits begin that this one ends.
	Ends []string `json:"ends,omitempty"`
	// AboutOpened reports whether the point, which has no queue, is about subjects that open and close.
	AboutOpened bool `json:"aboutOpened,omitempty"`
}

// Points returns the table, in path order.
func Points() (table []Point) {
	for _, p := range probe.Points() {
		row := Point{Info: p.Info(), Owner: ownerKinds[p.Info().Queue], AboutOpened: aboutOpened(p.Info())}
		for _, begun := range ends[row.Name] {
			row.Ends = append(row.Ends, begun.Name)
		}
		table = append(table, row)
	}
	return table
}
