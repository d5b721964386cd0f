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

func (i *Inspector) partHistory(_ context.Context, p *part) (templ.Component, error) {
	names, query := i.Log.Names(), strings.ToLower(p.Query)
	recalls := func(r *probe.Record) bool {
		return p.matches(r) && (query == "" ||
			strings.Contains(strings.ToLower(names.Sentence(r)+" "+r.Point.String()), query))
	}
	return partHistoryLeaf(p, i.recent(p.Until, historyRows, recalls), names), nil
}

// recent returns the newest n records up to seq that match, newest first.
func (i *Inspector) recent(seq uint64, n int, match func(*probe.Record) bool) []probe.Record {
	var found []probe.Record
	log := i.Log
	for r := range log.Between(log.Oldest()-1, seq) {
		if !match(r) {
			continue
		}
		if found = append(found, *r); len(found) == 2*n {
			found = slices.Delete(found, 0, n)
		}
	}
	found = found[max(0, len(found)-n):]
	slices.Reverse(found)
	return found
}

// clock writes a time since the log was made as the timeline does.
func clockText(t time.Duration) string {
	return fmt.Sprintf("%d:%06.3f", int(t.Minutes()), (t % time.Minute).Seconds())
}
