package hold

import (
	"time"

	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/worldclock"
)

// Status is what is held, since when, and how the clock goes. It marshals to JSON.
type Status struct {
	probe.GateState
	Since      time.Time       `json:"since,omitzero"` // the world has been held, on the wall
	Clock      Clock           `json:"clock"`
	Stations   []probe.Station `json:"stations"`   // where a gate can be closed
	Attending  int             `json:"attending"`  // pages that are open
	Unattended string          `json:"unattended"` // how long a hold lasts without any
	LetGo      string          `json:"letGo,omitempty"`
}

// Clock is the world's clock.
type Clock struct {
	worldclock.State
	Next []worldclock.Due `json:"next"` // the next timers
}

// shownTimers is how many timers a status names.
const shownTimers = 5

// Status returns what is held now.
func (w *World) Status() Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := Status{
		GateState: w.config.Gate.State(),
		Clock:     Clock{State: w.config.Clock.State(), Next: w.config.Clock.Upcoming(shownTimers)},
		Stations:  Stations(), Attending: w.attending, Unattended: w.unattended.String(), LetGo: w.letGo,
	}
	if s.Held {
		s.Since = w.since
	}
	return s
}

// Usual reports whether the world is untouched: nothing is held, and its clock runs like the wall's.
func (s *Status) Usual() bool {
	return !s.Held && len(s.Gates) == 0 && !s.Clock.Paused && s.Clock.Speed == 1 && s.LetGo == ""
}
