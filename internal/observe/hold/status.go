package hold

import (
	"time"

	"listwatch/internal/observe/probe"
)

// Status is what is held, since when, and how the clock goes. It marshals to JSON.
type Status struct {
	Held       bool             `json:"held"`            // the world as a whole
	Since      *time.Time       `json:"since,omitempty"` // on the wall
	Gates      []probe.Selector `json:"gates"`           // closed at single stations
	Opened     []probe.Selector `json:"opened"`          // open although the world is held
	Waiting    []Waiting        `json:"waiting"`         // held at a gate, the longest first
	Clock      Clock            `json:"clock"`
	Stations   []probe.Station  `json:"stations"`   // where a gate can be closed
	Attending  int              `json:"attending"`  // pages that are open
	Unattended string           `json:"unattended"` // how long a hold lasts without any
	LetGo      string           `json:"letGo,omitempty"`
}

// Waiting is one goroutine that is held.
type Waiting struct {
	Goroutine string        `json:"goroutine"` // "cacher.dispatchEvents"
	Function  string        `json:"function"`  // where it stands
	Line      string        `json:"line"`
	Point     string        `json:"point"`
	Station   probe.Station `json:"station"`
	Resource  string        `json:"resource,omitempty"`
	Subject   string        `json:"subject,omitempty"`
	Type      string        `json:"type,omitempty"`
	Key       string        `json:"key,omitempty"` // "default/a"
	RV        uint64        `json:"rv,omitempty"`
	Seq       uint64        `json:"seq"`  // of the record at which it stands
	Says      string        `json:"says"` // that record's sentence
	Since     time.Time     `json:"since"`
	Seconds   float64       `json:"seconds"` // since then, on the wall
}

// Clock is the world's clock.
type Clock struct {
	Now    time.Time `json:"now"`
	Speed  float64   `json:"speed"` // when it runs
	Paused bool      `json:"paused"`
	Next   []Due     `json:"next"` // the next timers
}

// Due is a timer that a goroutine waits for.
type Due struct {
	In   float64 `json:"in"`  // seconds of the world's time
	Who  string  `json:"who"` // the function that set it
	Line string  `json:"line"`
}

// shownTimers is how many timers a status names.
const shownTimers = 5

// Status returns what is held now.
func (w *World) Status() Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	gate := w.config.Gate.State()
	clock := w.config.Clock.State()
	s := Status{
		Held: gate.World, Gates: append([]probe.Selector{}, gate.Gates...), Opened: append([]probe.Selector{},
			gate.Opened...), Waiting: []Waiting{},
		Clock:    Clock{Now: clock.Now, Speed: clock.Speed, Paused: clock.Paused, Next: []Due{}},
		Stations: Stations(), Attending: w.attending, Unattended: w.unattended.String(), LetGo: w.letGo,
	}
	if s.Held {
		since := w.since
		s.Since = &since
	}
	for i := range gate.Held {
		s.Waiting = append(s.Waiting, waiting(&gate.Held[i], w.config.Wall.Since(gate.Held[i].Since)))
	}
	for _, due := range w.config.Clock.Upcoming(shownTimers) {
		s.Clock.Next = append(s.Clock.Next, Due{In: due.In.Seconds(), Who: due.Who, Line: due.Line})
	}
	return s
}

// Usual reports whether the world is untouched: nothing is held, and its clock runs like the wall's.
func (s *Status) Usual() bool {
	return !s.Held && len(s.Gates) == 0 && !s.Clock.Paused && s.Clock.Speed == 1 && s.LetGo == ""
}

func waiting(held *probe.Held, stood time.Duration) Waiting {
	r := &held.Record
	return Waiting{
		Goroutine: held.Goroutine, Function: held.Function, Line: held.Line,
		Point: r.Point.String(), Station: r.Point.Info().Station, Resource: r.Resource, Subject: r.Subject,
		Type: r.Type, Key: probe.ObjectKey(r.Key), RV: r.RV, Seq: r.Seq, Says: r.Sentence(),
		Since: held.Since, Seconds: stood.Seconds(),
	}
}
