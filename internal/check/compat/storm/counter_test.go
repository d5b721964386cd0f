package storm

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
)

const counterClients = 4

// counter is one object that several clients raise at once, each by a read and an update of the version that it has
// read. For a number that only rises this is what linearizable means: a read returns at least what was acknowledged
// before it began, versions rise with the number, and no two clients are acknowledged the same number.
type counter struct {
	// Set by letIn, never changed.
	api    typed.ConfigMapInterface
	random *rand.Rand

	mu                          sync.Mutex // guards the fields below; innermost
	newest                      object     // the highest that was acknowledged, or read
	raised                      map[int]bool
	nReads, nConflicts, nUnsure int
	faults
}

func (c *counter) name() string { return "counter" }

// run raises the counter until ctx is done.
func (c *counter) run(ctx context.Context) {
	var clients sync.WaitGroup
	for range counterClients {
		random := rand.New(rand.NewPCG(c.random.Uint64(), 0))
		clients.Go(func() {
			for pause(ctx, time.Duration(random.IntN(20))*time.Millisecond) {
				c.raise(random.IntN(2) == 0)
			}
		})
	}
	clients.Wait()
}

// raise reads the counter, by a list or by a get, and writes the next number. It does not take part in the end of the
// storm: a request that has begun is answered, or times out.
func (c *counter) raise(list bool) {
	ctx, floor := context.Background(), c.now()
	var found object
	if list {
		all, err := c.api.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=counter"})
		if err != nil {
			return
		}
		if len(all.Items) > 0 {
			found = objectOf(&all.Items[0])
		}
	} else {
		now, err := c.api.Get(ctx, "counter", metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return
		}
		found = objectOf(now)
	}
	c.read(floor, found)
	next := counted("counter", found.n+1, found.rv)
	now, err := next, error(nil)
	if found.rv == 0 {
		now, err = c.api.Create(ctx, next, metav1.CreateOptions{})
	} else {
		now, err = c.api.Update(ctx, next, metav1.UpdateOptions{})
	}
	switch {
	case err == nil:
		c.wrote(found, objectOf(now))
	case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err):
		c.count(&c.nConflicts)
	default:
		c.count(&c.nUnsure)
	}
}

func (c *counter) now() object {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.newest
}

func (c *counter) count(n *int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*n++
}

// read checks what was read against what was known when the read began.
func (c *counter) read(floor, o object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nReads++
	if o.n < floor.n || o.rv < floor.rv || o.n == floor.n && o.rv != floor.rv {
		c.add("the counter was read at %+v after %+v", o, floor)
	}
	c.reachLocked(o)
}

// wrote checks an acknowledged update of the version from.
func (c *counter) wrote(from, o object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o.n != from.n+1 || o.rv <= from.rv || c.raised[o.n] {
		c.add("the counter was raised from %+v to %+v; acknowledged before: %v", from, o, c.raised[o.n])
	}
	c.raised[o.n] = true
	c.reachLocked(o)
}

func (c *counter) reachLocked(o object) {
	if o.n > c.newest.n {
		c.newest = o
	}
}

func (c *counter) String() string {
	return fmt.Sprintf("at %d, %d updates acknowledged, %d reads, %d conflicts, %d unsure",
		c.newest.n, len(c.raised), c.nReads, c.nConflicts, c.nUnsure)
}
