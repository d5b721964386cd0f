// Package inspector shows one part of the stage: a station, a queue or a watcher. Each tab has a leaf, a piece of HTML:
// the part's description, its state, the code that reports its points, the chain of waiting goroutines, or the part's
// records. The page itself fills in the leaves that depend on the picture at the cursor (why.js). Each station and
// queue needs an entry with its texts in places.yaml.
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
	"time"

	"github.com/a-h/templ"
	"github.com/go-chi/chi/v5"
	"sigs.k8s.io/yaml"

	"listwatch/chapters"
	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
	"listwatch/internal/text/book"
	"listwatch/viz/reply"
	"listwatch/viz/stage"
)

// Inspector serves the leaves. Its fields never change.
type Inspector struct {
	Log *probe.Log
	Now func(ctx context.Context) (*fold.State, error) // returns a copy of the newest picture

	// Components returns the Snapshots of the running program's components, as a value that marshals to JSON. It is
	// nil, and its route missing, if the page only shows a log.
	Components func() any
}

// Mount adds the room's routes.
func (i *Inspector) Mount(router chi.Router) {
	router.Handle("GET /viz/part/{station}/{tab}", reply.With(i.part))
	if i.Components != nil {
		router.Handle("GET /viz/state", reply.Look(i.Components))
	}
}

// part answers GET /viz/part/{station}/{tab}?queue=&subject=&resource=&point=&at= with one leaf as HTML. Errors: 400
// for a wrong at=, 404 for an unknown station, queue or leaf, 410 if log= names another run.
func (i *Inspector) part(r *http.Request) (any, error) {
	query := r.URL.Query()
	at, err := reply.Number(query, "at", 0)
	if err = cmp.Or(err, reply.About(i.Log, r)); err != nil {
		return nil, err
	}
	if !reply.Foreign(r) {
		i.Log.Look(query.Get("resource"), query.Get("subject")) // the log then records this subject in full
	}
	return i.Leaf(r.Context(), chi.URLParam(r, "station"), chi.URLParam(r, "tab"), query, at)
}

// partTab is a tab of the inspector; draw makes the tab's leaf.
type partTab struct {
	Name  string // in the URL
	Title string
	draw  func(i *Inspector, ctx context.Context, p *part) (templ.Component, error)
}

// partTabs are the tabs in the order in which the page shows them.
var partTabs = []partTab{
	{"what", "What", (*Inspector).partWhat},
	{"state", "State", (*Inspector).partFilled},
	{"code", "Code", (*Inspector).partCode},
	{"blocked", "Why blocked", (*Inspector).partFilled},
	{"history", "History", (*Inspector).partHistory},
}

// part is a part of the stage: a station, or one of its queues, for one subject or for all.
type part struct {
	Station  probe.Station
	Queue    string // data-queue, "" for the station itself
	Subject  string // "w3", or "" for all
	Resource string
	Point    string // the point of the code leaf, "" for the part's first
	Until    uint64 // the newest record of the history leaf
}

// Leaf returns one leaf about the part that the query names (queue, subject, resource, point), at a record, or at the
// newest if at is 0. The error is 404 if there is no such station, queue or leaf.
func (i *Inspector) Leaf(ctx context.Context, station, tab string, query url.Values,
	at uint64) (templ.Component, error) {
	p, err := readPart(station, query)
	if err != nil {
		return nil, err
	}
	n := slices.IndexFunc(partTabs, func(each partTab) bool { return each.Name == tab })
	if n < 0 {
		return nil, reply.Refuse(http.StatusNotFound, "there is no such leaf: want one of what, state, code, "+
			"blocked, history")
	}
	p.Until = cmp.Or(at, i.Log.Last())
	leaf, err := partTabs[n].draw(i, ctx, p)
	if err != nil {
		return nil, err
	}
	return partLeaf(p, partTabs[n], leaf), nil
}

