package viz

import (
	"context"
	"time"

	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
)

// Above so many records a second the page's feed carries sums, and of the records those that matter: the page draws how
// many changes pass each way (stage/flow.js). A page that reads slowly counts those that come while it is written to,
// and so is sent sums earlier.
const (
	flowRecords = 20_000
	flowCalm    = flowRecords / 2        // below it every record is sent again
	flowMemory  = 500 * time.Millisecond // over which the rate is taken
	flowPeriod  = 15 * framePeriod       // between two sums: more often than that, eyes read no figures
	flowTail    = 96                     // of the newest records come with a sum, for the stage and the table
)

// measure takes the rate, and decides by it whether the page is sent sums.
func (f *feed) measure() {
	last := f.log.Last()
	newest := float64(last-f.counted) / framePeriod.Seconds()
	f.counted = last
	f.rate += (newest - f.rate) * framePeriod.Seconds() / flowMemory.Seconds()
	f.sums = f.rate > flowRecords || f.sums && f.rate > flowCalm
}

// flow sends the newest state from time to time, and nothing between. It reports whether to go on.
func (f *feed) flow(ctx context.Context) bool {
	if f.sinceSum >= flowPeriod && f.log.Last() > f.seq {
		f.sinceSum = 0
		return f.coalesced(ctx) == nil
	}
	return f.silent < bookmarkPeriod || f.bookmark() == nil
}

// kept returns as JSON what a page is told of the records in (from, to] although it is sent their sum: every anomaly,
// what it follows, and the newest few. What has left the log by now is left out: the page could not ask for it either.
func (f *feed) kept(from, to uint64) []byte {
	out := []byte{'['}
	for r := range f.log.Between(from, to) {
		if r.Seq+flowTail > to || r.Anomaly() || f.follows.some() && f.follows.matches(r) {
			out = appendNext(out, r)
		}
	}
	return append(out, ']')
}

// appendNext appends a record to a list as JSON.
func appendNext(out []byte, r *probe.Record) []byte {
	if len(out) > 1 {
		out = append(out, ',')
	}
	return fold.AppendRecord(out, r)
}
