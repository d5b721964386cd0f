package lens

import (
	"fmt"
	"net/http"
	"strconv"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/kube/redact"
	"listwatch/internal/observe/probe"
)

// Show makes the lens write records into a log as a server of ours does: of requests, and of each watch as a watcher
// with its wire, also those that are open already. The log's gate does not hold the lens.
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

// requestOf returns the path and query for records, without secrets, at most 200 bytes of each.
func requestOf(r *http.Request) (path, query string) {
	if r.URL.RawQuery != "" {
		query = redact.Query(r.URL.RawQuery)
	}
	return bound(r.URL.EscapedPath()), bound(query)
}

// texts returns the texts of a record about the request.
func (r *request) texts(reason string) probe.Texts {
	return probe.NewTexts(map[string]string{"method": r.Method, "path": r.path, "query": r.query,
		"agent": short(r.Client), "version": r.Version, "reason": reason})
}

// tellLocked writes a record about a request.
func (l *Lens) tellLocked(r *request, point probe.Point, told probe.Record) {
	if l.log == nil {
		return
	}
	told.Point = point
	if point.Info().Station != probe.HTTP {
		told.Resource, told.Subject = r.named, "c"+strconv.FormatUint(r.id, 10)
	}
	l.log.Append(told)
}

// showLocked writes the records of an open watch.
func (l *Lens) showLocked(r *request) {
	l.tellLocked(r, probe.WatcherAdded, probe.Record{RV: storage.ProbeVersion(r.Version),
		Texts: probe.NewTexts(map[string]string{"prefix": r.what()})})
	l.tellLocked(r, probe.WireOpened, probe.Record{Texts: probe.NewTexts(map[string]string{"agent": r.Client,
		"path": r.path, "query": r.query, "version": r.Version})})
}

// closeLocked writes the records of a request's end.
func (l *Lens) closeLocked(r *request, bytes int64) {
	if r.streams {
		l.tellLocked(r, probe.WireClosed, probe.Record{Texts: probe.NewTexts(map[string]string{"why": r.cause})})
		l.tellLocked(r, probe.WatcherRemoved, probe.Record{})
	}
	reason := ""
	if r.reads() && r.rv != "" {
		reason = fmt.Sprintf("(%d bytes at version %s)", bytes, r.rv)
	}
	l.tellLocked(r, probe.RequestAnswered, probe.Record{Texts: r.texts(reason), Args: [4]int{r.status}})
}
