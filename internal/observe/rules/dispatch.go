package rules

import (
	"fmt"
	"maps"
	"strings"

	"listwatch/internal/observe/probe"
)

// oneWriter is rule 1. The cacher reports the moments of ring and store under one lock, so the log has them in the
// order of the facts. The same goroutine then passes the event to the dispatcher, and reports that in order, too.
type oneWriter struct {
	inRing *probe.Record // the event that is in the ring and not yet in the store
	newest uint64        // the version of the newest event or list, 0 if the log has none
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

// interrupted clears inRing, and returns a sentence if the lock's holder reports r while an event is only in the ring.
func (o *oneWriter) interrupted(r *probe.Record) string {
	if o.inRing == nil {
		return ""
	}
	half := o.inRing
	o.inRing = nil
	return fmt.Sprintf("%s while %s is in the ring and not in the store", r.Point, object(half))
}

// noGap is rule 2. The cacher must hand a watcher without selectors every event below its key, from its registration
// on. A watcher that misses an event may be about to end; a later event proves otherwise.
type noGap struct {
	watchers map[string]*recipient
	current  *probe.Record // the dispatch in progress
	// missed has quiet watchers, too, because the log lacks their InputSent. A look at a watcher removes its entry.
	missed map[string]*probe.Record // by watcher, an event that did not reach the watcher
}

type recipient struct {
	key    string
	served uint64 // seq of the last dispatch that reached the recipient, or of its registration
}

func (n *noGap) check(r *probe.Record) string {
	switch r.Point {
	case probe.WatcherAdded:
		if said := r.Texts.Get; said(probe.FieldPrefix) == r.Key &&
			said(probe.FieldLabels)+said(probe.FieldFields) == "" {
			// A dispatch in progress has chosen its recipients already, so this watcher gets the event in its interval.
			n.watchers[r.Subject] = &recipient{r.Key, r.Seq}
		}
	case probe.WatcherRemoved, probe.WatcherLookedAt:
		delete(n.watchers, r.Subject)
		delete(n.missed, r.Subject)
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
	if r.Type == bookmark || n.current == nil {
		return ""
	}
	if w := n.watchers[r.Subject]; w != nil {
		w.served = n.current.Seq
	}
	if missed := n.missed[r.Subject]; missed != nil {
		delete(n.missed, r.Subject)
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
	for id, w := range n.watchers {
		if below(started.Key, w.key) && w.served < started.Seq {
			n.missed[id] = started
			delete(n.watchers, id)
		}
	}
}

// below reports whether a key is that of a directory, or is in the directory.
func below(key, of string) bool {
	return key == of || strings.HasPrefix(key, strings.TrimSuffix(of, "/")+"/")
}

// closedInputs is rule 4. Go itself panics if a goroutine sends on a closed channel. This rule checks that a dispatch
// that begins after a watcher has stopped does not send to it.
type closedInputs struct {
	gone        map[string]uint64 // by watcher, the record at which it stopped
	began       uint64            // the record at which the newest dispatch began
	dispatching bool              // whether the newest dispatch is in progress
}

func (c *closedInputs) check(r *probe.Record) string {
	switch r.Point {
	case probe.WatcherAdded:
		delete(c.gone, r.Subject) // a restarted server numbers its watchers from one again
	case probe.WatcherRemoved:
		c.gone[r.Subject] = r.Seq
	case probe.DispatchStarted:
		// A watcher that stopped before the previous dispatch began was not in it, and cannot be in this one.
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
