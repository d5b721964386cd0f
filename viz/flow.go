package viz

import (
	"context"
	"time"

	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
)

// Above so many events or records a second the page's feed carries sums, and of the records those that matter: the page
// draws how many changes pass each way (stage/flow.js).
const (
	flowEvents   = 2000             // a second
	flowRecords  = 20_000           // a second
	flowCalm     = 0.7              // below this part of them for flowPatience, every record is sent again
	flowPatience = 2 * time.Second  // so that the feed does not change with every breath of the rate
	flowPeriod   = 15 * framePeriod // between two sums: more often than that, eyes read no figures
	flowTail     = 96               // of the newest records come with a sum, for the stage, the table and the sentence
	meterSpan    = time.Second      // over which the rate is taken
)

// meter knows how much happens. It belongs to a folder and is guarded by its lock.
type meter struct {
	marks []meterMark // of the last meterSpan, oldest first
	sums  bool        // pages are told in sums
	calm  time.Time   // since when there has been less; zero: there has not
}

type meterMark struct {
	at              time.Time
	events, records uint64
}

// note is told how many events and records there have been by now.
func (m *meter) note(now time.Time, events, records uint64) {
	m.marks = append(m.marks, meterMark{now, events, records})
	for len(m.marks) > 2 && now.Sub(m.marks[1].at) >= meterSpan {
		m.marks = m.marks[1:]
	}
	first, span := m.marks[0], now.Sub(m.marks[0].at)
	if span < meterSpan/2 {
		return
	}
	rate, all := float64(events-first.events)/span.Seconds(), float64(records-first.records)/span.Seconds()
	load := max(rate/flowEvents, all/flowRecords)
	switch {
	case load > 1:
		m.sums, m.calm = true, time.Time{}
	case !m.sums || load >= flowCalm:
		m.calm = time.Time{}
	case m.calm.IsZero():
		m.calm = now
	case now.Sub(m.calm) >= flowPatience:
		m.sums = false
	}
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
func (f *feed) kept(from, to uint64, flags []flag) []byte {
	tail := max(from, to-min(to, flowTail)) // after this record all are told
	out := []byte{'['}
	keep := func(from, to uint64) {
		for r := range f.log.Between(from, to) {
			if r.Seq > tail || r.Anomaly() || f.follows.some() && f.follows.matches(r) {
				out = appendNext(out, r)
			}
		}
	}
	at := tail
	if f.follows.some() {
		at = from
	}
	for _, each := range flags {
		if each.Seq <= at {
			keep(each.Seq-1, each.Seq)
		}
	}
	keep(at, to)
	return append(out, ']')
}

// appendNext appends a record to a list as JSON.
func appendNext(out []byte, r *probe.Record) []byte {
	if len(out) > 1 {
		out = append(out, ',')
	}
	return fold.AppendRecord(out, r)
}
