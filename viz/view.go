package viz

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"listwatch/internal/fold"
	"listwatch/internal/probe"
	"listwatch/internal/rules"
	"listwatch/internal/takes"
)

// firstResource is what the stage shows first.
const firstResource = "pods"

// view is what the scenery is drawn from before the page's script takes over: the picture of one resource.
type view struct {
	Seq       uint64
	Mode      string // of the body's data-mode: "live", "held" or "replay"
	World     bool   // something runs that can be held
	Resource  string
	Resources []string
	Take      string // a recording to be shown instead of the log, by name
	Sandbox   bool   // something runs that can be acted on
	Rules     bool   // somebody checks the promises
	Scenarios []Scenario
	Promises  []rules.Rule
	Figure    bool // the page is a mini-stage in a chapter: the drawing and the sentence only
	picture   *fold.Resource
}

func newView(state *fold.State, resource string) view {
	shared := state.Clone()
	v := view{Seq: shared.Seq, Resource: resource, Resources: []string{resource}, picture: shared.Resources[resource]}
	for name := range shared.Resources {
		if name != "" && name != resource {
			v.Resources = append(v.Resources, name)
		}
	}
	slices.Sort(v.Resources)
	if v.picture == nil {
		v.picture = &fold.Resource{}
	}
	return v
}

// station returns what is known of a station, zero if nothing is.
func (v view) station(name probe.Station) fold.Station {
	if st := v.picture.Stations[string(name)]; st != nil {
		return *st
	}
	return fold.Station{}
}

// queue returns the queue of that name: the informer's, if it has one, or else the youngest one's.
func (v view) queue(name string) fold.Queue {
	if informer := v.picture.Subjects[informerID]; informer != nil && informer.Queues[name] != nil {
		return *informer.Queues[name]
	}
	var found fold.Queue
	var opened uint64
	for _, subject := range v.picture.Subjects {
		if q := subject.Queues[name]; q != nil && subject.Opened >= opened {
			found, opened = *q, subject.Opened
		}
	}
	return found
}

// lane is one subject of a kind, with its queues.
type lane struct {
	ID    string
	Name  string
	Index int
	*fold.Subject
}

// queueOf returns the lane's queue of that name, empty if nothing has passed it yet.
func (l lane) queueOf(name string) fold.Queue {
	if l.Subject != nil {
		if q := l.Queues[name]; q != nil {
			return *q
		}
	}
	return fold.Queue{Cap: l.expectedCap(name)}
}

// expectedCap is the capacity of a queue through which nothing has passed, where the opening told it.
func (l lane) expectedCap(name string) int64 {
	if l.Subject != nil && (name == "input" || name == "result") {
		return l.Vars["capacity"]
	}
	return 0
}

// lanes returns the open subjects of a kind, oldest first.
func (v view) lanes(kind string) []lane {
	return v.lanesWhere(func(s *fold.Subject) bool { return s.Kind == kind })
}

// workqueues returns those who hold a workqueue, by name. None of them opens, so lanesWhere finds them all equally old.
func (v view) workqueues() []lane {
	return v.lanesWhere(func(s *fold.Subject) bool { return s.Kind == "" && s.Queues["workqueue"] != nil })
}

func (v view) lanesWhere(wanted func(*fold.Subject) bool) []lane {
	lanes := []lane{}
	for id, subject := range v.picture.Subjects {
		if wanted(subject) {
			lanes = append(lanes, lane{ID: id, Name: laneName(id, subject), Subject: subject})
		}
	}
	slices.SortFunc(lanes, func(a, b lane) int {
		return cmp.Or(cmp.Compare(a.Opened, b.Opened), strings.Compare(a.ID, b.ID))
	})
	for i := range lanes {
		lanes[i].Index = i
	}
	return lanes
}

// laneName is what a subject is called: its id, and who is behind it where that is known.
func laneName(id string, subject *fold.Subject) string {
	who, _, _ := strings.Cut(subject.Texts[probe.WireOpened.String()], " ")
	return strings.TrimSpace(id + " " + who)
}

// serveStage renders the page with the picture as it is; the script goes on from there.
func (u *UI) serveStage(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	v := u.folder.view(firstResource)
	v.Mode, v.World = "live", u.config.Hold != nil
	v.Sandbox, v.Scenarios = u.config.Sandbox != nil, u.config.Scenarios
	v.Rules, v.Promises = u.config.Rules != nil, rules.All
	switch {
	case u.config.Replay:
		v.Mode = "replay"
	case v.World && u.config.Hold.Status().Held:
		v.Mode = "held"
	}
	if take, ok := takes.Find(r.URL.Query().Get("take")); ok {
		v.Take, v.Mode, v.World = take.Name, "replay", false
	}
	if v.Figure = r.URL.Query().Has("figure"); v.Figure {
		framed(w.Header())
	}
	// A peer that goes while the page is written is nobody's concern.
	_ = stagePage(v).Render(r.Context(), w)
}

// serveNotes answers GET /viz/notes with the speaker's notes.
func serveNotes(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	// A peer that goes while the page is written is nobody's concern.
	_ = notesPage().Render(r.Context(), w)
}

// informerID is the informer whose reflector, FIFO and indexer are drawn: there is room for one.
const informerID = "informer"

// shelfN returns how many objects the store of a subject holds.
func shelfN(v view, station probe.Station, subject string) int64 {
	if shelf := v.picture.Shelves[fold.ShelfName(station, subject)]; shelf != nil {
		return shelf.N
	}
	return 0
}
