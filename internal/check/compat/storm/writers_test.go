package storm

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
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
	faults
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
	l.add(format, args...)
}

// writer owns some objects: it alone writes to them, so that it knows what they must be.
type writer struct {
	id     int
	api    typed.ConfigMapInterface
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
	uid     types.UID
	unsure  bool // the last write was not acknowledged: look first
	pending bool // an update of this version may still happen
	doomed  bool // a deletion of this version may still happen
	tainted bool // a creation may still happen: the object is never deleted, for it would come back
}

// run writes until ctx is done.
func (w *writer) run(ctx context.Context) {
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
	w.written(s)(w.api.Create(context.Background(), counted(s.name, 1, 0), metav1.CreateOptions{}))
	s.tainted = s.tainted || s.unsure
}

func (w *writer) update(s *slot) {
	s.pending = true
	w.written(s)(w.api.Update(context.Background(), counted(s.name, s.n+1, s.rv), metav1.UpdateOptions{}))
}

// written returns what reads the answer to a write that raises the counter.
func (w *writer) written(s *slot) func(now *corev1.ConfigMap, err error) {
	return func(now *corev1.ConfigMap, err error) {
		if err != nil {
			w.ledger.unsure()
			s.unsure = true
			return
		}
		o := objectOf(now)
		if o.n != s.n+1 || o.rv <= s.rv {
			w.ledger.fault("wrote %d to %+v, and was answered %+v", s.n+1, *s, o)
		}
		w.ledger.wrote(o)
		s.is(o, now.UID)
	}
}

// is takes over a version that is there. Writes that ask for an earlier one can no longer happen.
func (s *slot) is(o object, uid types.UID) {
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
	rv := version(s.rv)
	exactly := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &s.uid, ResourceVersion: &rv}}
	if err := w.api.Delete(context.Background(), s.name, exactly); err != nil {
		w.ledger.unsure()
		s.unsure = true
		return
	}
	w.ledger.wrote(object{})
	*s = slot{}
}

// look reads what is there. Only a write of which no answer came may make it differ from what the writer knows.
func (w *writer) look(s *slot) {
	now, err := w.api.Get(context.Background(), s.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		if s.n > 0 && !s.doomed {
			w.ledger.fault("%+v is gone, and was not deleted", *s)
		}
		if s.n > 0 {
			*s = slot{}
		}
		s.unsure = false
	case err == nil:
		o := objectOf(now)
		raised := o.n == s.n+1 && o.rv > s.rv
		if (o.n != s.n || o.rv != s.rv) && !(raised && (s.pending || s.tainted && s.n == 0)) {
			w.ledger.fault("read %+v, and wrote %+v", o, *s)
		}
		if raised {
			w.ledger.wrote(o)
		}
		s.is(o, now.UID)
	}
}
