package controllers

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
)

// schedulerCache knows on which node each pod is: from the informer, or, before the informer can know, because the
// scheduler itself decided so a moment ago. Without the second, all pods of a burst would go to one node, the one that
// was emptiest before it.
//
// Safe for concurrent use: the handler of pods calls update and remove, that of nodes setNode and removeNode, the
// worker assume and forget.
//
// Differs: k8s.io/kubernetes/pkg/scheduler/backend/cache lets an assumption expire; here only a failed bind ends it.
type schedulerCache struct {
	mu      sync.Mutex // guards the fields below; innermost
	nodes   map[string]*corev1.Node
	unfit   sets.Set[string]  // keys of pods that fitted nowhere, until they or a node change
	nodeOf  map[string]string // by pod key; pods without a node are not in it
	assumed sets.Set[string]  // keys of nodeOf that only the scheduler knows so far
}

func newSchedulerCache() *schedulerCache {
	return &schedulerCache{
		nodes: map[string]*corev1.Node{}, unfit: sets.New[string](),
		nodeOf: map[string]string{}, assumed: sets.New[string](),
	}
}

// setNode takes in a node. If it is new, or has another spec, setNode returns the pods that fitted nowhere before, in
// order.
func (c *schedulerCache) setNode(node *corev1.Node) (again []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.nodes[node.Name]
	c.nodes[node.Name] = node
	if old != nil && equality.Semantic.DeepEqual(old.Spec, node.Spec) {
		return nil // its kubelet has only said that it lives
	}
	again = sets.List(c.unfit)
	c.unfit.Clear()
	return again
}

// removeNode takes in that there is no such node. Its pods stay where they are: another controller's work.
func (c *schedulerCache) removeNode(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.nodes, name)
}

// update takes in what the informer shows. A pod that is shown without a node keeps the one
// that is assumed: what is shown may be older than the decision.
func (c *schedulerCache) update(key, node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if node != "" || !c.assumed.Has(key) {
		c.setLocked(key, node)
	}
}

// remove takes in that the informer no longer shows the pod.
func (c *schedulerCache) remove(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.setLocked(key, "")
}

// forget takes back an assumption, unless the informer has confirmed a node meanwhile.
func (c *schedulerCache) forget(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.assumed.Has(key) {
		c.setLocked(key, "")
	}
}

// assume decides for a node, and counts the pod there from now on; or says why the pod fits on none. It returns neither
// for a pod that the informer has shown on a node since the worker looked at it: that pod stays there. An assumption
// would take its place, and forget would then take the pod off the books.
func (c *schedulerCache) assume(key string, pod *corev1.Pod) (node, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nodeOf[key] != "" && !c.assumed.Has(key) {
		return "", ""
	}
	fitting, why := c.filterLocked(pod)
	if len(fitting) == 0 {
		c.unfit.Insert(key)
		return "", why
	}
	// the node that holds the fewest pods, the first of equals
	pods := c.countsLocked()
	node = slices.MinFunc(fitting, func(a, b string) int { return pods[a] - pods[b] })
	c.setLocked(key, node)
	c.assumed.Insert(key)
	return node, ""
}

// filterLocked returns the nodes on which a pod may be, in order, and why it may not be on the others.
func (c *schedulerCache) filterLocked(pod *corev1.Pod) (fitting []string, why string) {
	n := map[string]int{} // nodes, by what speaks against them
	for _, name := range slices.Sorted(maps.Keys(c.nodes)) {
		reason := unfit(pod, c.nodes[name])
		if reason == "" {
			fitting = append(fitting, name)
			continue
		}
		n[reason]++
	}
	if len(c.nodes) == 0 {
		return nil, "no nodes available to schedule pods"
	}
	var reasons []string
	for _, reason := range slices.Sorted(maps.Keys(n)) {
		reasons = append(reasons, fmt.Sprint(n[reason], " ", reason))
	}
	return fitting, fmt.Sprintf("%d/%d nodes are available: %s.", len(fitting), len(c.nodes),
		strings.Join(reasons, ", "))
}

// unfit returns what speaks against a pod on a node, "" if nothing does.
//
// Upstream: k8s.io/component-helpers/scheduling/corev1/helpers.go: FindMatchingUntoleratedTaint
func unfit(pod *corev1.Pod, node *corev1.Node) string {
	cordon := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	if node.Spec.Unschedulable && !tolerated(pod, cordon) {
		return "node(s) were unschedulable"
	}
	for _, taint := range node.Spec.Taints {
		if taint.Effect != corev1.TaintEffectPreferNoSchedule && !tolerated(pod, taint) {
			return "node(s) had untolerated taint(s)"
		}
	}
	return ""
}

func tolerated(pod *corev1.Pod, taint corev1.Taint) bool {
	return slices.ContainsFunc(pod.Spec.Tolerations, func(toleration corev1.Toleration) bool {
		return toleration.ToleratesTaint(logr.Discard(), &taint, true)
	})
}

// setLocked expects c.mu. No node takes the pod out.
func (c *schedulerCache) setLocked(key, node string) {
	c.unfit.Delete(key)
	delete(c.nodeOf, key)
	c.assumed.Delete(key)
	if node != "" {
		c.nodeOf[key] = node
	}
}

// counts returns how many pods each node holds.
func (c *schedulerCache) counts() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.countsLocked()
}

// countsLocked expects c.mu.
func (c *schedulerCache) countsLocked() map[string]int {
	counts := make(map[string]int, len(c.nodes))
	for node := range c.nodes {
		counts[node] = 0
	}
	for _, node := range c.nodeOf { // the node may be gone
		counts[node]++
	}
	return counts
}
