package storm

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// faults is what must not have happened. The first few are told one by one; the others are counted.
type faults struct {
	n    int
	told []string
}

const maxFaults = 5

func (f *faults) wrong() []string { return f.told }

func (f *faults) add(format string, args ...any) {
	f.n++
	if len(f.told) < maxFaults {
		f.told = append(f.told, fmt.Sprintf(format, args...))
	}
}

// object is one version of one object as a watcher sees it.
type object struct {
	name string
	n    int    // the counter: 1 when it is created, one more with every write
	rv   uint64 // of this version; in an event DELETED that of the deletion
}

// told is the newest that a view knows of a name. It is kept after the object has gone, which tells what must not come
// back.
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

func counters(known map[string]told) map[string]int {
	counters := map[string]int{}
	for name, last := range known {
		if last.place == here {
			counters[name] = last.n
		}
	}
	return counters
}

// selection decides by its counter whether a watcher selects a version of an object; nil selects all.
type selection func(n int) bool

// inTurns selects three versions, then not the next three, and so on: the objects come and go without being deleted.
func inTurns(n int) bool { return n/3%2 == 0 }

// view is what one raw watch has been told. Every event is checked against all earlier ones: the next version of an
// object has a counter that is higher by one. A jump is legal only through a list. The judge believes nothing but what
// the client was sent: not the log, in which quiet watchers do not appear.
type view struct {
	// Set by newView, never changed.
	who     string
	selects selection

	mu      sync.Mutex // guards the fields below; innermost
	rv      uint64     // everything up to it has been told
	objects map[string]told
	spans   []span   // what was watched without a gap
	seen    []uint64 // the versions of events, in the order in which they came
	nEvents int
	faults
}

// span is a range (from, to] of versions in which a watch has been told every event.
type span struct{ from, to uint64 }

func newView(who string, selects selection) *view {
	return &view{who: who, selects: selects, objects: map[string]told{}}
}

func (v *view) faultLocked(format string, args ...any) { v.add(v.who+": "+format, args...) }

// selected reports whether the version with counter n is one for this view.
func (v *view) selected(n int) bool { return v.selects == nil || v.selects(n) }

// comes reports whether the version with counter n is one with which an object comes into view.
func (v *view) comes(n int) bool { return v.selected(n) && (n == 1 || !v.selected(n-1)) }

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
	last := v.objects[o.name]
	if o.rv <= v.rv {
		v.faultLocked("%s %+v after everything up to %d", kind, o, v.rv)
	}
	if !v.follows(kind, last, o) {
		v.faultLocked("%s %+v after %+v", kind, o, last)
	}
	v.seen = append(v.seen, o.rv)
	v.reachLocked(o.rv)
	place := here
	if kind == "DELETED" {
		place = left
	}
	v.objects[o.name] = told{o.n, o.rv, place}
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

// enters reports whether the version with counter n is one with which an object may come into view after last.
func (v *view) enters(last told, n int) bool {
	switch {
	case last.place == here || v.deleted(last) || !v.comes(n):
		return false
	case last.place == left:
		next := last.n + 1 // what follows is not selected: the object has left by it
		for !v.selected(next) {
			next++
		}
		return n == next
	}
	return n > last.n
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
	v.mu.Lock()
	defer v.mu.Unlock()
	slices.Sort(v.seen)
	for _, o := range written {
		watched := slices.ContainsFunc(v.spans, func(s span) bool { return s.from < o.rv && o.rv <= s.to })
		shown := v.selected(o.n) || o.n > 1 && v.selected(o.n-1)
		if !watched || !shown {
			continue
		}
		checked++
		if _, found := slices.BinarySearch(v.seen, o.rv); !found {
			v.faultLocked("was never told of %+v", o)
		}
	}
	return checked
}

// differs says how what the view holds differs from a list, or "".
func (v *view) differs(list map[string]int) string {
	want := map[string]int{}
	for name, n := range list {
		if v.selected(n) {
			want[name] = n
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return difference(v.who, counters(v.objects), want)
}

// difference names the first few objects in which two maps differ, or is "".
func difference(who string, got, want map[string]int) string {
	if maps.Equal(got, want) {
		return ""
	}
	var names []string
	for name, n := range got {
		if want[name] != n {
			names = append(names, fmt.Sprintf("%s: got %d, want %d", name, n, want[name]))
		}
	}
	for name, n := range want {
		if _, ok := got[name]; !ok {
			names = append(names, fmt.Sprintf("%s: missing, want %d", name, n))
		}
	}
	slices.Sort(names)
	return fmt.Sprintf("%s holds %d objects, the list %d: %s", who, len(got), len(want),
		names[:min(len(names), maxFaults)])
}