// readPart reads a part from a request's parameters. The error is 404 for an unknown station or queue.
func readPart(station string, values url.Values) (*part, error) {
	p := &part{
		Station: probe.Station(station), Queue: values.Get("queue"), Subject: values.Get("subject"),
		Resource: cmp.Or(values.Get("resource"), stage.FirstResource), Point: values.Get("point"),
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

// points returns the points of the part, in path order.
func (p *part) points() []*probe.Info {
	var list []*probe.Info
	for _, point := range probe.Points() {
		if info := point.Info(); p.reports(info) {
			list = append(list, info)
		}
	}
	return list
}

// reports reports whether a point is about the part. A subject's queue also has the station's points without a queue.
func (p *part) reports(info *probe.Info) bool {
	if p.Queue != "" && info.Queue == p.Queue {
		return true // even at another station: the wire takes from result
	}
	return info.Station == p.Station && (p.Queue == "" || info.Queue == "" && p.Subject != "")
}

// matches reports whether a record is about the part, as the function meant (why.js) does.
func (p *part) matches(r *probe.Record) bool {
	if r.Resource != p.Resource && r.Resource != "" || p.Subject != "" && r.Subject != p.Subject {
		return false
	}
	return p.reports(r.Point.Info())
}

// title names the part: its station or queue and, if its name differs, its subject.
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

// text returns the texts about the part's queue, or else about its station.
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

// partFilled returns a leaf that the page fills from the picture at its cursor. The leaf has the names of all queues.
func (i *Inspector) partFilled(context.Context, *part) (templ.Component, error) {
	titles := map[string]string{}
	for name, queue := range places().Queues {
		titles[name] = queue.Title
	}
	return partFilledLeaf(titles), nil
}

//go:embed places.yaml
var placesFile []byte

// places returns the texts about stations and queues; the first call parses them.
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

// placeText holds the inspector's texts about a station or a queue.
type placeText struct {
	Title   string // only for queues; a station's title is in the layout
	What    string // a few sentences
	Why     string // the reason for the part
	Chapter string // the chapter's folder
	Threads []thread
}

// thread is an upstream discussion about a place, and a few words on it.
type thread struct {
	Ref   string // "kubernetes/kubernetes#125123"
	Words string
}

// sites returns the declarations that report, by point. The first call finds them in the embedded sources, which takes
// some tens of milliseconds, too long for the program's start.
var sites = sync.OnceValues(func() (map[string]*book.Site, error) { return book.Sites(chapters.FS()) })

func (i *Inspector) partWhat(_ context.Context, p *part) (templ.Component, error) {
	return partWhatLeaf(p, p.text()), nil
}

// codeView is the code leaf: one declaration, and a list of all declarations that report the part's points.
type codeView struct {
	*book.Site
	Point string                // the point of the highlighted line
	Fact  string                // the point's [probe.Info] Fact
	At    int                   // the highlighted line
	Sites []*book.Site          // the part's declarations, in path order
	First map[*book.Site]string // the part's first point at each site
}

// partCode shows the declaration that reports the requested point, at any station, or else the part's first point.
func (i *Inspector) partCode(_ context.Context, p *part) (templ.Component, error) {
	sites, err := sites()
	if err != nil {
		return nil, err
	}
	view := codeView{Point: p.Point, First: map[*book.Site]string{}}
	for _, info := range p.points() {
		if site := sites[info.Name]; site != nil && view.First[site] == "" {
			view.First[site] = info.Name
			view.Sites = append(view.Sites, site)
		}
	}
	if sites[view.Point] == nil && len(view.Sites) > 0 { // no point is requested, or no chapter reports it
		view.Point = view.First[view.Sites[0]]
	}
	if view.Site = sites[view.Point]; view.Site == nil {
		return partNoCode(p), nil
	}
	view.At = view.LineOf(view.Point)
	point, _ := probe.PointNamed(view.Point)
	view.Fact = point.Info().Fact
	return partCodeLeaf(p, view), nil
}

// breakAt is a breakpoint at a line: the debugger, the text to enter, and where to enter it.
type breakAt struct{ In, Text, Where string }

// breaksAt returns a breakpoint at a line of a file for each of several debuggers (docs/DEBUGGING.md).
func breaksAt(file string, line int) []breakAt {
	at := fmt.Sprintf("%s:%d", file, line)
	return []breakAt{
		{"dlv", "break " + at, ", at delve's prompt"},
		{"VS Code", at, ", as a function breakpoint"},
		{"GoLand", at, ", in Go to File (Ctrl+Shift+N), then Ctrl+F8"},
	}
}

// historyRows is the maximum number of records in the history leaf.
const historyRows = 80

// partHistory shows the newest records about the part up to p.Until, newest first.
func (i *Inspector) partHistory(_ context.Context, p *part) (templ.Component, error) {
	var found []probe.Record
	log := i.Log
	for r := range log.Between(log.Oldest()-1, p.Until) {
		if !p.matches(r) {
			continue
		}
		if found = append(found, *r); len(found) == 2*historyRows {
			found = slices.Delete(found, 0, historyRows)
		}
	}
	found = found[max(0, len(found)-historyRows):]
	slices.Reverse(found)
	return partHistoryLeaf(p, found, log.Names()), nil
}

// clockText formats a time since the beginning of the log, like the timeline.
func clockText(t time.Duration) string {
	return fmt.Sprintf("%d:%06.3f", int(t.Minutes()), (t % time.Minute).Seconds())
}
