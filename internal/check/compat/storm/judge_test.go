package storm

import (
	"fmt"
	"slices"
	"sync"
)

// faults is what must not have happened. The first few are told one by one; the others are counted.
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

// object is one version of one object as a client sees it. The zero value is none.
type object struct {
	name string
	n    int    // the counter: 1 when it is created, one more with every write
	rv   uint64 // of this version; in an event DELETED that of the deletion
}

// view is what one raw watch has been told. Every event is checked against all earlier ones: the next version of an
// object has a counter that is higher by one. A jump is legal only through a list. The judge believes nothing but what
// the client was sent: not the log, in which quiet watchers do not appear.
type view struct {
	// Set by newView, never changed.
	who    string
	faults *faults

	mu      sync.Mutex        // guards the fields below; taken before that of faults
	rv      uint64            // everything up to it has been told
	objects map[string]object // the newest of each
	gone    map[string]bool   // deleted, or missing in a list: they must not come back
	spans   []span            // what was watched without a gap
	seen    map[uint64]bool   // the versions of events
}

// span is a range (from, to] of versions in which a watch has been told every event.
type span struct{ from, to uint64 }

func newView(who string, f *faults) *view {
	return &view{who: who, faults: f, objects: map[string]object{}, gone: map[string]bool{}, seen: map[uint64]bool{}}
}

func (v *view) fault(format string, args ...any) { v.faults.add(v.who+": "+format, args...) }

// reset is called when a raw watch was given a list: whatever it missed before, it has now.
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

// bookmark is called when a raw watch was told that it has been sent everything up to rv.
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

// event is called with every event. It notes a fault if it is not the one that has to come next.
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

// newest returns the version up to which everything has been told.
func (v *view) newest() uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.rv
}

// missed compares the view with the writes that the server has acknowledged, and notes each that lies in what it has
// watched without a gap and that it was not told of. It returns how many it has looked for.
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

// holds returns the counters of the objects that there are, as the view knows.
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

// ledger is what all writers together know to have happened.
type ledger struct {
	faults   *faults
	mu       sync.Mutex // guards the fields below; taken before that of faults
	accounts [nObjects]*account
	nNames   int
	written  []object // creations and updates that the server has acknowledged
	nRefused int      // a conflict, an object that has gone, or no answer
}

// account is what is known of one object whose creation was acknowledged.
type account struct {
	newest object // the highest that was acknowledged, or read
	raised map[int]bool
	doomed bool // a deletion was sent
}

// at returns the account in a slot, nil if it is free, and what is known of its object now.
func (l *ledger) at(slot int) (*account, object) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.accounts[slot]; a != nil {
		return a, a.newest
	}
	return nil, object{}
}

// freshName returns a name that no object ever had.
func (l *ledger) freshName() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.nNames++
	return fmt.Sprint("o", l.nNames)
}

// put fills a slot, or empties it.
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

// read checks what was read against what was known when the read began: for a number that only rises, linearizable
// means that a read returns at least what was acknowledged before. It reports whether the object is gone for good.
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

// wrote checks an acknowledged write on top of from: versions rise with the number, and no number is acknowledged
// twice.
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

// reach is called under the ledger's lock.
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
