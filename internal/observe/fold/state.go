package fold

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	"listwatch/internal/observe/probe"
)

// The picture's limits on lists that could grow without end. Its counters are exact nevertheless.
const (
	// MaxRows is the maximum number of rows of a shelf.
	MaxRows = 24

	maxTokens = 32  // tokens of a queue: the page draws a pipe of up to this size slot by slot
	maxCells  = 128 // cells of the ring: the page draws up to this many one by one
)

// State is the whole picture after the record Seq. Its JSON form is complete: a State that was written and read back
// folds on identically.
type State struct {
	Seq uint64 `json:"seq"`
	T   int64  `json:"t"` // the time of the record Seq, in nanoseconds since the log was made
	// Lost counts records that had left the log before the fold could read them. If it is not zero, queues, rows,
	// cells and waits are known only since the last gap.
	Lost      uint64               `json:"lost"`
	Resources map[string]*Resource `json:"resources"` // by name; "" holds the records that concern no resource
}

// Resource is the picture of one resource's pipeline.
type Resource struct {
	Stations map[string]*Station `json:"stations"` // by name
	Subjects map[string]*Subject `json:"subjects"` // by id: those that are open, and those that always exist
	Points   map[string]uint64   `json:"points"`   // the number of reports of each point
	Ring     Ring                `json:"ring"`
	Shelves  map[string]*Shelf   `json:"shelves"` // by ShelfName: "store/cacher", "indexer/informer"
	// Waits are the waits that have begun and not ended, the oldest first, by point and subject ("InputBlocked w3").
	Waits map[string][]Wait `json:"waits"`
}

// Names adds to names the User-Agent of each client whose watch is in the picture.
func (s *State) Names(names *probe.Names) {
	for resource, res := range s.Resources {
		for id, subject := range res.Subjects {
			if agent := subject.Texts[probe.WireOpened.String()].Get(probe.FieldAgent); agent != "" {
				names.Set(resource, id, agent)
			}
		}
	}
}

// Station is the picture of a station as a whole.
type Station struct {
	Count uint64           `json:"count"`     // number of records about the station
	RV    uint64           `json:"rv,string"` // the last RV that was not zero
	Vars  map[string]int64 `json:"vars"`      // by arg name, without the len and cap of queues
	Last  Last             `json:"last"`      // the newest record
}

// Last is the newest record of a station or a subject, without its resource and args.
type Last struct {
	Seq     uint64 `json:"seq"`
	T       int64  `json:"t"`
	Point   string `json:"point"`
	Subject string `json:"subject"`
	Token
	Texts probe.Texts `json:"texts"`
}

// Subject is the part of the machine that a record is about. It opens and closes, such as watcher "w3", or always
// exists, such as "informer".
type Subject struct {
	// [probe.Info.Opens] of the opening point, such as "watcher"; "" if the subject never opens.
	Kind   string                 `json:"kind"`
	Opened uint64                 `json:"opened"`       // Seq of the opening; 0 if the fold did not see it
	Began  uint64                 `json:"began,string"` // RV of the opening: the version at which a watcher starts
	RV     uint64                 `json:"rv,string"`
	Vars   map[string]int64       `json:"vars"`
	Texts  map[string]probe.Texts `json:"texts"`  // the newest texts of each point
	Counts map[string]uint64      `json:"counts"` // reports about the subject, by point
	Queues map[string]*Queue      `json:"queues"`
	Last   Last                   `json:"last"`
	// Fill is the level of a watcher's fuller channel, from 1 (empty) to 101 (full), if the log lacks some of its
	// records. 0: Queues has the exact lengths.
	Fill int64 `json:"fill,omitempty"`
}

// Queue is a channel, or a queue that a lock or one goroutine protects.
type Queue struct {
	Len      int64   `json:"len"`
	Cap      int64   `json:"cap"` // 0: unbuffered if a channel, unbounded otherwise
	Sent     int64   `json:"sent"`
	Received int64   `json:"received"`
	High     int64   `json:"high"`   // the largest length so far
	Tokens   []Token `json:"tokens"` // the newest, the oldest of them first: at most min(Len, maxTokens)
}

// Token is one event wherever the picture shows it: in a queue, in the ring, on a shelf.
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
	Oldest   uint64 `json:"oldest,string"` // the oldest version from which a watch may start
	Newest   uint64 `json:"newest,string"` // the cache's version, bookmarks included
	Cells    []Cell `json:"cells"`         // the newest, the oldest of them first: at most min(End-Start, maxCells)
}

// Wait is one goroutine's wait, with its start and its reason.
type Wait struct {
	Seq     uint64 `json:"seq"` // the record with which the wait began
	T       int64  `json:"t"`   // the time of that record
	Point   string `json:"point"`
	Kind    string `json:"kind"`    // a [probe.Wait]
	Subject string `json:"subject"` // the owner of the queue, or the subject that waits
	Lane    string `json:"lane"`    // the goroutine, or the possible ones; "" if the point names none
	On      string `json:"on"`      // the queue at which the goroutine waits, "" if none
	Token
}

// Cell is one event in the ring: Pos is its absolute position, T the time of its RingAppend.
type Cell struct {
	Pos int64 `json:"pos"`
	T   int64 `json:"t"`
	Token
}

// Shelf is a keyed store: the number of its objects, and the rows that changed last.
type Shelf struct {
	N    int64 `json:"n"`
	Rows []Row `json:"rows"` // at most MaxRows, the newest change last
}

