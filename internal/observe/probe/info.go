package probe

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Point is a kind of moment: a row of points.go, which one line of the program reports ([Unknown]: none).
type Point uint16

// Station is a place on the path of an event. Its values are the page's data-station attributes.
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

// Stations lists every station, in path order.
var Stations = []Station{HTTP, Etcd, Etcd3, Ring, Store, Incoming, Dispatch, Watcher, Wire, Reflector, FIFO, Indexer,
	Processor, Listener, Handler, Workqueue}

// Op is the effect of a moment on the subjects and the queues of the picture.
type Op string

// The operations.
const (
	// Mark opens and closes no subject, and moves no token.
	Mark Op = "mark"
	// Open makes the subject appear; Close removes it with all its queues.
	Open  Op = "open"
	Close Op = "close"
	// Look sets how full the queues of quiet subjects are. A record about one subject has an arg for each queue, with
	// its length. A record about all subjects of a resource has a text with their levels. Only the log reports a Look.
	Look Op = "look"
	// Send and Recv move one token into and out of the queue of the subject. The two sides of a channel report them
	// without a common lock, so the log may have a Recv before its Send: a channel holds max(0, sends-receives) tokens,
	// and its k-th receive takes its k-th send. Their args are "len cap", read by the reporting side just after the
	// operation; the fold uses only cap.
	Send Op = "send"
	Recv Op = "recv"
	// Push and Pop are Send and Recv of a queue that a lock or a single goroutine protects. Their args are "len cap"
	// after the fact, and the fold uses this len, because one Pop may take several tokens. cap 0: unbounded.
	Push Op = "push"
	Pop  Op = "pop"
)

// Wait is the reason why a goroutine waits. A goroutine that waits for work is idle; any other wait blocks it.
type Wait string

// The waits.
const (
	ForRoom    Wait = "room"    // a channel is full
	ForTaker   Wait = "taker"   // no goroutine is at the other end of an unbuffered channel
	ForVersion Wait = "version" // a reader needs a newer version than the cache has
	ForClient  Wait = "client"  // a write to the network has not returned
	ForReturn  Wait = "return"  // code outside the station, a handler or a reconciliation, has not returned
	ForWork    Wait = "work"    // there is nothing to do
)

// Info declares a point.
//
// A wait is a pair: it begins at a point with Waits, and ends when one of the points in Until is reported for the same
// subject and, if several goroutines may wait, for the same key, version or event. At a channel, a goroutine first
// tries without waiting, and reports a wait only if that fails, so a channel with room costs nothing.
type Info struct {
	Name    string  `json:"name"`    // the name of the Go constant
	Station Station `json:"station"` // the place on the path
	Op      Op      `json:"op"`
	Opens   string  `json:"opens,omitempty"` // for Open: the kind of subject, such as "watcher"
	Queue   string  `json:"queue,omitempty"` // for Send, Recv, Push, Pop: the queue's data-queue name
	Args    Words   `json:"args"`            // names of the numbers, which the fold keeps, except the lengths of queues
	Texts   Words   `json:"texts,omitempty"` // names of the texts
	// The routine name of the goroutine that reports the point, or all possible names; "" if any goroutine may do so.
	Lane  string `json:"lane,omitempty"`
	Waits Wait   `json:"waits,omitempty"` // why the goroutine waits from here on; "" if it does not wait
	On    string `json:"on,omitempty"`    // if Waits: the name of the queue at which it waits, "" if there is none
	// If Waits: the queues that only the waiting goroutine reads; during the wait nothing leaves them.
	Holds   Words  `json:"holds,omitempty"`
	Until   Words  `json:"until,omitempty"`   // if Waits: the points that end the wait
	Locked  bool   `json:"locked,omitempty"`  // the goroutine holds a lock here, so the gate never holds the goroutine
	Passes  string `json:"-"`                 // another reason why the gate never holds a goroutine here; "": none
	Anomaly bool   `json:"anomaly,omitempty"` // the page draws each such record singly
	Routine bool   `json:"-"`                 // reported for each event at each watcher; left out for a quiet lane
	Fact    string `json:"fact"`              // the fact that holds at this moment
	// The page's sentence. The page fills in {type} {key} {rv} {subject} {resource}, and args and texts by name; {n
	// object} becomes 1 object or 2 objects. A part in brackets, as [ by {agent}], is left out if a value is empty.
	Says string `json:"says"`
	// The sentence beside a token where the stage does not draw the parts that Says names; "" if it draws them.
	Plain string `json:"plain,omitempty"`
	// Pairs of values, such as "name=line.drop value=true", and the sentence that replaces Says for such records.
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

// Info returns the point's declaration, which must not be changed. It panics if the table has no such point.
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

// PointNamed returns the point with that name; ok is false if there is none.
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

// Points returns every point that the program reports, in path order.
func Points() []Point {
	all := make([]Point, 0, len(points)-1)
	for p := 1; p < len(points); p++ {
		all = append(all, Point(p))
	}
	return all
}

// blanks matches the places that [Info].Says leaves for values: a name and, after it, possibly a noun to be counted.
// parts matches the parts of a sentence that are left out if a blank in them stays empty.
var (
	blanks = regexp.MustCompile(`\{(\w+)( [\w ]+)?\}`)
	parts  = regexp.MustCompile(`\[([^\]]*)\]`)
)

// The words that a sentence leaves out if the record has no object (a bookmark's) or no version (an ERROR's).
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

// has reports whether the record's fields have all these values, "name=value" separated by spaces.
func (r *Record) has(values string) bool {
	for each := range strings.FieldsSeq(values) {
		name, value, _ := strings.Cut(each, "=")
		if r.Field(Field(name)) != value {
			return false
		}
	}
	return true
}

// Field returns the record's number or text with that name, or "" if there is none.
func (r *Record) Field(name Field) string {
	for i, arg := range r.Point.Info().Args.List() {
		if arg == string(name) {
			return strconv.Itoa(r.Args[i])
		}
	}
	return r.Texts.Get(name)
}

// Has reports whether records of the point have a number or a text with that name.
func (i *Info) Has(name Field) bool {
	return slices.Contains(append(i.Args.List(), i.Texts.List()...), string(name))
}

// Anomaly reports whether the page always draws the record singly. That holds for 410 responses, for ERROR frames, and
// for the points that declare an anomaly.
func (r *Record) Anomaly() bool {
	switch r.Point {
	case RequestAnswered:
		return r.Args[0] == gone
	case FrameWritten:
		return r.Type == "ERROR"
	}
	return r.Point.Info().Anomaly
}

// gone is the HTTP status for a list or a watch from a version that history no longer holds.
const gone = 410

// ObjectKey returns the "namespace/name" or "name" that the client half uses for an object, given the key of either
// half: "/registry/pods/default/a" and "default/a" both give "default/a". etcd's keys of services have one more folder.
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
