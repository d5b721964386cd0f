package stage

import (
	"cmp"
	"slices"
	"strings"

	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
)

// FirstResource is what the stage shows first.
const FirstResource = "pods"

// View is what the scenery is drawn from before the page's script takes over: the picture of one resource.
type View struct {
	Seq       uint64
	Resource  string
	Resources []string
	picture   *fold.Resource
}

// NewView returns the picture of a resource. It takes state: the caller changes it no more.
func NewView(state *fold.State, resource string) View {
	v := View{Seq: state.Seq, Resource: resource, Resources: []string{resource}, picture: state.Resources[resource]}
	for name, picture := range state.Resources {
		if name != "" && name != resource && !picture.Stopped() {
			v.Resources = append(v.Resources, name)
		}
	}
	slices.Sort(v.Resources)
	if v.picture == nil {
		v.picture = &fold.Resource{}
	}
	return v
}

// queue returns the queue of that name: the informer's, if it has one, or else the youngest one's.
func (v View) queue(name string) fold.Queue {
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

// Lane is one subject of a kind, with its queues.
type Lane struct {
	ID    string
	Name  string
	Index int
	*fold.Subject
}

// queueOf returns the lane's queue of that name, empty if nothing has passed it yet.
func (l Lane) queueOf(name string) fold.Queue {
	if l.Subject != nil {
		if q := l.Queues[name]; q != nil {
			return *q
		}
	}
	return fold.Queue{Cap: l.expectedCap(name)}
}

// expectedCap is the capacity of a queue through which nothing has passed, where the opening told it.
func (l Lane) expectedCap(name string) int64 {
	if l.Subject != nil && (name == "input" || name == "result") {
		return l.Vars["capacity"]
	}
	return 0
}

// lanes returns the open subjects of a kind, oldest first.
func (v View) lanes(kind string) []Lane {
	return v.lanesWhere(func(s *fold.Subject) bool { return s.Kind == kind })
}

// maxDrawn is how many lanes of a kind are drawn before the page's script takes over: far more than have room on the
// stage.
const maxDrawn = 64

// drawn returns the lanes of a kind that are drawn, oldest first.
func (v View) drawn(kind string) []Lane {
	all := v.lanes(kind)
	return all[:min(len(all), maxDrawn)]
}

// workqueues returns the subjects that hold a workqueue, by name. None of them opens, so lanesWhere finds them all
// equally old.
func (v View) workqueues() []Lane {
	return v.lanesWhere(func(s *fold.Subject) bool { return s.Kind == "" && s.Queues["workqueue"] != nil })
}

// lanesWhere returns the subjects that are wanted, oldest first.
func (v View) lanesWhere(wanted func(*fold.Subject) bool) []Lane {
	lanes := []Lane{}
	for id, subject := range v.picture.Subjects {
		if wanted(subject) {
			lanes = append(lanes, Lane{ID: id, Name: laneName(id, subject), Subject: subject})
		}
	}
	slices.SortFunc(lanes, func(a, b Lane) int {
		return cmp.Or(cmp.Compare(a.Opened, b.Opened), strings.Compare(a.ID, b.ID))
	})
	for i := range lanes {
		lanes[i].Index = i
	}
	return lanes
}

// laneName is what a subject is called: who is behind it where that is known, without a version, or else its id.
func laneName(id string, subject *fold.Subject) string {
	who, _, _ := strings.Cut(subject.Texts[probe.WireOpened.String()], " ")
	name, _, _ := strings.Cut(who, "/")
	return cmp.Or(strings.TrimPrefix(cmp.Or(name, who), "listwatch-"), id)
}

// informerID is the informer whose reflector, FIFO and indexer are drawn: there is room for one.
const informerID = "informer"

// shelfN returns how many objects the store of a subject holds.
func shelfN(v View, station probe.Station, subject string) int64 {
	if shelf := v.picture.Shelves[fold.ShelfName(station, subject)]; shelf != nil {
		return shelf.N
	}
	return 0
}
