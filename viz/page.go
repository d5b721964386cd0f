package viz

import (
	"cmp"
	"net/http"

	"github.com/a-h/templ"
	"github.com/go-chi/chi/v5"

	handlers "listwatch/chapters/08-handlers"
	"listwatch/internal/observe/takes"
	"listwatch/internal/play/lab"
	"listwatch/viz/frame"
	"listwatch/viz/stories"
)

// serveStage renders the page, on which nothing has happened yet: its script draws the picture.
func (u *UI) serveStage(w http.ResponseWriter, r *http.Request) {
	v := frame.View{
		Mode: "live", World: u.config.Hold != nil,
		Sandbox: u.config.Sandbox != nil, Scenarios: u.config.Scenarios,
		Limits: limits, Lab: u.config.Lab, Labs: lab.All(), Server: u.config.Server,
	}
	if u.config.Sandbox != nil {
		v.Knobs, v.Watchers = u.config.Sandbox.Knobs(), u.config.Sandbox.Watchers()
	}
	if u.config.Guest != nil {
		state, _ := u.config.Guest.State()
		v.Choice = state.Choice
	}
	if u.config.Rules != nil {
		v.Promises = new(u.config.Rules.Report())
	}
	switch {
	case u.config.Replay:
		v.Mode = "replay"
	case v.World && u.config.Hold.Status().Held:
		v.Mode = "held"
	}
	if take, ok := takes.Find(r.URL.Query().Get("take")); ok {
		v.Take, v.Mode, v.World = take.Name, "replay", false
	}
	if v.Figure = r.URL.Query().Has("figure"); v.Figure {
		framed(w.Header())
	}
	writePage(w, r, frame.Page(v))
}

// writePage answers with HTML.
func writePage(w http.ResponseWriter, r *http.Request, page templ.Component) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_ = page.Render(r.Context(), w) // it fails only if the client has disconnected
}

// servePart answers GET /viz/part/{station}/{tab}?queue=&subject=&resource=&at= with one leaf of the inspector as HTML.
// 404 if there is no such station, queue or leaf; 410 if log is another run's.
func (u *UI) servePart(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	at, err := number(query, "at", 0)
	if err = cmp.Or(err, u.knows(r)); err != nil {
		handlers.WriteError(w, r, err)
		return
	}
	u.config.Log.Look(query.Get("resource"), query.Get("subject"))
	leaf, err := u.inspector.Leaf(r.Context(), chi.URLParam(r, "station"), chi.URLParam(r, "tab"), query, at)
	if err != nil {
		handlers.WriteError(w, r, err)
		return
	}
	writePage(w, r, leaf)
}

// serveKnobs answers GET /viz/panel/knobs with the panel as everything stands.
func (u *UI) serveKnobs(w http.ResponseWriter, r *http.Request) {
	writePage(w, r, stories.KnobsPanel(u.config.Sandbox.Knobs(), u.config.Sandbox.Watchers()))
}

// servePromises answers GET /viz/panel/promises with how the promises stand, and the lab that is about one of them.
func (u *UI) servePromises(w http.ResponseWriter, r *http.Request) {
	u.config.Rules.Look(r.Context())
	writePage(w, r, stories.PromisesNow(new(u.config.Rules.Report()), u.config.Lab))
}

// serveTake answers GET /viz/takes/NAME with a recording.
func serveTake(w http.ResponseWriter, r *http.Request) {
	take, ok := takes.Find(chi.URLParam(r, "name"))
	if !ok {
		writeStatus(w, r, http.StatusNotFound, "there is no recording of that name")
		return
	}
	w.Header().Set("Content-Type", "application/gzip")
	w.Header().Set("Cache-Control", "no-cache")
	_, _ = w.Write(take.File()) // the reader has gone if this fails
}
