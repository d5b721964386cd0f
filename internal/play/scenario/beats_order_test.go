package scenario

import (
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/observe/probe"
)

func TestStreamsAreCountedInTheOrderInWhichTheyWereRegistered(t *testing.T) {
	records := []probe.Record{
		{Seq: 1, Point: probe.WatcherAdded, Subject: "w7"},
		{Seq: 2, Point: probe.WatcherAdded, Subject: "w8"},
		{Seq: 3, Point: probe.WireOpened, Subject: "w8", Text: "story-selector /api/v1/pods"},
		{Seq: 4, Point: probe.WireOpened, Subject: "w7", Text: "story-selector /api/v1/pods"},
	}
	f := newFacts("selector")
	for i := range records {
		f.add(&records[i])
	}
	assert.EqualSlices(t, f.lanes, []string{"w7", "w8"})
}
