package lens

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"listwatch/internal/probe"
	"listwatch/internal/redact"
)

// Show lets what is seen be told in a log, too, as a server of ours would tell it: requests, and each watch as a watcher with its wire.
// Watches that are open appear there within a second.
func (l *Lens) Show(log *probe.Log) { l.log.Store(log) }

// requestLine is what is told of a request: method, path and query, masked and bounded.
func requestLine(r *http.Request) string {
	line := r.Method + " " + r.URL.EscapedPath()
	if r.URL.RawQuery != "" {
		line += "?" + redact.Query(r.URL.RawQuery)
	}
	return bound(line)
}

// show tells a record in the log, past the gate: what another program does cannot be held, and Run must not be.
func (l *Lens) show(x *exchange, r Record) {
	log := l.log.Load()
	if log == nil || x == nil || x.ask.Resource == "" {
		return
	}
	tell := func(point probe.Point, told probe.Record) {
		told.Point = point
		if point.Info().Station != probe.HTTP {
			told.Resource, told.Subject = l.resourceIn(log, x.ask.plural()), x.name()
		}
		log.Tell(told)
	}
	if x.isStream() && x.shownIn != log && r.What != Ended {
		x.shownIn = log
		tell(probe.WatcherAdded, probe.Record{Text: what(&x.ask), RV: number(x.ask.Version)})
		tell(probe.WireOpened, probe.Record{Text: x.ask.Client + " " + strings.TrimPrefix(x.line, x.ask.Method+" ")})
	}
	switch r.What {
	case Asked:
		tell(probe.RequestReceived, probe.Record{Text: x.line + " by " + short(x.ask.Client)})
	case Framed:
		if r.Event.Type != "" { // otherwise it could not be read
			tell(probe.FrameWritten, probe.Record{Type: bound(r.Event.Type), Key: bound(r.Event.Key), RV: number(r.Event.RV), Args: [4]int{r.Event.Size}})
		}
	case Ended:
		if x.shownIn == log {
			tell(probe.WireClosed, probe.Record{Text: r.Cause})
			tell(probe.WatcherRemoved, probe.Record{})
		}
		text := x.line
		if r.List.RV != "" {
			text = fmt.Sprintf("%s (%d bytes at version %s)", text, r.Bytes, bound(r.List.RV))
		}
		tell(probe.RequestAnswered, probe.Record{Text: text, Args: [4]int{r.Status}})
	}
}

// maxNamed is how many resources one log names: a recording may hold twice as many (fold.MaxResources).
const maxNamed = 256

// resourceIn returns the name of a resource in a log, "" if the log names enough of them. Only Run calls it.
func (l *Lens) resourceIn(log *probe.Log, name string) string {
	if l.namedIn != log {
		l.namedIn, l.named = log, map[string]bool{}
	}
	if len(l.named) < maxNamed {
		l.named[name] = true
	}
	if !l.named[name] {
		return ""
	}
	return name
}

// isStream reports whether it is a watch that is answered.
func (x *exchange) isStream() bool {
	status := x.status.Load()
	return x.ask.Watch && x.ask.reads() && (status == http.StatusOK || status == http.StatusSwitchingProtocols)
}

// name is what an exchange is called in the log.
func (x *exchange) name() string { return "c" + strconv.FormatUint(x.id, 10) }

// plural is the resource without its group, as our own client half calls it.
func (a *Ask) plural() string {
	name, _, _ := strings.Cut(a.Resource, ".")
	return name
}

// number is a version as the log keeps it; 0 if it is not a number.
func number(version string) uint64 {
	rv, _ := strconv.ParseUint(version, 10, 64)
	return rv
}
