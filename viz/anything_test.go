package viz

import (
	"math/rand/v2"
	"strings"
	"time"

	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
)

// anything makes random records, of which only the points are always valid: receives before sends, queues that shrink
// by many, subjects that never opened, gaps, and hostile texts. A real run would rarely produce them.
type anything struct {
	rand *rand.Rand
	last probe.Record
}

// newAnything returns a generator whose records depend only on the seed.
func newAnything(seed uint64) *anything { return &anything{rand: rand.New(rand.NewPCG(seed, 0))} }

var hostile = []string{
	"", "plain", "<script>alert(1)</script>", `"quoted" \back\slash`, "line\nbreak\u2028and\u2029more", "\x00\x1f\x7f",
	"😀" + strings.Repeat("x", 238) + "😀😀", strings.Repeat("ü", 300), "\xff\xfe no UTF-8", "__proto__",
	"constructor",
	"&amp;<>",
}

func (g *anything) pick(from ...string) string { return from[g.rand.IntN(len(from))] }

// records returns the next n records.
func (g *anything) records(n int) []probe.Record {
	records := make([]probe.Record, 0, n)
	points := probe.Points()
	for range n {
		r := probe.Record{
			Seq:   g.last.Seq + 1,
			Time:  g.last.Time + time.Duration(g.rand.IntN(1e6)),
			Point: points[g.rand.IntN(len(points))],
			// a recording can contain anything
			Resource: g.pick("pods", "pods", "pods", "nodes", "", "__proto__", "constructor"),
			Subject:  g.pick("w1", "w2", "l1", "cacher", "etcd3-1", "informer", "", "__proto__", "toString"),
			Type:     g.pick("ADDED", "MODIFIED", "DELETED", "BOOKMARK", "Sync", ""),
			Key: g.pick("/registry/pods/default/a", "default/a", "default/b", "",
				hostile[g.rand.IntN(len(hostile))]),
			RV: g.rand.Uint64N(20) * g.rand.Uint64N(1<<60),
			Texts: probe.NewTexts(map[string]string{
				g.pick("agent", "method", "why", "__proto__"): hostile[g.rand.IntN(len(hostile))],
			}),
		}
		for i := range r.Args {
			r.Args[i] = g.rand.IntN(40)
		}
		if g.rand.IntN(200) == 0 {
			r.Seq += g.rand.Uint64N(10) // a gap
		}
		g.last = r
		records = append(records, r)
	}
	return records
}

// feedOf returns records as a page receives them: a JSON array.
func feedOf(records []probe.Record) []byte {
	feed := []byte{'['}
	for i := range records {
		feed = fold.AppendNext(feed, &records[i])
	}
	return append(feed, ']')
}
