package inspector

import (
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/observe/fold"
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

// TestKnobsAreOfferedWhereTheyHaveATarget: none has a place left for a name.
func TestKnobsAreOfferedWhereTheyHaveATarget(t *testing.T) {
	client := &fold.Resource{Subjects: map[string]*fold.Subject{"w1": {Texts: map[string]string{
		"WireOpened": "kubectl /api/v1/pods"}}}}
	for _, test := range []struct {
		part part
		want string
	}{
		{part{Station: probe.Watcher, Resource: "pods", Subject: "w1", picture: client},
			`{"name":"line.stall","target":"kubectl","value":"true"}`},
		{part{Station: probe.Reflector, Resource: "pods", picture: client},
			`{"name":"line.drop","target":"listwatch-informer","value":""}`},
		{part{Station: probe.Handler, Resource: "pods", Subject: "observer", picture: client},
			`{"name":"handler.delay","target":"observer","value":"5s"}`},
		{part{Station: probe.Ring, Resource: "nodes", picture: client},
			`{"name":"ring.capacity","target":"nodes","value":"4"}`},
		{part{Station: probe.Wire, Resource: "pods", picture: client}, "allowWatchBookmarks"},
	} {
		all := ""
		for _, k := range test.part.knobs() {
			all += k.Title + ": " + k.Request + "\n"
		}
		if !strings.Contains(all, test.want) || strings.Contains(all, "{subject}") || strings.Contains(all, "{agent}") {
			t.Errorf("%s: got %s want %s", test.part.Station, all, test.want)
		}
	}
	for _, station := range []probe.Station{probe.Watcher, probe.Handler} {
		for _, k := range (&part{Station: station, picture: client}).knobs() {
			assert.True(t, !strings.HasPrefix(k.Turn.Name, "line.") && k.Turn.Name != "handler.delay",
				"%s of no subject offers %+v", station, k.Turn)
		}
	}
}
