package inspector

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"

	"listwatch/internal/observe/probe"
)

// historyRows is how many records the history leaf shows.
const historyRows = 80

// historyBatch is how many records are taken from the log at once, so that its lock is never held for long.
const historyBatch = 1024

func (i *Inspector) partHistory(_ context.Context, p *part) (templ.Component, error) {
	return partHistoryLeaf(p, i.recent(p.Seq, historyRows, p.recalls)), nil
}

// recalls tells whether a record belongs into the part's history as it is searched.
func (p *part) recalls(r *probe.Record) bool {
	return p.matches(r) && (p.Query == "" || strings.Contains(strings.ToLower(r.Sentence()+" "+r.Point.String()),
		strings.ToLower(p.Query)))
}

// recent returns the newest n records up to seq that match, newest first.
func (i *Inspector) recent(seq uint64, n int, match func(*probe.Record) bool) []probe.Record {
	var found []probe.Record
	log := i.config.Log
	for to := seq; to > 0 && len(found) < n; {
		from := max(to, historyBatch) - historyBatch // (from, to]
		from = max(from, log.Oldest()-1)
		records, ok := log.Since(nil, from, int(max(to, from)-from))
		if !ok || len(records) == 0 {
			break
		}
		for _, r := range slices.Backward(records) {
			if len(found) < n && match(&r) {
				found = append(found, r)
			}
		}
		to = from
	}
	return found
}

// clock writes a time since the log was made as the timeline does.
func clockText(t time.Duration) string {
	return fmt.Sprintf("%d:%06.3f", int(t.Minutes()), (t % time.Minute).Seconds())
}
