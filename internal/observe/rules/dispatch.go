package rules

import (
	"fmt"
	"maps"
	"strings"

	"listwatch/internal/observe/probe"
)

// oneWriter is rule 1. The moments of ring and store are reported under one lock, so their order in the log is that of
// the facts; and the writer hands the event on itself, so that, too, is in its place.
type oneWriter struct {
	inRing *probe.Record // appended, and not in the store yet
	newest uint64        // version of the newest event or list, 0 if none was seen
}

func (o *oneWriter) check(r *probe.Record) string {
	switch r.Point {
	case probe.RingAppend:
		return o.append(r)
	case probe.StoreUpdate:
		appended := o.inRing
		o.inRing = nil
		if o.newest > 0 && (appended == nil || appended.Key != r.Key || appended.RV != r.RV) {
			return fmt.Sprintf("the store takes %s, and the ring did not just before", object(r))
		}
	case probe.CacheReplaced:
		o.newest = r.RV
		return o.interrupted(r)
	case probe.RVAdvanced, probe.RingResize, probe.WatcherAdded:
		return o.interrupted(r)
	case probe.IncomingSent:
		if r.Type != bookmark && (o.inRing != nil || r.RV > o.newest && o.newest > 0) {
			return fmt.Sprintf("%s is on its way to the dispatcher, and not in ring and store yet", object(r))
		}
	}
	return ""
}

func (o *oneWriter) append(r *probe.Record) string {
	text := o.interrupted(r)
	if r.RV < o.newest { // several events of one transaction share a version
		text = fmt.Sprintf("the ring takes %s after %d", object(r), o.newest)
	}
	o.inRing, o.newest = new(*r), max(o.newest, r.RV)
	return text
}

// interrupted says so if something happens under the lock between the two halves of one change.
func (o *oneWriter) interrupted(r *probe.Record) string {
	if o.inRing == nil {
		return ""
	}
	half := o.inRing
	o.inRing = nil
	return fmt.Sprintf("%s while %s is in the ring and not in the store", r.Point, object(half))
}

// noGap is rule 2. A watcher without selectors must be handed every event below its key, from its registration on. One
// that misses an event may have been on its way out; one that is handed another event afterwards was not.
type noGap struct {
	watchers map[string]*recipient
	current  *probe.Record // the dispatch that is under way
}

type recipient struct {
	key    string
	served uint64        // seq of the dispatch that reached it last, or of its registration
	missed *probe.Record // an event that did not reach it
}

func (n *noGap) check(r *probe.Record) string {
	switch r.Point {
	case probe.WatcherAdded:
		if said := r.Texts.Get; said(probe.FieldPrefix) == r.Key &&
			said(probe.FieldLabels)+said(probe.FieldFields) == "" {
			// A dispatch that is under way has picked its recipients: what it carries is in this watcher's interval.
			n.watchers[r.Subject] = &recipient{key: r.Key, served: r.Seq}
		}
	case probe.WatcherRemoved, probe.WatcherSummed:
		delete(n.watchers, r.Subject)
	case probe.DispatchStarted:
		n.current = new(*r)
	case probe.InputSent:
		return n.handed(r)
	case probe.DispatchFinished:
		n.finish()
	}
	return ""
}

func (n *noGap) handed(r *probe.Record) string {
	w := n.watchers[r.Subject]
	if w == nil || r.Type == bookmark || n.current == nil {
		return ""
	}
	w.served = n.current.Seq
	if missed := w.missed; missed != nil {
		w.missed = nil
		return fmt.Sprintf("%s is handed %s, and was never handed %s", r.Subject, object(r), object(missed))
	}
	return ""
}

func (n *noGap) finish() {
	started := n.current
	n.current = nil
	if started == nil || started.Type == bookmark {
		return
	}
	for _, w := range n.watchers {
		if below(started.Key, w.key) && w.served < started.Seq && w.missed == nil {
			w.missed = started
		}
	}
}

// below reports whether a key is another or lies in its directory.
func below(key, of string) bool {
	return key == of || strings.HasPrefix(key, strings.TrimSuffix(of, "/")+"/")
}

// closedInputs is rule 4. That no goroutine sends into a closed channel Go checks itself, with a panic; what is checked
// here is that a dispatch which begins after a watcher has gone does not know it any more.
type closedInputs struct {
	gone        map[string]uint64 // by watcher, the record with which it went
	began       uint64            // the record with which the newest dispatch began
	dispatching bool              // it is under way
}

func (c *closedInputs) check(r *probe.Record) string {
	switch r.Point {
	case probe.WatcherAdded:
		delete(c.gone, r.Subject) // those of a server that was started again are counted from one, as those before were
	case probe.WatcherRemoved:
		c.gone[r.Subject] = r.Seq
	case probe.DispatchStarted:
		// a watcher that was gone before the last dispatch was not in it, and cannot be in this one
		maps.DeleteFunc(c.gone, func(_ string, went uint64) bool { return went < c.began })
		c.began, c.dispatching = r.Seq, true
	case probe.DispatchFinished:
		c.dispatching = false
	case probe.InputSent:
		if went, gone := c.gone[r.Subject]; gone && c.dispatching && went < c.began {
			return fmt.Sprintf("%s had gone before %s began to be dispatched", r.Subject, object(r))
		}
	}
	return ""
}
