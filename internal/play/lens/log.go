package lens

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/kube/redact"
	"listwatch/internal/observe/probe"
)

// Show lets the lens tell in a log what it sees, as a server of ours would: requests, and each watch as a watcher with
// its wire, those that are open at once. The lens passes the log's gate: what another program does cannot be held.
func (l *Lens) Show(log *probe.Log) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.log = log
	for r := range l.running {
		if r.streams {
			l.showLocked(r)
		}
	}
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
func (l *Lens) tellLocked(r *request, point probe.Point, told probe.Record) {
	if l.log == nil {
		return
	}
	told.Point = point
	if point.Info().Station != probe.HTTP {
		told.Resource, told.Subject = r.named, "c"+strconv.FormatUint(r.id, 10)
	}
	l.log.Tell(told)
}

// showLocked tells of a watch that it is open.
func (l *Lens) showLocked(r *request) {
	l.tellLocked(r, probe.WatcherAdded, probe.Record{Text: r.what(), RV: storage.ProbeVersion(r.Version)})
	l.tellLocked(r, probe.WireOpened, probe.Record{Text: r.Client + " " + strings.TrimPrefix(r.line,
		r.Method+" ")})
}

// closeLocked tells of the end.
func (l *Lens) closeLocked(r *request, bytes int64) {
	if r.streams {
		l.tellLocked(r, probe.WireClosed, probe.Record{Text: r.cause})
		l.tellLocked(r, probe.WatcherRemoved, probe.Record{})
	}
	text := r.line
	if r.reads() && r.rv != "" {
		text = fmt.Sprintf("%s (%d bytes at version %s)", text, bytes, r.rv)
	}
	l.tellLocked(r, probe.RequestAnswered, probe.Record{Text: text, Args: [4]int{r.status}})
}
