package probe

import (
	"runtime"
	"strings"
	"time"

	"listwatch/internal/observe/routine"
)

// callersOfAt is how many frames a waiter's stack has above who reported: runtime.Callers, enter, wait, report, At.
const callersOfAt = 5

// GateState is what a gate says of itself.
type GateState struct {
	Held    bool      `json:"held"`    // the world as a whole
	Gates   []Query   `json:"gates"`   // closed at single stations
	Opened  []Query   `json:"opened"`  // open although the world is held
	Waiting []Waiting `json:"waiting"` // held at the gate, the longest first
}

// Waiting is one goroutine that is paused at the gate.
type Waiting struct {
	// its routine name where the point has one, else "request", or the function it runs
	Goroutine string  `json:"goroutine"`
	Function  string  `json:"function"` // where it stands: "cacher.(*Cacher).processEvent"
	Line      string  `json:"line"`     // "incoming.go:22"
	Station   Station `json:"station"`
	Record            // at which it stands, with its key as "default/a"
	Says      string  `json:"says"`    // the record's sentence
	Seconds   float64 `json:"seconds"` // since then, on the wall
}

// State returns the gate's state. The caller owns it.
func (g *Gate) State() GateState {
	g.mu.Lock()
	defer g.mu.Unlock()
	state := GateState{Held: g.world && !g.ended, Gates: append([]Query{}, g.gates...),
		Opened: append([]Query{}, g.opened...), Waiting: []Waiting{}}
	for _, w := range g.waiting {
		state.Waiting = append(state.Waiting, w.describe(g.names))
	}
	return state
}

// describe says who waits, from its stack: the first function is where the moment was reported, the last one before
// what starts goroutines is what the goroutine is for.
func (w *waiter) describe(names *Names) Waiting {
	info := w.record.Point.Info()
	held := Waiting{Station: info.Station, Record: w.record, Says: names.Sentence(&w.record),
		Seconds: time.Since(w.since).Seconds()}
	held.Key = ObjectKey(held.Key)
	if lanes := info.Lanes(); len(lanes) == 1 {
		held.Goroutine = lanes[0]
	}
	body := ""
	frames := runtime.CallersFrames(w.callers)
	for more := len(w.callers) > 0; more; {
		var frame runtime.Frame
		frame, more = frames.Next()
		if held.Function == "" {
			held.Function, held.Line = routine.Place(frame)
		}
		if strings.HasPrefix(frame.Function, "net/http.") {
			body = "request"
			break
		}
		if strings.HasPrefix(frame.Function, "runtime") || strings.Contains(frame.Function, "/routine.") {
			break
		}
		body, _ = routine.Place(frame)
	}
	if held.Goroutine == "" {
		held.Goroutine = body
	}
	return held
}
