package lens

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"listwatch/internal/kube/redact"
	"listwatch/internal/observe/probe"
)

// Show lets the lens tell in a log what it sees, as a server of ours would: requests, and each watch as a watcher with
// its wire. Watches that are open appear there within a second. The lens passes the log's gate: what another program
// does cannot be held.
func (l *Lens) Show(log *probe.Log) {
	l.findings.mu.Lock()
	defer l.findings.mu.Unlock()
	l.findings.log = log
}

// requestLine is what is told of a request: method, path and query, without secrets, and at most 200 bytes.
func requestLine(r *http.Request) string {
	line := r.Method + " " + r.URL.EscapedPath()
	if r.URL.RawQuery != "" {
		line += "?" + redact.Query(r.URL.RawQuery)
	}
	return bound(line)
}

// tellLocked tells a moment of a request.
func (f *findings) tellLocked(r *request, point probe.Point, told probe.Record) {
	if f.log == nil {
		return
	}
	told.Point = point
	if point.Info().Station != probe.HTTP {
		told.Resource, told.Subject = r.named, "c"+strconv.FormatUint(r.id, 10)
	}
	f.log.Tell(told)
}

// showLocked tells of a watch that it is open, if the log does not know yet.
func (f *findings) showLocked(r *request) {
	if !r.streams || r.shownIn == f.log {
		return
	}
	r.shownIn = f.log
	f.tellLocked(r, probe.WatcherAdded, probe.Record{Text: r.what(), RV: number(r.Version)})
	f.tellLocked(r, probe.WireOpened, probe.Record{Text: r.Client + " " + strings.TrimPrefix(r.line,
		r.Method+" ")})
}

// closeLocked tells of the end.
func (f *findings) closeLocked(r *request, e end) {
	if r.shownIn != nil && r.shownIn == f.log {
		f.tellLocked(r, probe.WireClosed, probe.Record{Text: e.Cause})
		f.tellLocked(r, probe.WatcherRemoved, probe.Record{})
	}
	r.streams = false
	text := r.line
	if r.reads() && e.RV != "" {
		text = fmt.Sprintf("%s (%d bytes at version %s)", text, e.Bytes, e.RV)
	}
	f.tellLocked(r, probe.RequestAnswered, probe.Record{Text: text, Args: [4]int{r.status}})
}

// number is a version as the log keeps it; 0 if it is not a number.
func number(version string) uint64 {
	rv, _ := strconv.ParseUint(version, 10, 64)
	return rv
}
