package fold

import "listwatch/internal/observe/probe"

// Point is a row of the table of points, with what the fold makes of the whole table. The page's fold is driven by it.
type Point struct {
	*probe.Info
	// Owner is the kind of subject that owns Queue: the kind that opens at the station which sends into it; "": a
	// subject that is always there.
	Owner string `json:"owner,omitempty"`
	// Ends are the points with which those waits begin that this one ends.
	Ends []string `json:"ends,omitempty"`
	// AboutOpened reports whether the point, which has no queue, is about subjects that open and close: every point of
	// a station where subjects open, of the server's side of the wire, and of a handler.
	AboutOpened bool `json:"aboutOpened,omitempty"`
}

// table has a row for each point; that of point 0 is empty.
var table = newTable()

func newTable() []Point {
	opens := map[probe.Station]string{} // what kind of subject
	owners := map[string]string{}       // by queue
	ends := map[string][]string{}       // by point
	table := []Point{{Info: probe.Point(0).Info()}}
	for _, p := range probe.Points() {
		info := p.Info()
		if info.Op == probe.Open {
			opens[info.Station] = info.Opens
		}
		for _, name := range info.Until.List() {
			ends[name] = append(ends[name], info.Name)
		}
	}
	for _, p := range probe.Points() {
		if info := p.Info(); info.Op == probe.Send || info.Op == probe.Push {
			owners[info.Queue] = opens[info.Station]
		}
	}
	for _, p := range probe.Points() {
		info := p.Info()
		opened := opens[info.Station] != "" || info.Station == probe.Handler || info.Lane == "handlers.WatchServer"
		table = append(table, Point{info, owners[info.Queue], ends[info.Name], info.Queue == "" && opened})
	}
	return table
}

// Points returns the table, in path order.
func Points() []Point { return table[1:] }
