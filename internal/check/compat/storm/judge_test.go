package storm

import (
	"fmt"
	"slices"
	"sync"
)

// faults counts the faults found and keeps the texts of the first maxTold.
type faults struct {
	mu   sync.Mutex // guards the fields below; innermost
	n    int
	told []string
}

const maxTold = 20

func (f *faults) add(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.n++; f.n <= maxTold {
		f.told = append(f.told, fmt.Sprintf(format, args...))
	}
}

// object is one version of an object as a client sees it. The zero value means that there is no object.
type object struct {
	name string
	n    int    // the counter: 1 at the creation, one more with every update
	rv   uint64 // the version; in a DELETED event, the deletion's version
}

// view is the state that one raw watch has received. It checks every event against all earlier events: an update raises
// the counter by one, a deletion keeps it, and only a list may skip counters. The judge trusts only the client's
// events. It does not trust the log, which leaves out quiet watchers.
type view struct {
	// Set by newView, never changed.
	who    string
	faults *faults

	mu      sync.Mutex        // guards the fields below; locked before faults.mu
	rv      uint64            // the watch has received everything up to rv
	objects map[string]object // the newest version of each object
	gone    map[string]bool   // deleted, or missing from a list: they must not come back
	spans   []span            // the ranges watched without a gap
	seen    map[uint64]bool   // the versions of the events
}

// span is a range (from, to] of versions in which a watch has received every event.
type span struct{ from, to uint64 }

func newView(who string, f *faults) *view {
	return &view{who: who, faults: f, objects: map[string]object{}, gone: map[string]bool{}, seen: map[uint64]bool{}}
}

func (v *view) fault(format string, args ...any) { v.faults.add(v.who+": "+format, args...) }

// reset puts a list into the view, and reports what contradicts the view. A list may skip events.
func (v *view) reset(rv uint64, items []object) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if rv < v.rv {
		v.fault("a list at %d after everything up to %d", rv, v.rv)
	}
	v.rv, v.spans = rv, append(v.spans, span{rv, rv})
	listed := map[string]bool{}
	for _, item := range items {
		listed[item.name] = true
		last := v.objects[item.name]
		if item.rv > rv || item.n < last.n || item.rv < last.rv || v.gone[item.name] {
			v.fault("a list at %d holds %+v after %+v, gone %v", rv, item, last, v.gone[item.name])
		}
		v.objects[item.name] = item
	}
	for name := range v.objects {
		v.gone[name] = v.gone[name] || !listed[name]
	}
}

// bookmark records that the watch has received everything up to rv, and reports a fault if the view is newer than rv.
func (v *view) bookmark(rv uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if rv < v.rv {
		v.fault("a bookmark at %d after %d", rv, v.rv)
	}
	v.reachLocked(rv)
}

func (v *view) reachLocked(rv uint64) {
	v.rv = max(v.rv, rv)
	if len(v.spans) > 0 {
		v.spans[len(v.spans)-1].to = v.rv
	}
}

// event adds an event to the view, and reports a fault if this event cannot come next.
func (v *view) event(kind string, o object) {
	v.mu.Lock()
	defer v.mu.Unlock()
	last, gone := v.objects[o.name], v.gone[o.name]
	follows := false
	switch kind {
	case "ADDED":
		follows = last.n == 0 && o.n == 1
	case "MODIFIED":
		follows = last.n > 0 && o.n == last.n+1
	case "DELETED":
		follows = last.n > 0 && o.n == last.n
	}
	if o.rv <= v.rv || gone || !follows {
		v.fault("%s %+v after %+v, gone %v, and everything up to %d", kind, o, last, gone, v.rv)
	}
	v.seen[o.rv] = true
	v.reachLocked(o.rv)
	v.objects[o.name], v.gone[o.name] = o, kind == "DELETED"
}

// newest returns the version up to which the watch has received everything.
func (v *view) newest() uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.rv
}

// missed searches the view for the acknowledged writes within its spans. It reports as a fault each write that the
// watch did not receive, and returns the number of writes within the spans.
func (v *view) missed(written []object) (checked int) {
	for _, o := range written {
		if !slices.ContainsFunc(v.spans, func(s span) bool { return s.from < o.rv && o.rv <= s.to }) {
			continue
		}
		if checked++; !v.seen[o.rv] {
			v.fault("was never told of %+v", o)
		}
	}
	return checked
}

// holds returns the counters of the existing objects, according to the view.
func (v *view) holds() map[string]int {
	v.mu.Lock()
	defer v.mu.Unlock()
	counters := map[string]int{}
	for name, o := range v.objects {
		if !v.gone[name] {
			counters[name] = o.n
		}
	}
	return counters
}

// ledger is the writers' common knowledge about the objects.
type ledger struct {
	faults   *faults
	mu       sync.Mutex // guards the fields below; locked before faults.mu
	accounts [nObjects]*account
	nNames   int
	written  []object // the acknowledged creations and updates
	nRefused int      // attempts that failed: a conflict, a deleted object, or no response
}

// account is the writers' knowledge of one object whose creation was acknowledged.
type account struct {
	newest object // the highest version acknowledged or read
	raised map[int]bool
	doomed bool // a writer has sent a deletion
}

// at returns a slot's account and its object's newest version, or nil and no object if the slot is free.
func (l *ledger) at(slot int) (*account, object) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.accounts[slot]; a != nil {
		return a, a.newest
	}
	return nil, object{}
}

// freshName returns a name that no object has had.
func (l *ledger) freshName() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.nNames++
	return fmt.Sprint("o", l.nNames)
}

// put fills a slot, or empties the slot if a is nil.
func (l *ledger) put(slot int, a *account) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.accounts[slot] = a
}

func (l *ledger) doom(a *account) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a.doomed = true
}

// read checks a read of o against floor, the newest version known when the read began. Counters only rise, so a
// linearizable read must not return a lower one. gone means that o is missing after a writer has sent a deletion.
func (l *ledger) read(a *account, floor, o object) (gone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o.n == 0 && a.doomed {
		return true
	}
	if o.n < floor.n || o.rv < floor.rv || o.n == floor.n && o.rv != floor.rv {
		l.faults.add("%+v was read after %+v", o, floor)
	}
	a.reach(o)
	return false
}

// wrote checks an acknowledged write of o that was based on from. The counter must rise by one, the version must rise,
// and the server must not have acknowledged this counter before.
func (l *ledger) wrote(a *account, from, o object) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o.n != from.n+1 || o.rv <= from.rv || a.raised[o.n] {
		l.faults.add("%+v was raised to %+v; acknowledged before: %v", from, o, a.raised[o.n])
	}
	a.raised[o.n] = true
	a.reach(o)
	l.written = append(l.written, o)
}

// reach sets newest to o if o's counter is higher. The caller must hold the ledger's lock.
func (a *account) reach(o object) {
	if o.n > a.newest.n {
		a.newest = o
	}
}

func (l *ledger) refused() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.nRefused++
}
