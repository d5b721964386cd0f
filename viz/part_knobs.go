package viz

import "listwatch/internal/probe"

// knob is something that can be done to a part: by a button of the page, and by anybody else with the request.
type knob struct {
	Title   string
	Press   string // selector of the page's button that does it
	Request string // the same as a command
}

var createPod = knob{"Create a pod", "#create-pod", `curl -X POST -H 'Content-Type: application/json' HOST/api/v1/namespaces/default/pods -d '{"metadata":{"name":"a"},"spec":{"containers":[{"name":"main","image":"example.com/main:1"}]}}'`}
var changePod = knob{"Change a label of the marked pod", "#change-pod", `curl -X PATCH -H 'Content-Type: application/merge-patch+json' HOST/api/v1/namespaces/default/pods/a -d '{"metadata":{"labels":{"colour":"green"}}}'`}
var deletePod = knob{"Delete the marked pod", "#delete-pod", `curl -X DELETE 'HOST/api/v1/namespaces/default/pods/a?gracePeriodSeconds=0'`}
var addWatcher = knob{"Add a watcher…", "#add-watcher", `curl -N 'HOST/api/v1/pods?watch=1&allowWatchBookmarks=1'`}

// stationKnobs are what can be done at a station.
var stationKnobs = map[probe.Station][]knob{
	probe.HTTP:    {createPod, changePod, deletePod, addWatcher},
	probe.Etcd:    {createPod, changePod, deletePod},
	probe.Watcher: {addWatcher},
	probe.Wire:    {addWatcher},
	probe.Handler: {createPod},
}

// knobs returns what can be done to the part.
func (p *part) knobs() []knob { return stationKnobs[p.Station] }
