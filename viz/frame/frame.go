// Package frame is the page around the rooms: the bar above them, the banner, the dialogs, the keys, and page.js, which
// joins the modules of all rooms.
package frame

import (
	"context"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"

	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/rules"
	"listwatch/internal/observe/takes"
	"listwatch/viz/book"
	"listwatch/viz/console"
	"listwatch/viz/inspector"
	"listwatch/viz/lens"
	"listwatch/viz/reply"
	"listwatch/viz/stories"
	"listwatch/viz/timeline"
)

// Page is the page at /, made of rooms. [New] fills those that need only a log. Each of the others says what it needs:
// one that does not have it adds no route, and is not to be seen.
type Page struct {
	Past      timeline.Past
	Inspector inspector.Inspector

	Hold     timeline.Hold
	Stories  stories.Gallery
	Knobs    stories.Knobs
	Promises stories.Promises
	Console  console.Room
	Lens     lens.Room
	Book     book.Room

	Replay bool   // the log is a recording: nothing runs that could be acted on
	Viewed func() // called when a page begins to watch the log; nil: nothing is done then. It does not block
}

// Pictures are the folded states of a log.
type Pictures interface {
	timeline.Pictures
	Now(ctx context.Context) (*fold.State, error)
}

// New returns the page of a log that is only shown.
func New(log *probe.Log, pictures Pictures) *Page {
	return &Page{Past: timeline.Past{Log: log, Pictures: pictures},
		Inspector: inspector.Inspector{Log: log, Now: pictures.Now}}
}

// Mount adds the routes of the page and of its rooms.
func (p *Page) Mount(router chi.Router) {
	router.Get("/", p.serve)
	for _, room := range []interface{ Mount(router chi.Router) }{p.Past, &p.Inspector, p.Hold, p.Stories, p.Knobs,
		p.Promises, p.Console, p.Lens, p.Book} {
		room.Mount(router)
	}
}

// Attend tells the rooms that a page begins to watch the log, and leave, that it ends.
func (p *Page) Attend(r *http.Request) (leave func()) {
	leave = p.Hold.Attend(r)
	if p.Viewed != nil {
		p.Viewed()
	}
	return leave
}

// view is the page as it is rendered for one request. What stands in the log, its script draws.
type view struct {
	*Page
	Mode   string        // of the body's data-mode: "live", "held" or "replay"
	World  bool          // something runs that can be held
	Take   string        // a recording to be shown instead of the log, by name
	Report *rules.Report // the state of the promises; nil: they are not checked
	Figure bool          // the page is a mini-stage in a chapter: the drawing and the sentence only
}

// serve renders the page, on which nothing has happened yet: its script draws the picture.
func (p *Page) serve(w http.ResponseWriter, r *http.Request) {
	v := view{Page: p, Mode: "live", World: p.Hold.World != nil, Report: p.Promises.Report()}
	switch {
	case p.Replay:
		v.Mode = "replay"
	case p.Hold.Held():
		v.Mode = "held"
	}
	if take, ok := takes.Find(r.URL.Query().Get("take")); ok {
		v.Take, v.Mode, v.World = take.Name, "replay", false
	}
	if v.Figure = r.URL.Query().Has("figure"); v.Figure {
		framed(w.Header())
	}
	reply.Page(w, r, page(v))
}

// framed lets the page be shown in another one of ours: a chapter's mini-stage is the stage in a frame.
func framed(header http.Header) {
	const policy = "Content-Security-Policy"
	header.Set(policy, strings.Replace(header.Get(policy), "frame-ancestors 'none'", "frame-ancestors 'self'", 1))
	header.Set("X-Frame-Options", "SAMEORIGIN")
}

// plays reports whether something runs that can be acted on.
func (v view) plays() bool { return v.Knobs.Sandbox != nil }

// tours reports whether the page can begin with its first view, and give its tour: on a program that runs, or on the
// recording of a tour.
func (v view) tours() bool {
	return !v.Figure && v.Promises.Lab == nil &&
		(v.Take == stories.Tour || v.plays() && v.Take == "" && v.Mode == "live")
}
