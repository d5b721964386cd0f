package viz

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/a-h/templ"
	"github.com/go-chi/chi/v5"

	"listwatch/internal/fold"
	"listwatch/internal/probe"
)

// partTab is one leaf of the inspector.
type partTab struct {
	Name  string // in the URL
	Title string
	draw  func(u *UI, p *part) (templ.Component, error)
}

// partTabs are the leaves in the order in which they are shown.
var partTabs = []partTab{
	{"what", "What", (*UI).partWhat},
	{"state", "State", (*UI).partState},
	{"code", "Code", (*UI).partCode},
	{"blocked", "Why blocked", (*UI).partBlocked},
	{"history", "History", (*UI).partHistory},
	{"upstream", "Upstream", (*UI).partUpstream},
	{"knobs", "Knobs", (*UI).partKnobs},
	{"bytes", "Bytes", (*UI).partBytes}, // shown where there are any: at the wire and the watchers
}

// part is one thing on the stage that can be looked into: a station, or one of its queues, of one subject or of all.
type part struct {
	Station  probe.Station
	Queue    string // data-queue; "": the station itself
	Subject  string // "w3"; "": whoever is there
	Resource string
	Point    string // what the code tab is to show; "": what was reported here last
	Query    string // what the history is searched for
	At       uint64 // the record at which we look; 0: the newest

	Seq     uint64 // of picture
	t       int64  // of the picture, on the log's clock
	picture *fold.Resource
}

// servePart answers GET /viz/part/{station}/{tab}?queue=&subject=&resource=&at= with one leaf of the inspector as HTML.
// 404 if there is no such station, queue or leaf; 410 if the log no longer leads to the record at.
func (u *UI) servePart(w http.ResponseWriter, r *http.Request) {
	p, err := readPart(chi.URLParam(r, "station"), r.URL.Query())
	if err != nil {
		writeError(w, err)
		return
	}
	i := slices.IndexFunc(partTabs, func(tab partTab) bool { return tab.Name == chi.URLParam(r, "tab") })
	if i < 0 {
		writeError(w, refuse(http.StatusNotFound, "there is no such leaf: want one of what, state, code, blocked, history, upstream, knobs, bytes"))
		return
	}
	if err := u.look(r, p); err != nil {
		writeError(w, err)
		return
	}
	leaf, err := partTabs[i].draw(u, p)
	if err != nil {
		writeError(w, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	// A peer that goes while the leaf is written is nobody's concern.
	_ = partLeaf(p, partTabs[i], leaf).Render(r.Context(), w)
}

// readPart finds out what is asked about.
func readPart(station string, values url.Values) (*part, error) {
	p := &part{
		Station: probe.Station(station), Queue: values.Get("queue"), Subject: values.Get("subject"),
		Resource: values.Get("resource"), Point: values.Get("point"), Query: values.Get("q"),
	}
	if p.Resource == "" {
		p.Resource = firstResource
	}
	if !slices.Contains(probe.Stations, p.Station) {
		return nil, refuse(http.StatusNotFound, "there is no station %.40q", station)
	}
	if p.Queue != "" && !slices.ContainsFunc(p.points(), func(info *probe.Info) bool { return info.Queue == p.Queue && info.Station == p.Station }) {
		return nil, refuse(http.StatusNotFound, "there is no queue %.40q at %s", p.Queue, station)
	}
	var err error
	p.At, err = number(values, "at", 0)
	return p, err
}

// look takes the picture at the record that is asked for.
func (u *UI) look(r *http.Request, p *part) error {
	if err := u.knows(r); err != nil {
		return err
	}
	state, err := u.folder.at(p.At)
	if err != nil {
		return err
	}
	p.Seq, p.t = state.Seq, state.T
	p.picture = state.Resources[p.Resource]
	if p.picture == nil {
		p.picture = &fold.Resource{}
	}
	return nil
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

// reports tells whether a point is about the part: a queue's are those that move it, and those that tell of its subject.
func (p *part) reports(info *probe.Info) bool {
	if p.Queue != "" && info.Queue == p.Queue {
		return true // also where another station takes from it: result is taken from by the wire
	}
	return info.Station == p.Station && (p.Queue == "" || info.Queue == "" && p.Subject != "")
}

// reportsNamed is reports for the name of a point.
func (p *part) reportsNamed(point string) bool {
	return slices.ContainsFunc(p.points(), func(info *probe.Info) bool { return info.Name == point })
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
	name := boxes[string(p.Station)].Title
	if p.Queue != "" {
		name = queueTexts[p.Queue].Title
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
		return queueTexts[p.Queue]
	}
	return stationTexts[p.Station]
}

// lanes returns the goroutines that report here.
func (p *part) lanes() []string { return lanesOf(p.points()) }

// subjects returns the parts that have the queue, or belong to the station, by id.
func (p *part) subjects() []lane {
	v := view{picture: p.picture}
	return v.lanesWhere(func(s *fold.Subject) bool {
		if p.Queue != "" {
			return s.Queues[p.Queue] != nil
		}
		return s.Last.Point != "" && p.reportsNamed(s.Last.Point) || s.Kind == string(p.Station)
	})
}
