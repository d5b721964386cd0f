package storm

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	nWriters    = 4
	slotsEach   = 6 // objects of a writer at a time
	writerPause = 8 * time.Millisecond
	longestLife = 40 // writes
)

// ledger is what the writers know to have happened.
type ledger struct {
	mu      sync.Mutex // guards the fields below; innermost
	written []object   // creations and updates that the server has acknowledged, or shown afterwards
	nWrites int        // as well as deletions
	nUnsure int        // writes of which no answer came, or a refusal
	faults  faults
}

func (l *ledger) wrote(o object) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.nWrites++
	if o.n > 0 {
		l.written = append(l.written, o)
	}
}

func (l *ledger) unsure() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.nUnsure++
}

func (l *ledger) fault(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults.add(format, args...)
}

// writer owns some objects: it alone writes to them, so that it knows what they must be.
type writer struct {
	id     int
	api    *api
	random *rand.Rand
	ledger *ledger

	slots    [slotsEach]slot
	nObjects int
}

// slot holds one object of a writer. The zero value: there is none.
type slot struct {
	name    string
	n       int    // the newest counter that is known to be written; 0: not created yet
	rv      uint64 // its version
	uid     string
	unsure  bool // the last write was not acknowledged: look first
	pending bool // an update of this version may still happen
	doomed  bool // a deletion of this version may still happen
	tainted bool // a creation may still happen: the object is never deleted, for it would come back
}

// run writes until ctx is done.
func (w *writer) run(ctx context.Context) {
	defer w.api.close()
	for pause(ctx, time.Duration(w.random.Int64N(int64(2*writerPause)))) {
		s := &w.slots[w.random.IntN(slotsEach)]
		switch {
		case s.unsure || s.n > 0 && w.random.IntN(20) == 0:
			w.look(s)
		case s.n == 0:
			w.create(s)
		case s.n > longestLife && s.tainted:
			*s = slot{}
		case w.random.IntN(longestLife) < s.n-3:
			w.remove(s)
		default:
			w.update(s)
		}
	}
}

func (w *writer) create(s *slot) {
	if s.name == "" {
		w.nObjects++
		s.name = fmt.Sprintf("w%d-%d", w.id, w.nObjects)
	}
	w.written(s, w.api.do("POST", configMapsOf(namespace), counted(s.name, 1, 0)))
	s.tainted = s.tainted || s.unsure
}

func (w *writer) update(s *slot) {
	s.pending = true
	w.written(s, w.api.do("PUT", configMapsOf(namespace)+"/"+s.name, counted(s.name, s.n+1, s.rv)))
}

// written reads the answer to a write that raises the counter.
func (w *writer) written(s *slot, r reply) {
	var now configMap
	if r.code != 200 && r.code != 201 || r.read(&now) != nil {
		w.ledger.unsure()
		s.unsure = true
		return
	}
	o := now.object()
	if o.n != s.n+1 || o.rv <= s.rv {
		w.ledger.fault("wrote %d to %+v, and was answered %+v", s.n+1, *s, o)
	}
	w.ledger.wrote(o)
	s.is(o, now.Metadata.UID)
}

// is takes over a version that is there. Writes that ask for an earlier one can no longer happen.
func (s *slot) is(o object, uid string) {
	if o.rv != s.rv {
		s.pending, s.doomed = false, false
	}
	s.n, s.rv, s.uid, s.unsure = o.n, o.rv, uid, false
}

func (w *writer) remove(s *slot) {
	if s.tainted {
		w.update(s)
		return
	}
	s.doomed = true
	r := w.api.do("DELETE", configMapsOf(namespace)+"/"+s.name, deleteOptions(metadata{UID: s.uid, ResourceVersion: version(s.rv)}))
	if r.code != 200 {
		w.ledger.unsure()
		s.unsure = true
		return
	}
	w.ledger.wrote(object{})
	*s = slot{}
}

// look reads what is there. Only a write of which no answer came may make it differ from what the writer knows.
func (w *writer) look(s *slot) {
	r := w.api.do("GET", configMapsOf(namespace)+"/"+s.name, nil)
	var now configMap
	switch {
	case r.code == 404 && r.reason() == "NotFound":
		if s.n > 0 && !s.doomed {
			w.ledger.fault("%+v is gone, and was not deleted", *s)
		}
		if s.n > 0 {
			*s = slot{}
		}
		s.unsure = false
	case r.code == 200 && r.read(&now) == nil:
		o := now.object()
		raised := o.n == s.n+1 && o.rv > s.rv
		if (o.n != s.n || o.rv != s.rv) && !(raised && (s.pending || s.tainted && s.n == 0)) {
			w.ledger.fault("read %+v, and wrote %+v", o, *s)
		}
		if raised {
			w.ledger.wrote(o)
		}
		s.is(o, now.Metadata.UID)
	}
}
