package rules

import (
	"fmt"

	"listwatch/internal/observe/probe"
)

// each holds a rule's state for each watcher, and drops it when the watcher is removed. The zero value is empty.
type each[S any] struct {
	loud bool // whether to follow only watchers whose beginning is in the log and that were never quiet
	of   map[string]*S
}

// at makes or drops the state of a record's watcher, as the record requires, and returns it, or nil if there is none.
func (e *each[S]) at(r *probe.Record) *S {
	if e.of == nil {
		e.of = map[string]*S{}
	}
	switch {
	case r.Point == probe.WatcherAdded, r.Point == probe.ResultSent && !e.loud && e.of[r.Subject] == nil:
		e.of[r.Subject] = new(S)
	case r.Point == probe.WatcherRemoved, r.Point == probe.WatcherLookedAt && e.loud:
		delete(e.of, r.Subject)
	}
	return e.of[r.Subject]
}

// honestBookmarks is rule 3: a bookmark is not older than what the watcher sent before, and later events are newer.
type honestBookmarks struct {
	each[struct{ promised, sent uint64 }] // the versions of the watcher's newest bookmark and event
}

func (h *honestBookmarks) check(r *probe.Record) string {
	w := h.at(r)
	switch {
	case r.Point != probe.ResultSent:
	case r.Type == bookmark:
		last := max(w.promised, w.sent)
		w.promised = r.RV
		if r.RV < last {
			return fmt.Sprintf("%s is sent a bookmark of %d after %d", r.Subject, r.RV, last)
		}
	default:
		w.sent = max(w.sent, r.RV)
		if r.RV <= w.promised {
			return fmt.Sprintf("%s is sent %s after a bookmark of %d", r.Subject, object(r), w.promised)
		}
	}
	return ""
}

// eventTypes is rule 5, as far as one stream shows it: the watcher did not have an added object before, and had a
// changed or deleted one. The rule accepts any type for the first event of an object in the stream.
type eventTypes struct {
	each[map[string]bool] // by key, whether the watcher has the object
}

func (e *eventTypes) check(r *probe.Record) string {
	told := e.at(r)
	if told == nil || r.Point != probe.ResultSent || r.Type == bookmark {
		return ""
	}
	if *told == nil || len(*told) == maxRemembered {
		*told = map[string]bool{}
	}
	was, known := (*told)[r.Key]
	(*told)[r.Key] = r.Type != deleted
	if known && was == (r.Type == "ADDED") {
		return fmt.Sprintf("%s is sent %s, and the object was there for it before: %v", r.Subject, object(r), was)
	}
	return ""
}

// maxUnread is the maximum number of a watcher's events that rule 6 remembers until the server reports their receipt.
// Above this number the rule stops following the watcher, whose server probably reports nothing.
const maxUnread = 1 << 12

// deletedVersions is rule 6. The watcher reports an event's version. Its server reports the version of the object in
// the event. The rule compares the two for each deletion.
type deletedVersions struct{ each[wire] }

// wire pairs the events that a watcher sends with those that its server receives. At least one of the lists is empty.
type wire struct {
	sent, received []probe.Record
}

func (d *deletedVersions) check(r *probe.Record) string {
	w := d.at(r)
	if w == nil {
		return ""
	}
	switch r.Point {
	case probe.ResultSent:
		w.sent = append(w.sent, *r)
	case probe.ResultReceived:
		w.received = append(w.received, *r)
	}
	if len(w.sent) > maxUnread {
		delete(d.of, r.Subject)
	}
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

// inOrder is rule 9, as far as one stream shows it: it cannot notice a missing event.
type inOrder struct{ each[probe.Record] } // the watcher's newest event

func (o *inOrder) check(r *probe.Record) string {
	w := o.at(r)
	if r.Point != probe.ResultSent || r.Type == bookmark {
		return ""
	}
	before := *w
	*w = *r
	// The objects of the initial state share one version, as do the events of a transaction; each object occurs once.
	if before.Seq > 0 && (r.RV < before.RV || r.RV == before.RV && r.Key == before.Key) {
		return fmt.Sprintf("%s is sent %s after %s", r.Subject, object(r), object(&before))
	}
	return ""
}
