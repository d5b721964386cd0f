//go:build !race

package viz

import (
	"encoding/json"
	"fmt"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/takes"
)

// TestThePageMeansTheSameRecords asks the page and the program which records of a take are meant by the same queries.
func TestThePageMeansTheSameRecords(t *testing.T) {
	t.Parallel()
	fields := func(name probe.Field, is string) map[probe.Field]string { return map[probe.Field]string{name: is} }
	queries := []probe.Query{
		{}, {Points: []probe.Point{probe.InputSent, probe.ResultSent}}, {Station: probe.Watcher},
		{Resource: "pods", Subject: "w*|cacher"}, {Type: "ADDED|BOOKMARK"}, {Key: "default/my-pod"}, {RV: 40},
		{Fields: fields(probe.FieldAgent, "listwatch-page*")}, {Fields: fields(probe.FieldAgent, "*")},
		{Fields: fields("len", "10")}, {Fields: fields("status", "20*"), From: 2000}, {Subject: "w5", To: 1000},
		{Fields: fields(probe.FieldVersion, "")}, {Resource: "none"},
	}
	take, _ := takes.Find(takes.StoryPrefix + "tour")
	_, records, err := take.Load()
	require.NoError(t, err)
	written := require.Value(json.Marshal(records))(t)
	table := require.Value(json.Marshal(fold.Points()))(t)
	e := newEngine(t, map[string]string{"query": "log/query.js"})
	run[any](t, e, fmt.Sprintf("globalThis.records = JSON.parse(%s); globalThis.infos = new Map(JSON.parse(%s)"+
		".map((each) => [each.name, each])); 0", quote(t, written), quote(t, table)))
	for _, q := range queries {
		want := []uint64{}
		for i := range records {
			if q.Matches(&records[i]) {
				want = append(want, records[i].Seq)
			}
		}
		text := require.Value(json.Marshal(q))(t)
		got := run[[]uint64](t, e, fmt.Sprintf("records.filter((r) => page.query.matches(%s, r, infos.get(r.point)))"+
			".map((r) => r.seq)", text))
		assert.EqualSlices(t, want, got, "%s", text)
	}
}
