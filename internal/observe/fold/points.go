package fold

import "listwatch/internal/observe/probe"

// Point is a row of the table of points, with what the fold makes of the whole table. The page's fold is driven by it.
type Point struct {
	*probe.Info
	// Owner is the kind of subject that the point is about, and that owns Queue: the kind that opens at the station.
	// The server's side of the wire is about watchers, a handler about listeners. "": a subject that is always there.
	Owner string `json:"owner,omitempty"`
	// Ends are the points with which those waits begin that this one ends.
	Ends []string `json:"ends,omitempty"`
}

// table has a row for each point.
var table = newTable()

func newTable() []Point {
	opens := map[probe.Station]string{} // what kind of subject
	ends := map[string][]string{}       // by point
	table := []Point{{Info: probe.Unknown.Info()}}
	for _, p := range probe.Points() {
		info := p.Info()
		if info.Op == probe.Open {
			opens[info.Station] = info.Opens
		}
		for _, name := range info.Until.List() {
			ends[name] = append(ends[name], info.Name)
		}
	}
	opens[probe.Handler] = opens[probe.Listener]
	for _, p := range probe.Points() {
		info := p.Info()
		owner := opens[info.Station]
		if info.Lane == "handlers.WatchServer" {
			owner = opens[probe.Watcher]
		}
		table = append(table, Point{info, owner, ends[info.Name]})
	}
	return table
}

// Points returns the table: [probe.Unknown], and the points that are reported, in path order.
func Points() []Point { return table }
