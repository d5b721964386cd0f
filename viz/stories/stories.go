// Package stories is the room of what is done to the running pipeline: the gallery of stories, the knobs, the promises, and the
// speaker's notes.
package stories

import (
	"embed"
	"strings"

	"listwatch/internal/probe"
)

// Files are the scripts and styles of the room.
//
//go:embed *.js *.css
var Files embed.FS

// Knob is one thing to do. What Target and Value mean depends on Name; GET /viz/knobs lists them.
type Knob struct {
	Name   string `json:"name"`
	Target string `json:"target"`
	Value  string `json:"value"`
}

// Modes are the switches of the program between what the machinery does today and what it did before, and where on the stage
// the difference is seen. To change one both halves start again, under a new log.
var Modes = []struct {
	Name, Today, Before string
	Use                 string // as the program's -h says it
	Seen                []probe.Station
}{
	{"fifo", "real", "delta", "the queue between reflector and handlers", []probe.Station{probe.FIFO}},
	{"initial", "watchlist", "list", "how reflectors get their first state", []probe.Station{probe.Reflector}},
	{"etcd-watcher", "etcd3", "etcd2", "the watcher between etcd and the cache", []probe.Station{probe.Etcd3}},
	{"dispatch", "two-phase", "sequential", "how the cacher treats a watcher that is full", []probe.Station{probe.Dispatch}},
}

// Scenario is one story that the page offers to play.
type Scenario struct {
	ID      string `json:"id"`
	Title   string `json:"title"`
	Symptom string `json:"symptom"` // what people see at work before they know why
	Watch   string `json:"watch"`   // what to look at while it is played
	Chapter string `json:"chapter"` // folder of the chapter that explains it: "06-cacher"
	Thread  string `json:"thread"`  // upstream's discussion: "kubernetes/kubernetes#125123"; "" if there is none
	// Alone says why it is not played on the pipeline but told from its recording: what it would do to the pipeline.
	Alone string `json:"alone,omitempty"`
	Beats []Beat `json:"beats"` // how it is told
	Take  string `json:"take"`  // the recording that the program brings along
	// Recorded is the place of each beat in that recording.
	Recorded func() ([]Range, error) `json:"-"`
}

// Range is the place of a beat in the records of one run: it plays (From, To] and rests at To.
type Range struct {
	From     uint64 `json:"from"`
	To       uint64 `json:"to"`
	Resource string `json:"resource,omitempty"` // of the record at which it rests
}

// Beat is one step in the telling of a story. Its place in the records of a run comes with the run.
type Beat struct {
	Say      string          `json:"say"`
	Look     []probe.Station `json:"look"` // all other stations are dimmed
	Question *Question       `json:"question,omitempty"`
}

// Question is asked before a beat, and answered by what the beat shows.
type Question struct {
	Ask     string   `json:"ask"`
	Answers []string `json:"answers"`
	Right   int      `json:"right"`         // index of the answer that is true
	Why     string   `json:"why,omitempty"` // why that is so, said when the beat has shown it
}

// ThreadURL is where a thread can be read.
func ThreadURL(ref string) string {
	return "https://github.com/" + strings.Replace(ref, "#", "/issues/", 1)
}
