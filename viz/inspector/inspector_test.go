package inspector

import (
	"testing"

	"listwatch/internal/observe/probe"
)

func TestEveryStationAndQueueIsToldOf(t *testing.T) {
	for _, station := range probe.Stations {
		if text := places().Stations[station]; text.What == "" || text.Why == "" || text.Chapter == "" {
			t.Errorf("%s: not told of: %+v", station, text)
		}
	}
	for _, point := range probe.Points() {
		queue := point.Info().Queue
		if text := places().Queues[queue]; queue != "" && (text.Title == "" || text.What == "" || text.Why == "" ||
			text.Chapter == "") {
			t.Errorf("%s: not told of: %+v", queue, text)
		}
	}
}
