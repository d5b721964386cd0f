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

// Page is the page at /, made of rooms. [New] fills those that need only a log. A room whose dependency is missing adds
// no routes and is hidden.
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

	Replay bool // whether the log is a recording, without a running pipeline
}

// Pictures are the folded states of a log. Now returns a copy of the newest one, or ctx's error.
type Pictures interface {
	timeline.Pictures
	Now(ctx context.Context) (*fold.State, error)
}

// New returns a page that only shows a log.
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

// view is the page for one request. The script draws the log's content.
type view struct {
	*Page
	Mode   string        // the body's data-mode: "live", "held" or "replay"
	World  bool          // whether there is a world to hold
	Take   string        // the name of a recording to show instead of the log
	Report *rules.Report // the state of the promises; nil if not checked
	Figure bool          // whether the page is a chapter's mini-stage, which shows only the drawing
}

// serve renders the page in its initial state; its script draws the picture.
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
		// Our own pages, but no others, may show this page in a frame.
		const policy = "Content-Security-Policy"
		header := w.Header()
		header.Set(policy, strings.Replace(header.Get(policy), "frame-ancestors 'none'", "frame-ancestors 'self'", 1))
		header.Set("X-Frame-Options", "SAMEORIGIN")
	}
	reply.Page(w, r, page(v))
}

// plays reports whether there is a running pipeline with knobs.
func (v view) plays() bool { return v.Knobs.Sandbox != nil }

// tours reports whether the page can begin with its first view and offer the tour: with a pipeline that is not held, or
// with the recording of the tour, but neither in a chapter nor in a lab.
func (v view) tours() bool {
	return !v.Figure && v.Promises.Lab == nil &&
		(v.Take == stories.Tour || v.plays() && v.Take == "" && v.Mode == "live")
}
