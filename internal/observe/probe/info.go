package probe

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Point names one line of the program at which a moment is reported.
type Point uint16

// Station is a place on the path of an event. The names are those of the page's data-station attributes.
type Station string

// The stations, in the order in which an event meets them.
const (
	HTTP      Station = "http"
	Etcd      Station = "etcd"
	Etcd3     Station = "etcd3"
	Ring      Station = "ring"
	Store     Station = "store"
	Incoming  Station = "incoming"
	Dispatch  Station = "dispatch"
	Watcher   Station = "watcher"
	Wire      Station = "wire"
	Reflector Station = "reflector"
	FIFO      Station = "fifo"
	Indexer   Station = "indexer"
	Processor Station = "processor"
	Listener  Station = "listener"
	Handler   Station = "handler"
	Workqueue Station = "workqueue"
)

// Stations lists every station in path order.
var Stations = []Station{HTTP, Etcd, Etcd3, Ring, Store, Incoming, Dispatch, Watcher, Wire, Reflector, FIFO, Indexer,
	Processor, Listener, Handler, Workqueue}

// Op says what a moment does to the picture. The fold needs no more than this and the args.
type Op string

// The operations.
const (
	// Mark changes nothing but the station's variables and its counter.
	Mark Op = "mark"
	// Open makes the subject appear; Close makes it vanish with all its queues.
	Open  Op = "open"
	Close Op = "close"
	// Sum adds to what was reported of the subject what was not: its args are how often each of the points happened
	// after which they are named.
	Sum Op = "sum"
	// Send and Recv move one token into and out of the queue of the subject. They are reported by the two sides of
	// a channel without a common lock, so a Recv may come in the log before its Send: a channel holds
	// max(0, sends-receives) tokens, and its k-th receive takes its k-th send. Their args are "len cap" as the
	// reporting side saw them; only cap is kept.
	Send Op = "send"
	Recv Op = "recv"
	// Push and Pop are Send and Recv of a queue that a lock or a single goroutine keeps in order. Their args are
	// "len cap" after the fact, and len is the truth, because one Pop may take several tokens. cap 0: unbounded.
	Push Op = "push"
	Pop  Op = "pop"
)

// Wait says what a goroutine waits for from a moment on. What waits for work is idle; everything else is held up.
type Wait string

// The waits.
const (
	ForRoom    Wait = "room"    // a channel is full
	ForTaker   Wait = "taker"   // no goroutine is at the other end of an unbuffered channel
	ForVersion Wait = "version" // the cache is older than a reader wants
	ForClient  Wait = "client"  // a write to the network has not returned
	ForReturn  Wait = "return"  // of code that is not the station's own: a handler, a reconciliation
	ForWork    Wait = "work"    // there is nothing to do
)

// Info declares a point.
//
// A wait is a pair: it begins at a point with Waits, and ends when one of the points in Until is reported for the same
// subject. One that has a key or a version to wait for ends with that. A goroutine that might have to wait for a
// channel tries first, and reports only if that fails, so a channel that has room costs nothing.
type Info struct {
	Name    string  `json:"name"`    // of the Go constant
	Station Station `json:"station"` // where on the path
	Op      Op      `json:"op"`
	Opens   string  `json:"opens,omitempty"` // for Open: what kind of subject appears: "watchchan", "watcher", "listener"
	Queue   string  `json:"queue,omitempty"` // for Send, Recv, Push, Pop: the data-queue name
	Args    Words   `json:"args"`            // names; they become the station's (or the subject's) variables
	Texts   Words   `json:"texts,omitempty"` // names of what it says in words
	// the goroutine that reports it, by its routine name, or the names it has in several forms of the station; "" if
	// any goroutine may
	Lane  string `json:"lane,omitempty"`
	Waits Wait   `json:"waits,omitempty"` // what for the goroutine waits from here on; "" if it goes on
	On    string `json:"on,omitempty"`    // where Waits: the name of the queue at which, "" if there is none
	// where Waits: the queues from which nothing is taken meanwhile, because the goroutine is their receiver
	Holds   Words  `json:"holds,omitempty"`
	Until   Words  `json:"until,omitempty"`   // where Waits: the points that end it
	Locked  bool   `json:"locked,omitempty"`  // reported under a lock: the world is never held here
	Passes  string `json:"-"`                 // why it is never held here although no lock is in sight; "" if it can be
	Anomaly bool   `json:"anomaly,omitempty"` // always drawn singly, never merged
	// happens to every event at every watcher: of a quiet lane it is left out and, if its own name is here, counted
	Routine string `json:"-"`
	Fact    string `json:"fact"` // what is true at this moment
	// the page's sentence; {type} {key} {rv} {subject} {resource}, args and texts by name are filled in; {n object}
	// counts: 1 object, 2 objects; [ by {agent}] is left out if there is no agent
	Says string `json:"says"`
	// sentences for records whose fields have values, "name=line.drop value=true": they come before Says
	Cases [][2]string `json:"cases,omitempty"`
}

// Field names a number or a text of a record.
type Field string

// Words are names, separated by spaces; in JSON a list.
type Words string

// List returns the names.
func (w Words) List() []string { return strings.Fields(string(w)) }

