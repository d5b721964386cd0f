// Package timeline shows the log as a bar and as a table. It has the player that moves the cursor in the log, and the
// panel that holds the running world. player.js owns the cursor and the state there; [Past] only reads the log, and
// [Hold] changes nothing but the [hold.World].
package timeline

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"
	"github.com/go-chi/chi/v5"

	"listwatch/internal/observe/hold"
	"listwatch/internal/observe/probe"
	"listwatch/viz/reply"
)

// Hold serves the gates and the clock of the world. It has no routes without a World.
type Hold struct {
	World *hold.World
	Log   *probe.Log
}

// Mount adds the routes of the gates and the clock.
func (h Hold) Mount(router chi.Router) {
	if h.World == nil {
		return
	}
	router.Handle("GET /viz/hold", reply.Look(h.World.Status))
	router.Handle("POST /viz/hold", reply.Body(h.hold))
	router.Handle("POST /viz/clock", reply.Body(h.moveClock))
	router.Handle("GET /viz/panel/world", reply.Look(h.Panel))
}

// Panel returns the panel with the world's current state.
func (h Hold) Panel() templ.Component {
	if h.World == nil {
		return h.panel(hold.Status{})
	}
	return h.panel(h.World.Status())
}

// Held reports whether the world is held, which it never is without a World.
func (h Hold) Held() bool { return h.World != nil && h.World.Status().Held }

// Attend counts a page whose viewer can resume the world, until leave is called.
func (h Hold) Attend() (leave func()) {
	if h.World == nil {
		return func() {}
	}
	return h.World.Attend()
}

// maxAdvance is the longest duration that a command may advance the clock by; "next" is not bounded.
const maxAdvance = time.Hour

// holdCommand is the body of POST /viz/hold.
type holdCommand struct {
	// Do is one of
	//
	//	hold     hold the world; with a station, resource or subject, only close a gate there
	//	release  resume the world or, if it is not held, open all gates; with one of the three, open the gate there
	//	step     let each held goroutine pass one point; the fields of Query select some of them
	//	walk     move an object or version to its next point; the goroutine that takes it from a queue moves, too
	Do string `json:"do"`

	probe.Query // Key and RV are for step and walk only

	Unattended string `json:"unattended"` // a duration for hold; "" is five minutes
}

// stepped is the response to a step or a walk.
type stepped struct {
	Passed int    `json:"passed"`         // the number of goroutines that passed a point; 0 for a walk
	Says   string `json:"says,omitempty"` // Passed in words, or how a walk ended; "" if it ended at a point
	hold.Status
}

// hold carries out a command, and returns the new state. The error is 400 for an invalid command, or the context's.
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
	default:
		return nil, reply.Refuse(http.StatusBadRequest, "do: want hold, release, step or walk, got %.40q", command.Do)
	}
	return h.World.Status(), nil
}

const nothingAtAGate = "No goroutine is paused at a gate: each waits for another one, or for the clock."

// passed returns a sentence about the number of goroutines that passed a point.
func passed(n int) string {
	switch n {
	case 0:
		return nothingAtAGate
	case 1:
		return "1 goroutine advanced one step"
	}
	return fmt.Sprintf("%d goroutines advanced one step", n)
}

// duration parses a command's duration; "" is 0. The error is 400 for one outside (0, most].
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

// clockCommand is the body of POST /viz/clock. The given fields take effect in this order.
type clockCommand struct {
	Speed   *float64 `json:"speed"`   // the speed of the running clock
	Paused  *bool    `json:"paused"`  // true stops the clock, false lets it run
	Advance string   `json:"advance"` // a duration, "1s", "250ms", or "next": to the next timer
}

// moveClock sets or moves the pipeline's clock, and returns the state. The error is 400, or 409 if "next" has no timer.
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
		d = max(0, timers[0].In) // In is negative for a late timer
	}
	if command.Advance != "" {
		h.World.Advance(d)
	}
	return h.World.Status(), nil
}

// worldPeriod is the time between two events for a page while the world is held, gated, or off its usual clock.
const worldPeriod = time.Second

// News returns the name of an event, and a function for one page that returns the event's next value, a [hold.Status],
// or nil if there is none; passed is the time since its last call. It returns a value at first, after each change, and
// once a second while the state is not the usual one. Without a World it always returns nil.
func (h Hold) News() (event string, news func(passed time.Duration) any) {
	var told uint64 // the world's change count at the last value
	var usual bool  // whether the world was in its usual state then
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

const (
	shownHeld      = 40               // the maximum number of held goroutines in the panel
	pageUnattended = 15 * time.Second // the time the world stays held after a page vanishes
)

// stateOf returns the world's state in a word or two, and how long the world has been held, or "" if it is not held.
func stateOf(s hold.Status) (state, since string) {
	switch {
	case s.Held:
		return "held", fmt.Sprintf("for %.0f s", time.Since(s.Since).Seconds())
	case len(s.Gates) > 0:
		return "gates closed", ""
	case s.Clock.Paused:
		return "clock stopped", ""
	}
	return "running", ""
}

func nextTimer(s hold.Status) string {
	if len(s.Clock.Next) == 0 {
		return "no timer is set"
	}
	return fmt.Sprintf("next timer in %.1f s", max(0, s.Clock.Next[0].Seconds))
}

// closed reports whether the gate at a station stops every goroutine there.
func closed(s hold.Status, station probe.Station) bool {
	at := func(q probe.Query) bool { return q.Station == station && q.Subject == "" && q.Resource == "" }
	return slices.ContainsFunc(s.Gates, at) || s.Held && !slices.ContainsFunc(s.Opened, at)
}

// turnGate returns the command that toggles the gate at a station.
func turnGate(s hold.Status, station probe.Station) holdCommand {
	if closed(s, station) {
		return holdCommand{Do: "release", Query: probe.Query{Station: station}}
	}
	return holdCommand{Do: "hold", Query: probe.Query{Station: station}, Unattended: pageUnattended.String()}
}

// hopOf returns the command that lets one goroutine pass one point.
func hopOf(w probe.Waiting) holdCommand {
	return holdCommand{Do: "step", Query: probe.Query{Station: w.Station, Resource: w.Resource, Subject: w.Subject,
		Key: w.Key, RV: w.RV}}
}

// carries returns the object with which a goroutine waits, or else its record's sentence, cut to 60 characters.
func carries(w probe.Waiting) string {
	if w.RV == 0 {
		return fmt.Sprintf("%.60s", cmp.Or(strings.TrimSpace(w.Type+" "+w.Key), w.Says))
	}
	return fmt.Sprintf("%.60s", strings.TrimSpace(fmt.Sprint(w.Type, " ", w.Key, " ", w.RV)))
}

// noneHeld returns the panel's text below the rows.
func noneHeld(s hold.Status) string {
	switch n := len(s.Waiting); {
	case n > shownHeld:
		return fmt.Sprintf("and %d more", n-shownHeld)
	case n > 0:
		return ""
	case s.Held:
		return nothingAtAGate
	}
	return "No goroutine is held."
}
