package inspector

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"listwatch/internal/probe"
	"listwatch/internal/sandbox"
	"listwatch/viz/stories"
)

// knob is something that can be done to a part: by a button of the page, or by any client with the request.
type knob struct {
	Title   string
	Press   string // selector of the page's button that does it; "": Turn says it
	Request string // the same as a command
	Turn    sandbox.Knob
}

// turn is a knob of the sandbox.
func turn(title, name, target, value string) knob {
	body, err := json.Marshal(sandbox.Knob{Name: name, Target: target, Value: value})
	if err != nil {
		panic(fmt.Sprintf("viz: three strings are not JSON: %v", err))
	}
	request := fmt.Sprintf("curl -X POST -H 'Content-Type: application/json' HOST/viz/knobs -d '%s'", body)
	return knob{Title: title, Request: request, Turn: sandbox.Knob{Name: name, Target: target, Value: value}}
}

var createPod = knob{Title: "Create a pod", Press: "#create-pod", Request: `curl -X POST -H 'Content-Type: application/json' HOST/api/v1/namespaces/default/pods -d '{"metadata":{"name":"a"},"spec":{"containers":[{"name":"main","image":"example.com/main:1"}]}}'`}
var changePod = knob{Title: "Change a label of the marked pod", Press: "#change-pod", Request: `curl -X PATCH -H 'Content-Type: application/merge-patch+json' HOST/api/v1/namespaces/default/pods/a -d '{"metadata":{"labels":{"colour":"green"}}}'`}
var deletePod = knob{Title: "Delete the marked pod", Press: "#delete-pod", Request: `curl -X DELETE 'HOST/api/v1/namespaces/default/pods/a?gracePeriodSeconds=0'`}
var addWatcher = knob{Title: "Add a watcher…", Press: "#add-watcher", Request: `curl -N 'HOST/api/v1/pods?watch=1&allowWatchBookmarks=1'`}

var addHandler = turn("Add a handler called one-more", "handler.add", "one-more", "")

func traffic(rate string) knob {
	return turn("Write "+rate+" changes a second", "traffic.rate", "", rate)
}

// stationKnobs are what can be done at a station.
var stationKnobs = map[probe.Station][]knob{
	probe.HTTP:      {createPod, changePod, deletePod, addWatcher, traffic("20"), traffic("1000"), traffic("0")},
	probe.Etcd:      {createPod, changePod, deletePod},
	probe.Watcher:   {addWatcher, turn("Remove every watcher that was added", "watchers.remove", "", "")},
	probe.Wire:      {addWatcher},
	probe.Processor: {addHandler},
	probe.Listener:  {addHandler},
	probe.Handler:   {createPod, addHandler},
}

// knobs returns what can be done to the part.
func (p *part) knobs() []knob {
	knobs := stationKnobs[p.Station]
	switch p.Station {
	case probe.Etcd, probe.Etcd3:
		knobs = append(knobs[:len(knobs):len(knobs)], turn("Compact: forget all history", "etcd.compact", "", ""), turn("Restart etcd", "etcd.restart", "", ""))
	case probe.Ring:
		for _, n := range []string{"4", "32", "400", "0"} {
			knobs = append(knobs[:len(knobs):len(knobs)], turn(ringTitle(n), "ring.capacity", p.Resource, n))
		}
	case probe.Reflector, probe.Watcher, probe.Wire:
		knobs = append(knobs[:len(knobs):len(knobs)], p.lineKnobs()...)
	case probe.Listener, probe.Handler:
		if p.Subject != "" {
			for _, delay := range []string{"500ms", "5s", "0s"} {
				knobs = append(knobs[:len(knobs):len(knobs)], turn("Let "+p.Subject+" take "+delay+" for each call", "handler.delay", p.Subject, delay))
			}
			knobs = append(knobs[:len(knobs):len(knobs)], turn("Remove "+p.Subject, "handler.remove", p.Subject, ""))
		}
	}
	return append(knobs[:len(knobs):len(knobs)], ageKnobs(p.Station)...)
}

// ageKnobs are the switches whose difference is seen at a station.
func ageKnobs(station probe.Station) (knobs []knob) {
	for _, mode := range stories.Modes {
		if slices.Contains(mode.Seen, station) {
			for _, value := range []string{mode.Before, mode.Today} {
				knobs = append(knobs, turn("Start again with -"+mode.Name+"="+value, "switch", mode.Name, value))
			}
		}
	}
	return knobs
}

func ringTitle(capacity string) string {
	if capacity == "0" {
		return "Let the ring grow and shrink again"
	}
	return "Fix the ring at " + capacity
}

// lineKnobs are about the line of who is looked at: the informer, or the client that a watcher serves.
func (p *part) lineKnobs() []knob {
	agent := "listwatch-informer"
	if subject := p.picture.Subjects[p.Subject]; p.Station == probe.Watcher && subject != nil {
		agent, _, _ = strings.Cut(subject.Texts["WireOpened"], " ")
	} else if p.Station != probe.Reflector {
		return nil
	}
	if agent == "" {
		return nil
	}
	return []knob{
		turn("Drop its connection", "line.drop", agent, ""), turn("Stall its reader", "line.stall", agent, "true"), turn("Let it read again", "line.stall", agent, "false"),
		turn("Cut its connection", "line.cut", agent, "true"), turn("Restore its connection", "line.cut", agent, "false"),
	}
}
