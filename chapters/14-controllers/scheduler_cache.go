package controllers

import (
	"errors"
	"maps"
	"sync"
)

// Strategy is how a node is chosen for a pod.
type Strategy int

// The strategies.
const (
	// LeastPods takes the node that holds the fewest pods, and of several such the one that comes first.
	LeastPods Strategy = iota
	// RoundRobin takes the nodes in turn.
	RoundRobin
)

var (
	errNoNodes = errors.New("there are no nodes")
	errPlaced  = errors.New("the pod has been given a node already")
)

// schedulerCache knows on which node each pod is: from the informer, or, before the informer can know, because the
// scheduler itself decided so a moment ago. Without the second, all pods of a burst would go to one node, the one that
// was emptiest before it.
//
// Safe for concurrent use: the handler calls update and remove, the worker assume and forget.
//
// Differs: k8s.io/kubernetes/pkg/scheduler/backend/cache lets an assumption expire; here only a failed bind ends it.
type schedulerCache struct {
	// Set by newSchedulerCache, never changed.
	nodes    []string
	strategy Strategy

	mu       sync.Mutex        // guards the fields below; innermost
	nodeOf   map[string]string // by pod key; pods without a node are not in it
	assumed  map[string]bool   // keys of nodeOf that only the scheduler knows so far
	nPods    map[string]int    // by node, the number of its pods in nodeOf
	nDecided int               // decisions so far, for RoundRobin
}

func newSchedulerCache(nodes []string, strategy Strategy) *schedulerCache {
	return &schedulerCache{
		nodes: nodes, strategy: strategy,
		nodeOf: map[string]string{}, assumed: map[string]bool{}, nPods: map[string]int{},
	}
}

// update takes in what the informer shows. A pod that is shown without a node keeps the one
// that is assumed: what is shown may be older than the decision.
func (c *schedulerCache) update(key, node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if node == "" && c.assumed[key] {
		return
	}
	c.setLocked(key, node, false)
}

// remove takes in that the informer no longer shows the pod.
func (c *schedulerCache) remove(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.setLocked(key, "", false)
}

// forget takes back an assumption, unless the informer has confirmed a node meanwhile.
func (c *schedulerCache) forget(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.assumed[key] {
		c.setLocked(key, "", false)
	}
}

// assume decides for a node, and counts the pod there from now on. A pod that the informer has shown on a node since
// the worker looked at it stays there: an assumption would take its place, and forget would then take the pod off the
// books.
func (c *schedulerCache) assume(key string) (node string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.nodes) == 0 {
		return "", errNoNodes
	}
	if c.nodeOf[key] != "" && !c.assumed[key] {
		return "", errPlaced
	}
	node = c.chooseLocked()
	c.nDecided++
	c.setLocked(key, node, true)
	return node, nil
}

func (c *schedulerCache) chooseLocked() string {
	if c.strategy == RoundRobin {
		return c.nodes[c.nDecided%len(c.nodes)]
	}
	least := c.nodes[0]
	for _, node := range c.nodes[1:] {
		if c.nPods[node] < c.nPods[least] {
			least = node
		}
	}
	return least
}

// setLocked expects c.mu. No node takes the pod out.
func (c *schedulerCache) setLocked(key, node string, assumed bool) {
	if old, ok := c.nodeOf[key]; ok {
		c.nPods[old]--
	}
	delete(c.nodeOf, key)
	delete(c.assumed, key)
	if node == "" {
		return
	}
	c.nodeOf[key] = node
	c.nPods[node]++
	if assumed {
		c.assumed[key] = true
	}
}

// counts returns how many pods each node holds.
func (c *schedulerCache) counts() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := make(map[string]int, len(c.nodes))
	for _, node := range c.nodes {
		counts[node] = 0
	}
	maps.Copy(counts, c.nPods)
	return counts
}