// MarshalJSON implements [json.Marshaler].
func (w Words) MarshalJSON() ([]byte, error) { return json.Marshal(w.List()) }

// Lanes returns the names in Lane.
func (i *Info) Lanes() []string { return strings.Fields(i.Lane) }

// Info returns the declaration of the point.
func (p Point) Info() *Info {
	if int(p) >= len(points) {
		panic(fmt.Sprintf("probe: point %d of %d", p, len(points)))
	}
	return &points[p]
}

// String returns the point's name.
func (p Point) String() string { return p.Info().Name }

var pointsByName = func() map[string]Point {
	byName := map[string]Point{Unknown.String(): Unknown}
	for _, p := range Points() {
		byName[p.String()] = p
	}
	return byName
}()

// PointNamed returns the point of a name; ok is false if there is none.
func PointNamed(name string) (p Point, ok bool) {
	p, ok = pointsByName[name]
	return p, ok
}

// MarshalText implements [encoding.TextMarshaler].
func (p Point) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (p *Point) UnmarshalText(name []byte) (err error) {
	known := false
	if *p, known = PointNamed(string(name)); !known {
		err = fmt.Errorf("no point %q: another version of the program wrote it", name)
	}
	return err
}

// Points returns every point that is reported, in path order.
func Points() []Point {
	all := make([]Point, 0, len(points)-1)
	for p := 1; p < len(points); p++ {
		all = append(all, Point(p))
	}
	return all
}

// blanks are what [Info].Says leaves to be filled in: a name, and behind it what the number of that name counts. parts
// are what is left out if a blank in it stays empty.
var (
	blanks = regexp.MustCompile(`\{(\w+)( [\w ]+)?\}`)
	parts  = regexp.MustCompile(`\[([^\]]*)\]`)
)

// What a sentence leaves out when a record is about no object, as those about bookmarks are, or has no version, as an
// ERROR.
var (
	withoutKey = strings.NewReplacer(" of {key}", "", " for {key}", "", " {key}", "")
	withoutRV  = strings.NewReplacer(" at {rv}", "")
)

// Sentence fills the point's sentence with the record's values.
func (r *Record) Sentence() string {
	info := r.Point.Info()
	says := info.Says
	for _, each := range info.Cases {
		if r.has(each[0]) {
			says = each[1]
		}
	}
	if r.Key == "" {
		says = withoutKey.Replace(says)
	}
	if r.RV == 0 {
		says = withoutRV.Replace(says)
	}
	words := map[string]string{
		"type": r.Type, "key": ObjectKey(r.Key), "rv": strconv.FormatUint(r.RV, 10),
		"subject": r.Subject, "resource": r.Resource,
	}
	for _, name := range append(info.Args.List(), info.Texts.List()...) {
		words[name] = r.Field(Field(name))
	}
	says = parts.ReplaceAllStringFunc(says, func(part string) string {
		for _, blank := range blanks.FindAllStringSubmatch(part, -1) {
			if words[blank[1]] == "" {
				return ""
			}
		}
		return strings.Trim(part, "[]")
	})
	return blanks.ReplaceAllStringFunc(says, func(blank string) string {
		name, noun, counts := strings.Cut(strings.Trim(blank, "{}"), " ")
		switch word, known := words[name]; {
		case !known:
			return blank
		case !counts:
			return word
		case word == "1":
			return word + " " + noun
		default:
			return word + " " + noun + "s"
		}
	})
}

// has reports whether the record's fields have the values of a case.
func (r *Record) has(values string) bool {
	for each := range strings.FieldsSeq(values) {
		name, value, _ := strings.Cut(each, "=")
		if r.Field(Field(name)) != value {
			return false
		}
	}
	return true
}

// Field returns a number or a text of the record, "" if it has none of that name.
func (r *Record) Field(name Field) string {
	for i, arg := range r.Point.Info().Args.List() {
		if arg == string(name) {
			return strconv.Itoa(r.Args[i])
		}
	}
	return r.Texts.Get(name)
}

// Has reports whether records of the point have a number or a text of a name.
func (i *Info) Has(name Field) bool {
	return slices.Contains(append(i.Args.List(), i.Texts.List()...), string(name))
}

// Anomaly reports whether the record is one that is never merged with others: its point is declared so, or a client is
// told, by the answer 410 or by an ERROR event in its stream, that it has to begin again.
func (r *Record) Anomaly() bool {
	switch r.Point {
	case RequestAnswered:
		return r.Args[0] == gone
	case FrameWritten:
		return r.Type == "ERROR"
	}
	return r.Point.Info().Anomaly
}

// gone is the HTTP status of an answer to a list that asks for what history no longer holds.
const gone = 410

// ObjectKey returns the "namespace/name" under which the client half knows an object, given the key of either half:
// "/registry/pods/default/a" and "default/a" both give "default/a". Those of services end in another
// folder.
func ObjectKey(key string) string {
	rest, ok := strings.CutPrefix(key, "/")
	if !ok {
		return key
	}
	parts := strings.SplitN(rest, "/", 3)
	name := parts[len(parts)-1]
	if len(parts) == 3 && parts[1] == "services" {
		_, name, _ = strings.Cut(name, "/")
	}
	return name
}
