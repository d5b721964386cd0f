package inspector

import (
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/observe/probe"
)

func TestEveryStationAndQueueIsToldOf(t *testing.T) {
	for _, station := range probe.Stations {
		text := places().Stations[station]
		assert.True(t, text.What != "" && text.Why != "" && text.Chapter != "", "%s: not told of: %+v", station, text)
	}
	for _, point := range probe.Points() {
		queue := point.Info().Queue
		text := places().Queues[queue]
		assert.True(t, queue == "" || text.Title != "" && text.What != "" && text.Why != "" && text.Chapter != "",
			"%s: not told of: %+v", queue, text)
	}
}
