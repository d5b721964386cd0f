// Package tour is the room of the tour: one change is followed from kubectl to a controller, station by station, on the
// running program or on a recording. The page tells it (tour.js). What it does to the program is in act.go, where each
// step rests and what it says of the log in plot.go.
package tour

import (
	_ "embed"
	"strings"

	"sigs.k8s.io/yaml"

	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/takes"
)

//go:embed steps.yaml
var stepsFile []byte

// Step is what the tour says at one step.
type Step struct {
	Title   string   `json:"title"`
	Look    []string `json:"look"`            // the stations that it is about
	Queue   string   `json:"queue,omitempty"` // of each watcher: the one that it is about
	Act     bool     `json:"act,omitempty"`   // the visitor stops a client from reading
	Asks    string   `json:"asks,omitempty"`  // said before that
	Purpose string   `json:"purpose"`         // what the stations are for
	// Happened is what came of it in the log, with words in braces from there; "{end}" stands for one of End.
	Happened string            `json:"happened"`
	End      map[string]string `json:"end,omitempty"`
}

// Steps are the steps in order.
var Steps = readSteps()

func readSteps() (steps []Step) {
	if err := yaml.UnmarshalStrict(stepsFile, &steps); err != nil {
		panic("tour: steps.yaml: " + err.Error()) // it is part of the program: a test has read it
	}
	return steps
}

// Take is the recording on which the tour can be given without a program.
const Take = "tour"

// Tour is one tour, as far as it has come. The page keeps it between two acts. Records are named by their numbers; 0 is
// one that is not in the log yet.
type Tour struct {
	Do string `json:"do,omitempty"` // begin, stop, back or end: what is to be done; nothing in an answer

	// Set by the page when it begins, never changed.
	LogID    string `json:"log,omitempty"` // the log that it is in
	From     uint64 `json:"from"`          // the tour's records are those after it
	Informer string `json:"informer"`      // the informer on the stage, as the log names it

	// What is done.
	Key   string `json:"key"`          // of the pod that is created, as the client half knows it
	Name  string `json:"name"`         // of that, in a sentence
	ID    string `json:"id,omitempty"` // of the client that is opened, as the sandbox knows it
	Agent string `json:"agent"`        // what the client calls itself
	Who   string `json:"who"`          // … in a sentence
	Read  uint64 `json:"read,string"`  // the pod's version when the client could take no more

	// What the records say of it.
	Last    uint64   `json:"last,string"` // the pod's version when it was created for the second time
	Asked   uint64   `json:"asked"`       // the pod is asked for
	Stalled uint64   `json:"stalled"`     // the client does not read any more
	Mended  uint64   `json:"mended"`      // the client, which was kept away, may connect again
	Changes []uint64 `json:"changes"`     // the ring takes a change of the pod while the client does not read
	Steps   []Place  `json:"steps"`
}

// Place is where a step rests, and what it says.
type Place struct {
	Rest     uint64 `json:"rest"`
	Asks     string `json:"asks"`
	Purpose  string `json:"purpose"`
	Happened string `json:"happened"` // "" until the step rests
}

// Recorded returns the tour as it is told from the recording [Take].
func Recorded() (Tour, error) {
	take, _ := takes.Find(Take)
	start, records, err := take.Load()
	if err != nil {
		return Tour{}, err
	}
	t := Tour{From: start.Seq, Key: take.Key, Agent: "listwatch-page-1", Informer: "informer"}
	t.find(start, records, len(Steps))
	return t, nil
}

// find finds the first n steps in records, oldest first and without gaps; start is the picture before the first.
func (t *Tour) find(start *fold.State, records []probe.Record, n int) {
	p := newPlot(t, start, records)
	t.Name, t.Who = t.Key[strings.LastIndex(t.Key, "/")+1:], probe.AgentOf(t.Agent)
	t.Last, t.Asked, t.Stalled, t.Mended = p.last, max(1, p.asked.Seq), p.stalled.Seq, p.mended.Seq
	t.Changes, t.Steps = []uint64{}, nil
	for _, r := range p.during(p.change()) {
		t.Changes = append(t.Changes, r.Seq)
	}
	words := map[string]any{"name": t.Name, "who": t.Who, "first": p.version, "last": p.last}
	state := start.Clone()
	for i, r := range p.rests() {
		step := &Steps[i]
		place := Place{Asks: filled(step.Asks, words), Purpose: filled(step.Purpose, words)}
		if i < n && r.Seq > 0 {
			// The two sides of a channel write down their moments in either order; the cursor never goes back for that.
			place.Rest = max(r.Seq, state.Seq)
			state.Apply(records[:place.Rest-records[0].Seq+1])
			place.Happened = p.happened(step, r, pods(state), words)
		}
		t.Steps = append(t.Steps, place)
	}
}
