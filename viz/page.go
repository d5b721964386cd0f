package viz

import (
	"cmp"
	"net/http"

	"github.com/go-chi/chi/v5"

	"listwatch/internal/observe/takes"
	"listwatch/internal/play/guest"
	"listwatch/viz/frame"
	"listwatch/viz/lens"
	"listwatch/viz/stories"
)

// serveStage renders the page, on which nothing has happened yet: its script draws the picture.
func (u *UI) serveStage(w http.ResponseWriter, r *http.Request) {
	v := frame.View{
		Mode: "live", World: u.config.Hold != nil,
		Sandbox: u.config.Sandbox != nil, Scenarios: u.config.Scenarios,
		Limits: limits, Lab: u.config.Lab, Server: u.config.Server,
	}
	if u.config.Sandbox != nil {
		v.Knobs, v.Watchers = u.config.Sandbox.Knobs(), u.config.Sandbox.Watchers()
	}
	if u.config.Guest != nil {
		v.Choice = u.config.Guest.State().Choice
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

// part answers GET /viz/part/{station}/{tab}?queue=&subject=&resource=&at= with one leaf of the inspector as HTML. 404
// if there is no such station, queue or leaf; 410 if log is another run's.
func (u *UI) part(r *http.Request) (any, error) {
	query := r.URL.Query()
	at, err := number(query, "at", 0)
	if err = cmp.Or(err, u.knows(r)); err != nil {
		return nil, err
	}
	if !foreign(r) {
		u.config.Log.Look(query.Get("resource"), query.Get("subject"))
	}
	return u.inspector.Leaf(r.Context(), chi.URLParam(r, "station"), chi.URLParam(r, "tab"), query, at)
}

// knobsPanel is the panel as everything stands.
func (u *UI) knobsPanel(*http.Request) (any, error) {
	return stories.KnobsPanel(u.config.Sandbox.Knobs(), u.config.Sandbox.Watchers()), nil
}

// promisesPanel is how the promises stand, and the lab that is about one of them.
func (u *UI) promisesPanel(r *http.Request) (any, error) {
	u.config.Rules.Look(r.Context())
	return stories.PromisesNow(new(u.config.Rules.Report()), u.config.Lab), nil
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

// Guest is our client half on a server that is not ours.
type Guest interface {
	// Choose begins again with another choice, under a new log. The error is 400 if it cannot be meant, 409 if it
	// begins again already.
	Choose(choice guest.Choice) error
	// State returns how it is doing, and what the server says of itself.
	State() guest.State
}

func (u *UI) guestState(*http.Request) (any, error) { return u.config.Guest.State(), nil }

// lensPanel is how that server, its clients, and our informers there are doing.
func (u *UI) lensPanel(*http.Request) (any, error) {
	return lens.Now(&lens.Seen{Report: u.config.Lens(), Guest: u.config.Guest.State()}), nil
}

func (u *UI) choose(_ *http.Request, choice *guest.Choice) (any, error) {
	return answered{http.StatusAccepted, choice}, u.config.Guest.Choose(*choice)
}
