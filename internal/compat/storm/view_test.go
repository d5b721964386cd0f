package storm

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// maxFaults bounds how many faults of one view are told one by one; the others are counted.
const maxFaults = 5

// object is one version of one object as a watcher sees it.
type object struct {
	name string
	n    int    // the counter: 1 when it is created, one more with every write
	rv   uint64 // of this version; in an event DELETED that of the deletion
}

// told is the newest that a view knows of a name. It is kept after the object has gone, which tells what must not come back.
type told struct {
	n     int
	rv    uint64
	place place
}

// place is where an object is, as a view knows.
type place int

const (
	unknown place = iota
	here
	left // an event DELETED has said so: it was deleted, or is selected no more
	lost // a list did not hold it
)

// selection decides by its counter whether a watcher selects a version of an object; nil selects all.
type selection func(n int) bool

// inTurns selects three versions, then not the next three, and so on: the objects come and go without being deleted.
func inTurns(n int) bool { return n/3%2 == 0 }

// view is what one watcher has been told. Every event is checked against all earlier ones: the next version of an object
// has a counter that is higher by one. A jump is legal only through a list that lies between the two versions.
type view struct {
	// Set by newView, never changed.
	who     string
	selects selection
	ordered bool // a raw watch: its versions rise over all objects; the handler of an informer sees the order of each object

	mu      sync.Mutex // guards the fields below; innermost
	rv      uint64     // everything up to it has been told
	objects map[string]told
	lists   []uint64 // versions of the lists it was given, rising
	spans   []span   // what was watched without a gap; raw watches only
	seen    []uint64 // the versions of events, in the order in which they came; raw watches only

	nEvents, nFaults int
	faults           []string
}

// span is a range (from, to] of versions in which a watch has been told every event.
type span struct{ from, to uint64 }

func newView(who string, selects selection, ordered bool) *view {
	return &view{who: who, selects: selects, ordered: ordered, objects: map[string]told{}}
}

// faultLocked notes a fault. It expects mu.
func (v *view) faultLocked(format string, args ...any) {
	v.nFaults++
	if len(v.faults) < maxFaults {
		v.faults = append(v.faults, v.who+": "+fmt.Sprintf(format, args...))
	}
}

// selected reports whether the version with counter n is one for this view.
func (v *view) selected(n int) bool { return v.selects == nil || v.selects(n) }

// deleted reports whether an object must never be seen again.
func (v *view) deleted(last told) bool {
	return last.place == left && v.selected(last.n+1) || last.place == lost && v.selects == nil
}

// reset is called when a raw watch was given a list: whatever it missed before, it has now.
func (v *view) reset(rv uint64, items []object) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if rv < v.rv {
		v.faultLocked("a list at %d after everything up to %d", rv, v.rv)
	}
	v.lists = append(v.lists, rv)
	v.spans = append(v.spans, span{rv, rv})
	v.rv = rv
	listed := map[string]bool{}
	for _, item := range items {
		listed[item.name] = true
		last := v.objects[item.name]
		if item.rv > rv || item.n < last.n || item.rv < last.rv || v.deleted(last) || !v.selected(item.n) {
			v.faultLocked("a list at %d holds %+v after %+v", rv, item, last)
		}
		v.objects[item.name] = told{item.n, item.rv, here}
	}
	for name, last := range v.objects {
		if (last.place == here || last.place == left && !v.deleted(last)) && !listed[name] {
			v.objects[name] = told{last.n, last.rv, lost}
		}
	}
}

// listed is called when an informer's reflector was given a list, before the handler hears of it.
func (v *view) listed(rv uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.lists = append(v.lists, rv)
}

// bookmark is called when a raw watch was told that it has been sent everything up to rv.
func (v *view) bookmark(rv uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if rv < v.rv {
		v.faultLocked("a bookmark at %d after %d", rv, v.rv)
		return
	}
	v.reachLocked(rv)
}

