package rules

import (
	"fmt"

	"listwatch/internal/observe/probe"
)

// honestBookmarks is rule 3: once a bookmark was sent, nothing follows that is as old as it or older.
type honestBookmarks struct {
	promised map[string]uint64 // by watcher: the version of its newest bookmark
	sent     map[string]uint64 // by watcher: the version of its newest event
}

func (h *honestBookmarks) check(r *probe.Record) string {
	switch r.Point {
	case probe.WatcherAdded, probe.WatcherRemoved:
		delete(h.promised, r.Subject)
		delete(h.sent, r.Subject)
	case probe.ResultSent:
		if r.Type == bookmark {
			return h.promise(r)
		}
		h.sent[r.Subject] = max(h.sent[r.Subject], r.RV)
		if promised := h.promised[r.Subject]; r.RV <= promised {
			return fmt.Sprintf("%s is sent %s after a bookmark of %d", r.Subject, object(r), promised)
		}
	}
	return ""
}

func (h *honestBookmarks) promise(r *probe.Record) string {
	last := max(h.promised[r.Subject], h.sent[r.Subject])
	h.promised[r.Subject] = r.RV
	if r.RV < last {
		return fmt.Sprintf("%s is sent a bookmark of %d after %d", r.Subject, r.RV, last)
	}
	return ""
}

// eventTypes is rule 5, as far as one stream shows it: what is added was not there, what is changed or deleted was. Of
// an object that a watch has not mentioned yet nothing is known.
type eventTypes struct {
	present map[string]*presence // by watcher
}

// presence is what one watcher was told of: which objects are there for it, and which were deleted lately.
type presence struct {
	present map[string]bool // by key
	deleted settled
}

func (e *eventTypes) check(r *probe.Record) string {
	switch r.Point {
	case probe.WatcherAdded:
		e.present[r.Subject] = &presence{present: map[string]bool{}}
	case probe.WatcherRemoved, probe.WatcherSummed:
		delete(e.present, r.Subject)
	case probe.ResultSent:
		return e.sent(r)
	}
	return ""
}

func (e *eventTypes) sent(r *probe.Record) string {
	told := e.present[r.Subject]
	if told == nil || r.Type == bookmark {
		return ""
	}
	was, known := told.present[r.Key]
	told.present[r.Key] = r.Type != deleted
	if r.Type == deleted {
		told.forget(told.deleted.add(r.Key))
	}
	if len(told.present) > maxFollowed {
		delete(e.present, r.Subject)
	}
	if known && was == (r.Type == "ADDED") {
		return fmt.Sprintf("%s is sent %s, and the object was there for it before: %v", r.Subject, object(r), was)
	}
	return ""
}

// forget drops an object that was deleted long ago, unless it is there again.
func (p *presence) forget(key string) {
	if key != "" && !p.present[key] {
		delete(p.present, key)
	}
}

// maxFollowed is how many objects one watcher is followed with.
const maxFollowed = 1 << 15

// maxUnread is how many events of a watcher are remembered until its server reports that it took them. A watcher whose
// reader reports nothing is not followed for longer.
const maxUnread = 1 << 12

// deletedVersions is rule 6. A watcher reports the version of the event, the server behind it that of the object in it.
type deletedVersions struct {
	watchers map[string]*wire
}

// wire pairs what is sent with what is received. One of the two is empty.
type wire struct {
	sent, received []probe.Record
}

func (d *deletedVersions) check(r *probe.Record) string {
	w := d.watchers[r.Subject]
	switch r.Point {
	case probe.WatcherAdded:
		d.watchers[r.Subject] = &wire{}
	case probe.WatcherRemoved, probe.WatcherSummed:
		delete(d.watchers, r.Subject)
	case probe.ResultSent:
		if w != nil {
			w.sent = append(w.sent, *r)
		}
	case probe.ResultReceived:
		if w != nil {
			w.received = append(w.received, *r)
		}
	}
	if w == nil {
		return ""
	}
	if len(w.sent) > maxUnread {
		delete(d.watchers, r.Subject)
	}
	return w.pair()
}

func (w *wire) pair() string {
	if len(w.sent) == 0 || len(w.received) == 0 {
		return ""
	}
	sent, received := w.sent[0], w.received[0]
	w.sent, w.received = w.sent[1:], w.received[1:]
	if sent.Type == deleted && (received.Type != deleted || received.RV != sent.RV) {
		return fmt.Sprintf("%s was deleted at %d, and the object says %d", probe.ObjectKey(sent.Key), sent.RV,
			received.RV)
	}
	return ""
}

// inOrder is rule 9, as far as one stream shows it; [History] shows whether something is missing.
type inOrder struct {
	watchers map[string]*probe.Record // the newest event of each
}

func (o *inOrder) check(r *probe.Record) string {
	switch r.Point {
	case probe.WatcherAdded, probe.WatcherRemoved:
		delete(o.watchers, r.Subject)
	case probe.ResultSent:
		if r.Type == bookmark {
			return ""
		}
		last := o.watchers[r.Subject]
		if last == nil {
			first := *r
			o.watchers[r.Subject] = &first
			return ""
		}
		before := *last
		*last = *r
		// The initial state is at one version, and so are the events of one transaction: of one object there is one.
		if r.RV < before.RV || r.RV == before.RV && r.Key == before.Key {
			return fmt.Sprintf("%s is sent %s after %s", r.Subject, object(r), object(&before))
		}
	}
	return ""
}
