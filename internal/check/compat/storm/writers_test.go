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
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
)

const (
	nWriters    = 8
	nObjects    = 24 // at a time
	writerPause = 8 * time.Millisecond
	longestLife = 40 // writes
)

// ledger is what all writers together know to have happened.
type ledger struct {
	mu                          sync.Mutex // guards the fields below; innermost
	accounts                    [nObjects]*account
	nNames                      int
	written                     []object // creations and updates that the server has acknowledged
	nWrites                     int      // as well as deletions
	nReads, nConflicts, nUnsure int      // unsure: no answer came, or a refusal
	faults
}

// account is what is known of one object.
type account struct {
	name   string
	newest object // the highest that was acknowledged, or read
	raised map[int]bool
	birth  birth
	doomed bool // a deletion was sent
}

// birth is how far the creation of an object is. Its creator is one writer. An object whose creation may still happen
// is never deleted: it would come back.
type birth int

const (
	unborn birth = iota
	underWay
	sure
	unsure
)

// at returns the account in a slot. It reports whether the caller is the writer that creates the object.
func (l *ledger) at(slot int) (a *account, known account, creates bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.accounts[slot] == nil {
		l.nNames++
		l.accounts[slot] = &account{name: fmt.Sprint("o", l.nNames), raised: map[int]bool{}, birth: underWay}
		return l.accounts[slot], *l.accounts[slot], true
	}
	return l.accounts[slot], *l.accounts[slot], false
}

// retire makes room for another object. The name is not used again.
func (l *ledger) retire(slot int, a *account) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.accounts[slot] == a {
		l.accounts[slot] = nil
	}
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
	l.nReads++
	if o.n == 0 && a.doomed {
		return true
	}
	if o.n < floor.n || o.rv < floor.rv || o.n == floor.n && o.rv != floor.rv {
		l.add("%s was read at %+v after %+v", a.name, o, floor)
	}
	a.reach(o)
	return false
}

// wrote checks an acknowledged write on top of from: versions rise with the number, and no number is acknowledged twice.
func (l *ledger) wrote(a *account, from, o object) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o.n != from.n+1 || o.rv <= from.rv || a.raised[o.n] {
		l.add("%s was raised from %+v to %+v; acknowledged before: %v", a.name, from, o, a.raised[o.n])
	}
	a.raised[o.n] = true
	a.reach(o)
	l.nWrites++
	l.written = append(l.written, o)
}

// reach is called under the ledger's lock.
func (a *account) reach(o object) {
	if o.n > a.newest.n {
		a.newest = o
	}
}

// failed counts a write that was not acknowledged.
func (l *ledger) failed(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		l.nConflicts++
		return
	}
	l.nUnsure++
}

// born notes how the creator's request ended.
func (l *ledger) born(a *account, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a.birth = sure; err != nil {
		a.birth = unsure
	}
}

func (l *ledger) String() string {
	return fmt.Sprintf("%d acknowledged, %d objects, %d reads, %d conflicts, %d unsure", l.nWrites, l.nNames, l.nReads,
		l.nConflicts, l.nUnsure)
}

// writer reads objects and raises their counters. All writers share all objects.
type writer struct {
	api    typed.ConfigMapInterface
	random *rand.Rand
	ledger *ledger
}

// run writes until ctx is done. What is under way then is answered, or times out.
func (w *writer) run(ctx context.Context) {
	for pause(ctx, time.Duration(w.random.Int64N(int64(2*writerPause)))) {
		w.turn(context.Background(), w.random.IntN(nObjects))
	}
}

// turn reads the object in a slot and writes on top of what it has read.
func (w *writer) turn(ctx context.Context, slot int) {
	a, known, creates := w.ledger.at(slot)
	if creates {
		w.ledger.born(a, w.create(ctx, a))
		return
	}
	now, err := w.find(ctx, a.name)
	if err != nil {
		return
	}
	found := objectOf(now)
	gone := w.ledger.read(a, known.newest, found)
	switch {
	case gone, found.n > longestLife && known.birth == unsure:
		w.ledger.retire(slot, a)
	case found.n == 0 && known.birth == unsure:
		_ = w.create(ctx, a) // one of two will do it
	case found.n == 0: // it is being created
	case known.birth == sure && w.random.IntN(longestLife) < found.n-3:
		w.remove(ctx, slot, a, now)
	default:
		next, err := w.api.Update(ctx, counted(a.name, found.n+1, found.rv), metav1.UpdateOptions{})
		w.answered(a, found, next, err)
	}
}

// find reads an object, by a list or by a get. An object without a version is one that is not there.
func (w *writer) find(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	if w.random.IntN(2) == 0 {
		now, err := w.api.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return &corev1.ConfigMap{}, nil
		}
		return now, err
	}
	list, err := w.api.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil || len(list.Items) == 0 {
		return &corev1.ConfigMap{}, err
	}
	return &list.Items[0], nil
}

func (w *writer) create(ctx context.Context, a *account) error {
	now, err := w.api.Create(ctx, counted(a.name, 1, 0), metav1.CreateOptions{})
	w.answered(a, object{}, now, err)
	return err
}

func (w *writer) answered(a *account, from object, now *corev1.ConfigMap, err error) {
	if err != nil {
		w.ledger.failed(err)
		return
	}
	w.ledger.wrote(a, from, objectOf(now))
}

// remove deletes exactly the version that was read.
func (w *writer) remove(ctx context.Context, slot int, a *account, now *corev1.ConfigMap) {
	w.ledger.doom(a)
	exactly := &metav1.Preconditions{UID: &now.UID, ResourceVersion: &now.ResourceVersion}
	if err := w.api.Delete(ctx, a.name, metav1.DeleteOptions{Preconditions: exactly}); err != nil {
		w.ledger.failed(err)
		return
	}
	w.ledger.retire(slot, a)
}