// reachLocked expects mu.
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
	v.nEvents++
	if v.ordered {
		if o.rv <= v.rv {
			v.faultLocked("%s %+v after everything up to %d", kind, o, v.rv)
		}
		v.seen = append(v.seen, o.rv)
		v.reachLocked(o.rv)
	}
	last := v.objects[o.name]
	if !v.follows(kind, last, o) && !v.jumpsLocked(last, o) {
		v.faultLocked("%s %+v after %+v", kind, o, last)
	}
	v.objects[o.name] = told{o.n, o.rv, here}
	if kind == "DELETED" {
		v.objects[o.name] = told{o.n, o.rv, left}
	}
}

// follows reports whether an event is the next one of its object.
func (v *view) follows(kind string, last told, o object) bool {
	if o.rv <= last.rv {
		return false
	}
	switch kind {
	case "ADDED":
		return v.enters(last, o.n)
	case "MODIFIED":
		return last.place == here && o.n == last.n+1 && v.selected(o.n)
	case "DELETED":
		return last.place == here && o.n == last.n
	}
	return false
}

// enters reports whether the version with counter n is one with which an object may come into view.
func (v *view) enters(last told, n int) bool {
	enters := v.selected(n) && (n == 1 || !v.selected(n-1))
	switch last.place {
	case unknown, lost:
		return enters && n > last.n && !v.deleted(last)
	case left:
		next := last.n + 1 // what follows is not selected: the object has left by it
		for !v.selected(next) {
			next++
		}
		return enters && n == next && !v.deleted(last)
	}
	return false
}

// jumpsLocked reports whether the handler of an informer may be told o after last, because a list lies between them. It
// expects mu.
func (v *view) jumpsLocked(last told, o object) bool {
	if v.ordered || o.n < last.n || v.deleted(last) {
		return false
	}
	return slices.ContainsFunc(v.lists, func(list uint64) bool { return last.rv <= list && o.rv <= list })
}

// gone is called when the handler of an informer was told that an object has gone, which only a list has shown.
func (v *view) gone(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.nEvents++
	last := v.objects[name]
	if last.place != here || !v.jumpsLocked(last, object{name, last.n, last.rv}) {
		v.faultLocked("%s is gone after %+v", name, last)
	}
	v.objects[name] = told{last.n, last.rv, lost}
}

// newest returns the version up to which everything has been told.
func (v *view) newest() uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.rv
}

// holds returns what the view believes to be there: counters by name.
func (v *view) holds() map[string]int {
	v.mu.Lock()
	defer v.mu.Unlock()
	counters := map[string]int{}
	for name, last := range v.objects {
		if last.place == here {
			counters[name] = last.n
		}
	}
	return counters
}

// missed compares the view with the writes that the server has acknowledged, and notes each that lies in what it has
// watched without a gap and that it was not told of. It returns how many it has looked for.
func (v *view) missed(written []object) (checked int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	slices.Sort(v.seen)
	for _, o := range written {
		if !v.selected(o.n) && (o.n == 1 || !v.selected(o.n-1)) || !v.watchedLocked(o.rv) {
			continue
		}
		checked++
		if _, found := slices.BinarySearch(v.seen, o.rv); !found {
			v.faultLocked("was never told of %+v", o)
		}
	}
	return checked
}

// watchedLocked expects mu.
func (v *view) watchedLocked(rv uint64) bool {
	return slices.ContainsFunc(v.spans, func(s span) bool { return s.from < rv && rv <= s.to })
}

// differs says how what the view holds differs from a list, or "".
func (v *view) differs(list map[string]int) string {
	want := map[string]int{}
	for name, n := range list {
		if v.selected(n) {
			want[name] = n
		}
	}
	if got := v.holds(); !maps.Equal(got, want) {
		return fmt.Sprintf("%s holds %d objects, the list %d: %s", v.who, len(got), len(want), difference(got, want))
	}
	return ""
}

// difference names the first few keys in which two maps differ.
func difference(got, want map[string]int) string {
	var names []string
	for name := range got {
		if n, ok := want[name]; !ok || n != got[name] {
			names = append(names, fmt.Sprintf("%s: got %d, want %d", name, got[name], n))
		}
	}
	for name, n := range want {
		if _, ok := got[name]; !ok {
			names = append(names, fmt.Sprintf("%s: missing, want %d", name, n))
		}
	}
	slices.Sort(names)
	return fmt.Sprint(names[:min(len(names), maxFaults)])
}
