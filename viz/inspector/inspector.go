// Package inspector is the room of what can be looked into: a station, a queue or one watcher, with leaves of what it
// is, how it stands, the code that reports there, who waits for whom, its records, and its bytes. What follows from the
// picture at the cursor, the page fills in (state.js, why.js).
package inspector

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/a-h/templ"
	"github.com/go-chi/chi/v5"
	"sigs.k8s.io/yaml"

	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
	"listwatch/internal/play/wiretap"
	"listwatch/viz/reply"
	"listwatch/viz/stage"
)

// Inspector makes the leaves. Its fields never change.
type Inspector struct {
	Log *probe.Log
	Now func(ctx context.Context) (*fold.State, error) // the newest picture, the caller's own

	// The running program's; nil where only a log is shown, and then not mounted.
	Components func() any              // their own Snapshots, as something that marshals to JSON
	Wire       func() []wiretap.Stream // the open watches of the client half, as bytes
}

// Mount adds the room's routes.
func (i *Inspector) Mount(router chi.Router) {
	router.Handle("GET /viz/part/{station}/{tab}", reply.With(i.part))
	if i.Components != nil {
		router.Handle("GET /viz/state", reply.Look(i.Components))
	}
	if i.Wire != nil {
		router.Handle("GET /viz/wire", reply.With(i.wire))
	}
}

// part answers GET /viz/part/{station}/{tab}?queue=&subject=&resource=&at= with one leaf of the inspector as HTML. 404
// if there is no such station, queue or leaf; 410 if log is another run's.
func (i *Inspector) part(r *http.Request) (any, error) {
	query := r.URL.Query()
	at, err := reply.Number(query, "at", 0)
	if err = cmp.Or(err, reply.About(i.Log, r)); err != nil {
		return nil, err
	}
	if !reply.Foreign(r) {
		i.Log.Look(query.Get("resource"), query.Get("subject"))
	}
	return i.Leaf(r.Context(), chi.URLParam(r, "station"), chi.URLParam(r, "tab"), query, at)
}

// Stream is one open watch of the client half as bytes, with the watcher that feeds it on the server's side.
type Stream struct {
	Resource string         `json:"resource"` // "" if the watcher is not known
	Watcher  string         `json:"watcher"`
	Agent    string         `json:"agent"` // what its client calls itself
	Wire     wiretap.Stream `json:"wire"`  // without secrets
}

// partTab is one leaf of the inspector.
type partTab struct {
	Name  string // in the URL
	Title string
	draw  func(i *Inspector, ctx context.Context, p *part) (templ.Component, error)
}

// partTabs are the leaves in the order in which they are shown.
var partTabs = []partTab{
	{"what", "What", (*Inspector).partWhat},
	{"state", "State", (*Inspector).partFilled},
	{"code", "Code", (*Inspector).partCode},
	{"blocked", "Why blocked", (*Inspector).partFilled},
	{"history", "History", (*Inspector).partHistory},
	{"bytes", "Bytes", (*Inspector).partBytes}, // shown where there are any: at the wire and the watchers
}

// part is one thing on the stage that can be looked into: a station, or one of its queues, of one subject or of all.
type part struct {
	Station  probe.Station
	Queue    string // data-queue; "": the station itself
	Subject  string // "w3"; "": any that is there
	Resource string
	Point    string // what the code tab is to show; "": the first one of the part
	Query    string // what the history is searched for
	Until    uint64 // the newest record that the history shows
}

// Leaf returns one leaf of the inspector about what the query names (queue, subject, resource), as it was at a record;
// 0: the newest. The error is 404 if there is no such station, queue or leaf.
func (i *Inspector) Leaf(ctx context.Context, station, tab string, query url.Values,
	at uint64) (templ.Component, error) {
	p, err := readPart(station, query)
	if err != nil {
		return nil, err
	}
	n := slices.IndexFunc(partTabs, func(each partTab) bool { return each.Name == tab })
	if n < 0 {
		return nil, reply.Refuse(http.StatusNotFound, "there is no such leaf: want one of what, state, code, "+
			"blocked, history, bytes")
	}
	p.Until = cmp.Or(at, i.Log.Last())
	leaf, err := partTabs[n].draw(i, ctx, p)
	if err != nil {
		return nil, err
	}
	return partLeaf(p, partTabs[n], leaf), nil
}

