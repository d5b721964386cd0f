package lens

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"listwatch/internal/kube/redact"
	"listwatch/internal/observe/probe"
	"listwatch/internal/play/wiretap"
)

// Show lets the lens tell in a log what it sees, as a server of ours would: requests, and each watch as a watcher with
// its wire. Watches that are open appear there within a second. The lens passes the log's gate: what another program
// does cannot be held.
func (l *Lens) Show(log *probe.Log) { l.log.Store(log) }

// requestLine is what is told of a request: method, path and query, without secrets, and at most 200 bytes.
func requestLine(r *http.Request) string {
	line := r.Method + " " + r.URL.EscapedPath()
	if r.URL.RawQuery != "" {
		line += "?" + redact.Query(r.URL.RawQuery)
	}
	return bound(line)
}

// tell tells a moment of the exchange.
func (x *exchange) tell(point probe.Point, told probe.Record) {
	log := x.lens.log.Load()
	if log == nil || x.ask.Resource == "" {
		return
	}
	told.Point = point
	if point.Info().Station != probe.HTTP {
		told.Resource, told.Subject = x.row.named, "c"+strconv.FormatUint(x.id, 10)
	}
	log.Tell(told)
}

// showLocked tells of a watch that it is open, if the log does not know yet.
func (x *exchange) showLocked() {
	log := x.lens.log.Load()
	if !x.streams || x.shownIn == log {
		return
	}
	x.shownIn = log
	x.tell(probe.WatcherAdded, probe.Record{Text: x.ask.what(), RV: number(x.ask.Version)})
	x.tell(probe.WireOpened, probe.Record{Text: x.ask.Client + " " + strings.TrimPrefix(x.line, x.ask.Method+" ")})
}

// showFrame tells of a frame that could be read.
func (x *exchange) showFrame(event wiretap.Event) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.showLocked()
	if event.Type != "" {
		x.tell(probe.FrameWritten, probe.Record{Type: event.Type, Key: event.Key, RV: number(event.RV),
			Args: [4]int{event.Size}})
	}
}

// close tells of the end.
func (x *exchange) close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.shownIn != nil && x.shownIn == x.lens.log.Load() {
		x.tell(probe.WireClosed, probe.Record{Text: x.end.Cause})
		x.tell(probe.WatcherRemoved, probe.Record{})
	}
	x.streams = false // tick may still have the exchange
	text := x.line
	if x.ask.reads() && x.end.Head.RV != "" {
		text = fmt.Sprintf("%s (%d bytes at version %s)", text, x.end.Bytes, x.end.Head.RV)
	}
	x.tell(probe.RequestAnswered, probe.Record{Text: text, Args: [4]int{x.end.Status}})
}

// number is a version as the log keeps it; 0 if it is not a number.
func number(version string) uint64 {
	rv, _ := strconv.ParseUint(version, 10, 64)
	return rv
}
