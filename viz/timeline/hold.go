package timeline

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"

	"listwatch/internal/observe/hold"
	"listwatch/internal/observe/probe"
	"listwatch/viz/reply"
)

// Hold is the world that can be held, and whose clock can be moved. It is not mounted without a World.
type Hold struct {
	World *hold.World
	Log   *probe.Log
}

// Mount adds the room's routes.
func (h Hold) Mount(router chi.Router) {
	if h.World == nil {
		return
	}
	router.Handle("GET /viz/hold", reply.Look(h.World.Status))
	router.Handle("POST /viz/hold", reply.Body(h.hold))
	router.Handle("POST /viz/clock", reply.Body(h.moveClock))
}

// Held reports whether the world is held.
func (h Hold) Held() bool { return h.World != nil && h.World.Status().Held }

// Attend is called when a page begins to watch the log: the world is not resumed until it leaves.
func (h Hold) Attend(*http.Request) (leave func()) {
	if h.World == nil {
		return func() {}
	}
	return h.World.Attend()
}

// maxAdvance bounds one step of the pipeline's clock.
const maxAdvance = time.Hour

// holdCommand is the body of POST /viz/hold.
type holdCommand struct {
	// Do is one of
	//
	//	hold     the world; or, with a station, close the gate there
	//	release  the world, or, if it is not held, every gate; or, with a station, open the gate there
	//	step     let those held pass one point each: all, those of a station, or those with an object or version
	//	walk     let what has an object or version come to its next point, whatever has to be stepped in front of it
	//	leave    say how long what is held may stay so with no page open
	Do string `json:"do"`

	probe.Query // a key and a version are for step and walk only

	Unattended string `json:"unattended"` // hold and leave: a duration; "" is five minutes
}

// stepped is the answer to a step, or a walk.
type stepped struct {
	Passed int    `json:"passed"`         // how many went on
	Says   string `json:"says,omitempty"` // … in words; of a walk: how it ended; nothing: at a point
	hold.Status
}

// hold holds the world, or lets it go, and answers with what is held then.
func (h Hold) hold(r *http.Request, command *holdCommand) (any, error) {
	selector := probe.Query{Station: command.Station, Resource: command.Resource, Subject: command.Subject}
	if selector.Station != "" && !slices.Contains(probe.Stations, selector.Station) {
		return nil, reply.Refuse(http.StatusBadRequest, "station: there is no %.40q", selector.Station)
	}
	unattended, err := duration("unattended", command.Unattended, hold.MaxUnattended)
	if err != nil {
		return nil, err
	}
	all := selector.Station == "" && selector.Resource == "" && selector.Subject == ""
	switch {
	case command.Do == "walk":
		ends, err := h.World.Walk(r.Context(), h.Log, command.Query)
		return stepped{Says: ends, Status: h.World.Status()}, err
	case command.Do == "hold" && all:
		h.World.Hold(unattended)
	case command.Do == "hold":
		if !slices.Contains(hold.Stations(), selector.Station) && selector.Station != "" {
			return nil,
				reply.Refuse(http.StatusBadRequest, "station: %s alone cannot hold a goroutine: its moments are "+
					"reported under locks, or by goroutines of the station before", selector.Station)
		}
		h.World.HoldAt(selector, unattended)
	case command.Do == "release" && all:
		h.World.Release()
	case command.Do == "release":
		h.World.ReleaseAt(selector)
	case command.Do == "step":
		n := h.World.Step(command.Query)
		return stepped{n, passed(n), h.World.Status()}, nil
	case command.Do == "leave":
		h.World.Leave(unattended)
	default:
		return nil, reply.Refuse(http.StatusBadRequest, "do: want hold, release, step, walk or leave, got %.40q",
			command.Do)
	}
	return h.World.Status(), nil
}

// passed says how many goroutines went on.
func passed(n int) string {
	switch n {
	case 0:
		return "No goroutine is paused at a gate: each waits for another one, or for the clock."
	case 1:
		return "1 goroutine advanced one step"
	}
	return fmt.Sprintf("%d goroutines advanced one step", n)
}

// duration reads what a command says of a length of time; "" is 0.
func duration(name, text string, most time.Duration) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || d > most {
		return 0, reply.Refuse(http.StatusBadRequest, "%s: want a duration in (0, %s], got %.40q", name, most, text)
	}
	return d, nil
}

// clockCommand is the body of POST /viz/clock. What is given is done in this order.
type clockCommand struct {
	Speed   *float64 `json:"speed"`   // how fast it runs when it runs
	Paused  *bool    `json:"paused"`  // stop it, or let it run
	Advance string   `json:"advance"` // a duration, "1s", "250ms", or "next": to the next timer
}

// moveClock sets or moves the pipeline's clock and answers with what is held, and when it is, then.
func (h Hold) moveClock(_ *http.Request, command *clockCommand) (_ any, err error) {
	next, d := command.Advance == "next", time.Duration(0)
	if command.Advance == "" && command.Speed == nil && command.Paused == nil {
		return nil, reply.Refuse(http.StatusBadRequest, "want speed, paused or advance")
	}
	if !next {
		if d, err = duration("advance (or next)", command.Advance, maxAdvance); err != nil {
			return nil, err
		}
	}
	if command.Speed != nil {
		if err := h.World.SetSpeed(*command.Speed); err != nil {
			return nil, reply.Refuse(http.StatusBadRequest, "%v", err)
		}
	}
	if command.Paused != nil {
		h.World.SetPaused(*command.Paused)
	}
	if next {
		timers := h.World.Status().Clock.Next
		if len(timers) == 0 {
			return nil, reply.Refuse(http.StatusConflict, "no timer is set")
		}
		d = max(0, timers[0].In) // less if it is late
	}
	if command.Advance != "" {
		h.World.Advance(d)
	}
	return h.World.Status(), nil
}

// worldPeriod is how often a page is told of a world that is out of the usual.
const worldPeriod = time.Second

// News returns a function that returns what one page is to be told of the world when so much time has passed since the
// last call; nil: nothing. It is told how the world is at first, when that has changed, and once a second while
// something is out of the usual: then times go by that the page counts.
func (h Hold) News() (event string, news func(passed time.Duration) any) {
	var told uint64 // the world's changes when the page was last told of it
	var usual bool  // the world was untouched then
	since := worldPeriod
	return "world", func(passed time.Duration) any {
		if since += passed; h.World == nil {
			return nil
		}
		changes := h.World.Changes()
		if changes == told && (usual || since < worldPeriod) {
			return nil
		}
		status := h.World.Status()
		told, usual, since = changes, status.Usual(), 0
		return status
	}
}