// readPart finds out what is asked about.
func readPart(station string, values url.Values) (*part, error) {
	p := &part{
		Station: probe.Station(station), Queue: values.Get("queue"), Subject: values.Get("subject"),
		Resource: cmp.Or(values.Get("resource"), stage.FirstResource), Point: values.Get("point"),
		Query: values.Get("q"),
	}
	if !slices.Contains(probe.Stations, p.Station) {
		return nil, reply.Refuse(http.StatusNotFound, "there is no station %.40q", station)
	}
	moves := func(info *probe.Info) bool { return info.Queue == p.Queue && info.Station == p.Station }
	if p.Queue != "" && !slices.ContainsFunc(p.points(), moves) {
		return nil, reply.Refuse(http.StatusNotFound, "there is no queue %.40q at %s", p.Queue, station)
	}
	return p, nil
}

// points returns what is reported here, in path order.
func (p *part) points() []*probe.Info {
	var list []*probe.Info
	for _, point := range probe.Points() {
		if info := point.Info(); p.reports(info) {
			list = append(list, info)
		}
	}
	return list
}

// reports tells whether a point is about the part: a queue's are those that move it, and those that tell of its
// subject.
func (p *part) reports(info *probe.Info) bool {
	if p.Queue != "" && info.Queue == p.Queue {
		return true // also where another station takes from it: result is taken from by the wire
	}
	return info.Station == p.Station && (p.Queue == "" || info.Queue == "" && p.Subject != "")
}

// matches tells whether a record is about the part.
func (p *part) matches(r *probe.Record) bool {
	if r.Resource != p.Resource && r.Resource != "" || p.Subject != "" && r.Subject != p.Subject {
		return false
	}
	return p.reports(r.Point.Info())
}

// title is what the part is called.
func (p *part) title() string {
	name := stage.Title(p.Station)
	if p.Queue != "" {
		name = places().Queues[p.Queue].Title
	}
	switch {
	case p.Subject == "" || p.Subject == name:
		return name
	case p.Queue == "":
		return strings.TrimSuffix(name, "s") + " " + p.Subject
	}
	return name + " of " + p.Subject
}

// text is what is told of the part.
func (p *part) text() placeText {
	if p.Queue != "" {
		return places().Queues[p.Queue]
	}
	return places().Stations[p.Station]
}

// lanes returns the goroutines that report here, each once.
func (p *part) lanes() []string {
	var names []string
	for _, info := range p.points() {
		for _, name := range info.Lanes() {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// partFilled is a leaf that the page fills from the picture at its cursor. It has the names of all queues.
func (i *Inspector) partFilled(context.Context, *part) (templ.Component, error) {
	titles := map[string]string{}
	for name, queue := range places().Queues {
		titles[name] = queue.Title
	}
	return partFilledLeaf(titles), nil
}

//go:embed places.yaml
var placesFile []byte

// places is what is said about the stations and queues. It is read when it is first asked for.
var places = sync.OnceValue(func() (table placeTable) {
	if err := yaml.UnmarshalStrict(placesFile, &table); err != nil {
		panic(fmt.Sprintf("inspector: places.yaml: %v", err))
	}
	return table
})

// placeTable is the form of places.yaml.
type placeTable struct {
	Stations map[probe.Station]placeText
	Queues   map[string]placeText
}

// placeText is what the inspector says about a station or a queue in words.
type placeText struct {
	Title   string // of a queue; a station's stands in its box
	What    string // two sentences
	Why     string // why it exists
	Chapter string // folder
	Threads []thread
}

// thread is a discussion upstream that became a scenario here.
type thread struct {
	Ref   string // "kubernetes/kubernetes#125123"
	Words string
}