// Row is one object on a shelf. Seq is the record that put the row there.
type Row struct {
	Token        // its newest change
	Seq   uint64 `json:"seq"`
}

// New returns an empty picture, the one before the first record.
func New() *State { return &State{Resources: map[string]*Resource{}} }

// entry returns the value that m has under a name, and makes one if there is none.
func entry[V any](m map[string]*V, name string) *V {
	if m[name] == nil {
		m[name] = blank[V]()
	}
	return m[name]
}

func (s *State) resource(name string) *Resource  { return entry(s.Resources, name) }
func (r *Resource) station(name string) *Station { return entry(r.Stations, name) }
func (r *Resource) shelf(name string) *Shelf     { return entry(r.Shelves, name) }
func (sub *Subject) queue(name string) *Queue    { return entry(sub.Queues, name) }

// ShelfName returns the name of a subject's store, one of possibly several at a station: "indexer/informer".
func ShelfName(station probe.Station, subject string) string { return string(station) + "/" + subject }

func newSubject(kind string, opened uint64) *Subject {
	subject := blank[Subject]()
	subject.Kind, subject.Opened = kind, opened
	return subject
}

// MaxNumber is the largest Seq, time or arg that is read: the page's numbers are exact up to this value.
const MaxNumber = 1 << 53

// Clone returns a state that shares nothing with s.
func (s *State) Clone() *State { return whole(reflect.ValueOf(s)).Interface().(*State) }

// blank returns a new value in which no map, list or pointer is nil.
func blank[T any]() *T { return whole(reflect.ValueOf(new(T))).Interface().(*T) }

// whole returns a copy of a value that shares nothing with it. A nil map, list or pointer becomes an empty one in the
// copy. Elements of lists are plain values here.
func whole(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Pointer:
		to := reflect.New(v.Type().Elem())
		if v.IsNil() {
			v = to
		}
		to.Elem().Set(whole(v.Elem()))
		return to
	case reflect.Struct:
		to := reflect.New(v.Type()).Elem()
		for i := range v.NumField() {
			to.Field(i).Set(whole(v.Field(i)))
		}
		return to
	case reflect.Map:
		to := reflect.MakeMapWithSize(v.Type(), v.Len())
		for each := v.MapRange(); each.Next(); {
			to.SetMapIndex(each.Key(), whole(each.Value()))
		}
		return to
	case reflect.Slice:
		return reflect.AppendSlice(reflect.MakeSlice(v.Type(), 0, v.Len()), v)
	}
	return v
}

// Read returns the state that was written as JSON. Fields that the text lacks are as in an empty picture, because an
// earlier version of the program may have written it. Read returns an error if the text is not a state, has a Seq or a
// T outside 0 to [MaxNumber], or holds more than [State.Fits] allows. It counts a text's values before decoding it.
func Read(written []byte) (*State, error) {
	values := bytes.Count(written, []byte("{")) + bytes.Count(written, []byte(","))
	if values > maxValues {
		return nil, fmt.Errorf("read state: more than the %d subjects, stores and waits that can be shown", MaxParts)
	}
	s := &State{}
	if err := json.Unmarshal(written, s); err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	if s.Seq > MaxNumber || s.T < 0 || s.T > MaxNumber {
		return nil, fmt.Errorf("read state: record %d at %d ns: a number is larger than 2^53, or negative", s.Seq, s.T)
	}
	if err := s.Fits(); err != nil { // check first: Clone takes ten times the memory
		return nil, err
	}
	s = s.Clone()
	for _, res := range s.Resources {
		res.trim()
	}
	return s, nil
}

// trim drops whatever exceeds the fold's own limits, and empty lists of waits.
func (r *Resource) trim() {
	maps.DeleteFunc(r.Waits, func(_ string, waits []Wait) bool { return len(waits) == 0 })
	r.Ring.Cells = newest(r.Ring.Cells, maxCells)
	for _, shelf := range r.Shelves {
		shelf.Rows = newest(shelf.Rows, MaxRows)
	}
	for _, subject := range r.Subjects {
		for _, queue := range subject.Queues {
			queue.Tokens = newest(queue.Tokens, maxTokens)
		}
	}
}

// Limits on a picture that comes from a file. The program's own pictures stay far below them: a thousand clients make
// some five thousand parts. The page has the first two numbers, too (viz/log/recording.js).
const (
	// MaxResources is the maximum number of resources in a picture.
	MaxResources = 512
	// MaxParts is the maximum number of subjects, shelves and waits of all resources together.
	MaxParts = 50_000

	maxValues = 2_000_000 // values in the JSON form of a picture: a part has about eighty values
)

// Fits returns nil if the picture is small enough to show, and otherwise an error with the limit that it exceeds. Fits
// takes as long as folding about a hundred records.
func (s *State) Fits() error {
	if n := len(s.Resources); n > MaxResources {
		return fmt.Errorf("the picture at record %d has more than the %d resources that can be shown", s.Seq,
			MaxResources)
	}
	parts := 0
	for _, res := range s.Resources {
		if res == nil {
			continue // a file may have null in the place of a resource
		}
		parts += len(res.Subjects) + len(res.Shelves)
		for _, waits := range res.Waits {
			parts += len(waits)
		}
	}
	if parts > MaxParts {
		return fmt.Errorf("the picture at record %d has more than the %d subjects, stores and waits that can be shown",
			s.Seq, MaxParts)
	}
	return nil
}
