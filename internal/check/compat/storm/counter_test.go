package storm

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

const counterClients = 4

// counter is one object that several clients raise at once, each by a read and an update of the version that it has read.
// For a number that only rises this is what linearizable means: a read returns at least what was acknowledged before it
// began, versions rise with the number, and no two clients are acknowledged the same number.
type counter struct {
	// Set by letIn, never changed.
	api    func() *api // a client of its own
	random *rand.Rand

	mu                          sync.Mutex // guards the fields below; innermost
	newest                      object     // the highest that was acknowledged, or read
	raised                      map[int]bool
	nReads, nConflicts, nUnsure int
	faults                      faults
}

// run raises the counter until ctx is done.
func (c *counter) run(ctx context.Context) {
	var clients sync.WaitGroup
	for range counterClients {
		api, random := c.api(), rand.New(rand.NewPCG(c.random.Uint64(), 0))
		clients.Go(func() {
			defer api.close()
			for pause(ctx, time.Duration(random.IntN(20))*time.Millisecond) {
				c.raise(api, random.IntN(2) == 0)
			}
		})
	}
	clients.Wait()
}

// raise reads the counter, by a list or by a get, and writes the next number.
func (c *counter) raise(api *api, list bool) {
	path, floor := configMapsOf("counter"), c.now()
	found, ok := readCounter(api, path, list)
	if !ok {
		return
	}
	c.read(floor, found.object())
	next := counted("counter", found.object().n+1, found.Metadata.rv())
	r := api.do("PUT", path+"/counter", next)
	if found.Metadata.Name == "" {
		r = api.do("POST", path, next)
	}
	var now configMap
	switch {
	case (r.code == http.StatusOK || r.code == http.StatusCreated) && r.read(&now) == nil:
		c.wrote(found.object(), now.object())
	case r.code == http.StatusConflict:
		c.count(&c.nConflicts)
	default:
		c.count(&c.nUnsure)
	}
}

// readCounter returns the zero value if there is no counter yet; ok is false if no answer came.
func readCounter(api *api, path string, list bool) (found configMap, ok bool) {
	if !list {
		r := api.do("GET", path+"/counter", nil)
		return found, r.code == http.StatusNotFound && r.reason() == "NotFound" ||
			r.code == http.StatusOK && r.read(&found) == nil
	}
	var all configMapList
	r := api.do("GET", path+"?fieldSelector=metadata.name%3Dcounter", nil)
	if r.code != http.StatusOK || r.read(&all) != nil {
		return found, false
	}
	if len(all.Items) > 0 {
		found = all.Items[0]
	}
	return found, true
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
		c.faults.add("the counter was read at %+v after %+v", o, floor)
	}
	c.reachLocked(o)
}

// wrote checks an acknowledged update of the version from.
func (c *counter) wrote(from, o object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o.n != from.n+1 || o.rv <= from.rv || c.raised[o.n] {
		c.faults.add("the counter was raised from %+v to %+v; acknowledged before: %v", from, o, c.raised[o.n])
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
