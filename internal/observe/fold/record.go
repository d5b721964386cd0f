package fold

import (
	"encoding/json"
	"errors"
	"fmt"

	"listwatch/internal/observe/probe"
)

// AppendRecord appends r's JSON, as in the feed and in recordings, to dst, and returns the extended slice. The JSON has
// only the args that the point declares, and the strings as the fold cuts them.
func AppendRecord(dst []byte, r *probe.Record) []byte {
	written, err := json.Marshal(struct {
		probe.Record
		Args []int `json:"args,omitempty"` // the args that the point declares
	}{bounded(r), r.Args[:len(r.Point.Info().Args.List())]})
	if err != nil {
		panic(fmt.Sprintf("fold: a record is not JSON: %v", err)) // texts and numbers are always valid JSON
	}
	return append(dst, written...)
}

// AppendNext appends the JSON form of r to a JSON list that still lacks its "]", and returns the extended list.
func AppendNext(list []byte, r *probe.Record) []byte {
	if len(list) > 1 {
		list = append(list, ',')
	}
	return AppendRecord(list, r)
}

// ReadRecord returns the record written as JSON, with its strings cut as [AppendRecord] cuts them. If this program does
// not have the point, the record becomes one of [probe.Unknown], with the point's name as its text. ReadRecord returns
// an error if the text is not a record in JSON or names no point.
func ReadRecord(written []byte) (probe.Record, error) {
	var r struct {
		probe.Record
		Point string `json:"point"`
	}
	err := json.Unmarshal(written, &r)
	if err == nil && r.Point == "" {
		err = errors.New("it names no point")
	}
	if err != nil {
		return probe.Record{}, fmt.Errorf("read record %d: %w", r.Seq, err)
	}
	known := false
	if r.Record.Point, known = probe.PointNamed(r.Point); !known {
		r.Args, r.Texts = [4]int{}, probe.NewTexts(map[string]string{string(probe.FieldName): r.Point})
	}
	return bounded(&r.Record), nil
}

// bounded returns the record with its resource, subject, type and key cut to [probe.MaxText] runes.
func bounded(r *probe.Record) probe.Record {
	cut := *r
	for _, text := range []*string{&cut.Resource, &cut.Subject, &cut.Type, &cut.Key} {
		*text = probe.Bound(*text)
	}
	return cut
}

// Point is a row of the table of points, with two facts derived from the whole table. The page's fold uses these rows.
type Point struct {
	*probe.Info
	// Owner is the kind of the point's subject, and so the owner of Queue: usually the kind that opens at the station,
	// but a watcher at the server's side of the wire, and a listener at a handler. "": the subject always exists.
	Owner string `json:"owner,omitempty"`
	// Ends are the points that begin the waits that this point ends.
	Ends []string `json:"ends,omitempty"`
}

// table has a row for each point. The point is the row's index.
var table = newTable()

func newTable() []Point {
	opens := map[probe.Station]string{} // the kind of subject that opens at a station
	ends := map[string][]string{}       // the points that begin a wait, by the point that ends it
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

// Points returns the table: [probe.Unknown], and every point of the program, in path order. It must not be changed.
func Points() []Point { return table }
