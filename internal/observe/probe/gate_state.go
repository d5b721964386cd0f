package probe

import (
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// callersOfAt is how many frames a waiter's stack has above who reported: runtime.Callers, enter, wait, report, At.
const callersOfAt = 5

// GateState is what a gate says of itself.
type GateState struct {
	World  bool // held as a whole
	Gates  []Selector
	Opened []Selector
	Held   []Held // held there, the longest first
}

// Held is one goroutine that is paused at the gate.
type Held struct {
	Record    Record
	Since     time.Time // on the wall
	Goroutine string    // its routine name where the point has one, else "request", or the function it runs
	Function  string    // where it stands: "cacher.(*Cacher).processEvent"
	Line      string    // "incoming.go:22"
}

// State returns the gate's state.
func (g *Gate) State() GateState {
	g.mu.Lock()
	defer g.mu.Unlock()
	state := GateState{World: g.world && !g.ended, Gates: slices.Clone(g.gates), Opened: slices.Clone(g.opened),
		Held: []Held{}}
	for _, w := range g.waiting {
		state.Held = append(state.Held, w.describe())
	}
	return state
}

// describe says who waits, from its stack: the first function is where the moment was reported, the last one before
// what starts goroutines is what the goroutine is for.
func (w *waiter) describe() Held {
	held := Held{Record: w.record, Since: w.since}
	if lanes := w.record.Point.Info().Lanes(); len(lanes) == 1 {
		held.Goroutine = lanes[0]
	}
	body := ""
	frames := runtime.CallersFrames(w.callers)
	for more := len(w.callers) > 0; more; {
		var frame runtime.Frame
		frame, more = frames.Next()
		if held.Function == "" {
			held.Function = funcName(frame.Function)
			held.Line = filepath.Base(frame.File) + ":" + strconv.Itoa(frame.Line)
		}
		if strings.HasPrefix(frame.Function, "net/http.") {
			body = "request"
			break
		}
		if strings.HasPrefix(frame.Function, "runtime") || strings.Contains(frame.Function, "/routine.") {
			break
		}
		body = funcName(frame.Function)
	}
	if held.Goroutine == "" {
		held.Goroutine = body
	}
	return held
}

// funcName shortens "listwatch/chapters/06-cacher.(*Cacher).dispatchEvent" to "cacher.(*Cacher).dispatchEvent": folders
// are numbered, packages are not.
func funcName(name string) string {
	return strings.TrimLeft(path.Base(strings.TrimSuffix(name, "-fm")), "0123456789-")
}
