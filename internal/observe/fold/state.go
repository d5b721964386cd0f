package fold

import "listwatch/internal/observe/probe"

// How much of what is unbounded the picture keeps. Counters are exact whatever these are.
const (
	// MaxRows is how many objects of a shelf are known by name.
	MaxRows = 24

	maxTokens = 32  // per queue: as many as a pipe is drawn slot by slot
	maxCells  = 128 // of the ring: as many as are drawn one by one
)

// State is the whole picture after the record Seq. It holds nothing that is not also in its JSON form, so a State
// that was written and read back folds on as if nothing had happened.
type State struct {
	Seq uint64 `json:"seq"`
	T   int64  `json:"t"` // time of the record Seq: nanoseconds since the log was made
	// Lost counts records that had left the log before they were folded. If it is not zero, queues and waits are known
	// only from the records after the last gap.
	Lost      uint64               `json:"lost"`
	Resources map[string]*Resource `json:"resources"` // by name; "" for moments that concern none
}

// Resource is the picture of one resource's pipeline.
type Resource struct {
	Stations map[string]*Station `json:"stations"` // by name
	Subjects map[string]*Subject `json:"subjects"` // by id: those that are open, and those that never open
	Points   map[string]uint64   `json:"points"`   // how often each point was reported
	Ring     Ring                `json:"ring"`
	Shelves  map[string]*Shelf   `json:"shelves"` // by ShelfName: "store/cacher", "indexer/informer"
	// Waits are the waits that have begun and not ended, by point and subject ("InputBlocked w3"), oldest first.
	Waits map[string][]Wait `json:"waits"`
}

// Names tells names what the clients of the picture's watchers call themselves.
func (s *State) Names(names *probe.Names) {
	for resource, res := range s.Resources {
		for id, subject := range res.Subjects {
			if agent := subject.Said(probe.WireOpened, probe.FieldAgent); agent != "" {
				names.Set(resource, id, agent)
			}
		}
	}
}

// Station is what is known of a station as a whole.
type Station struct {
	Count uint64           `json:"count"`     // records
	RV    uint64           `json:"rv,string"` // the last one not zero
	Vars  map[string]int64 `json:"vars"`      // by arg name, without the len and cap of queues
	Last  Last             `json:"last"`      // the newest record
}

// Last is the part of a record that the picture keeps to show it.
type Last struct {
	Seq     uint64 `json:"seq"`
	T       int64  `json:"t"`
	Point   string `json:"point"`
	Subject string `json:"subject"`
	Token
	Texts probe.Texts `json:"texts"`
}

// Subject is one of several of a kind that open and close, such as watcher "w3", or one that is always there, such as
// "informer".
type Subject struct {
	// [probe.Info.Opens] of the opening point: "watcher"; "" if it never opens
	Kind   string                 `json:"kind"`
	Opened uint64                 `json:"opened"`       // seq of the opening, 0 if that was not seen
	Began  uint64                 `json:"began,string"` // RV of the opening: what a watcher was registered from
	RV     uint64                 `json:"rv,string"`
	Vars   map[string]int64       `json:"vars"`
	Texts  map[string]probe.Texts `json:"texts"`  // the last texts of each point that had any
	Counts map[string]uint64      `json:"counts"` // how often each point was reported of it
	Queues map[string]*Queue      `json:"queues"`
	Last   Last                   `json:"last"`
}

// Said returns a text that a point said last of the subject, "" if it did not.
func (s *Subject) Said(point probe.Point, name probe.Field) string {
	return s.Texts[point.String()].Get(name)
}

// Queue is a channel, or a queue under a lock.
type Queue struct {
	Len      int64   `json:"len"`
	Cap      int64   `json:"cap"` // 0: unbuffered if a channel, unbounded otherwise
	Sent     int64   `json:"sent"`
	Received int64   `json:"received"`
	High     int64   `json:"high"`   // the longest it has been
	Tokens   []Token `json:"tokens"` // the newest min(Len, maxTokens), oldest first
}

// Token is one event, in a queue or wherever else the picture shows one.
type Token struct {
	Type string `json:"type"`
	Key  string `json:"key"`
	RV   uint64 `json:"rv,string"`
}

func tokenOf(r *probe.Record) Token { return Token{Type: r.Type, Key: r.Key, RV: r.RV} }

// Ring is the history of the watchCache. Positions are absolute: [Start, End), in slots taken modulo Capacity.
type Ring struct {
	Start    int64  `json:"start"`
	End      int64  `json:"end"`
	Capacity int64  `json:"capacity"`
	Oldest   uint64 `json:"oldest,string"` // a watch may start from here
	Newest   uint64 `json:"newest,string"` // where the cache stands, bookmarks included
	Cells    []Cell `json:"cells"`         // the newest min(End-Start, maxCells), oldest first
}

// Wait is one goroutine's waiting: who waits, since when, and for what.
type Wait struct {
	Seq     uint64 `json:"seq"` // of the record with which it began
	T       int64  `json:"t"`   // its time
	Point   string `json:"point"`
	Kind    string `json:"kind"`    // a [probe.Wait]
	Subject string `json:"subject"` // whose queue it is, or who waits
	Lane    string `json:"lane"`    // the goroutine, "" if the point does not say
	On      string `json:"on"`      // the queue at which, "" if none
	Token
}

// Cell is one event in the ring.
type Cell struct {
	Pos int64 `json:"pos"`
	T   int64 `json:"t"`
	Token
}

// Shelf is a keyed store: how many objects, and which changed last.
type Shelf struct {
	N    int64 `json:"n"`
	Rows []Row `json:"rows"` // at most maxRows, the newest change last
}

// Row is one object on a shelf.
type Row struct {
	Token        // its last change
	Seq   uint64 `json:"seq"`
}

// New returns an empty picture: the one before the first record.
func New() *State { return &State{Resources: map[string]*Resource{}} }

// entry returns what m has under a name. If that is nothing, it is made.
func entry[V any](m map[string]*V, name string) *V {
	if m[name] == nil {
		m[name] = blank[V]()
	}
	return m[name]
}

func (s *State) resource(name string) *Resource  { return entry(s.Resources, name) }
func (r *Resource) station(name string) *Station { return entry(r.Stations, name) }
func (r *Resource) shelf(name string) *Shelf     { return entry(r.Shelves, name) }
func (s *Subject) queue(name string) *Queue      { return entry(s.Queues, name) }

// ShelfName returns the name of a subject's store at a station, such as "indexer/informer": one resource may have
// several informers.
func ShelfName(station probe.Station, subject string) string { return string(station) + "/" + subject }

func newSubject(kind string, opened uint64) *Subject {
	subject := blank[Subject]()
	subject.Kind, subject.Opened = kind, opened
	return subject
}
