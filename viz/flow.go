package viz

import (
	"context"
	"time"

	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
)

// Above so many records a second the page's feed carries sums, and of the records those that matter: the page draws how
// many changes pass each way (stage/flow.js).
const (
	flowRecords = 20_000
	flowCalm    = flowRecords / 2        // below it every record is sent again
	flowMemory  = 500 * time.Millisecond // over which the rate is taken
	flowPeriod  = 15 * framePeriod       // between two sums: more often than that, eyes read no figures
	flowTail    = 96                     // of the newest records come with a sum, for the stage and the table
)

// meter knows how much happens. It belongs to a folder and is guarded by its lock.
type meter struct {
	at      time.Time // of the newest note; zero: there was none
	records uint64    // by then
	rate    float64   // records a second; what is older than flowMemory hardly counts
	sums    bool      // pages are told in sums
}

// note is told how many records there have been by now.
func (m *meter) note(now time.Time, records uint64) {
	if span := now.Sub(m.at).Seconds(); span > 0 && !m.at.IsZero() {
		newest := float64(records-m.records) / span
		m.rate += (newest - m.rate) * min(1, span/flowMemory.Seconds())
	}
	m.at, m.records = now, records
	m.sums = m.rate > flowRecords || m.sums && m.rate > flowCalm
}

// flow sends the newest state from time to time, and nothing between. It reports whether to go on.
func (f *feed) flow(ctx context.Context) bool {
	f.sinceSum += framePeriod
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
