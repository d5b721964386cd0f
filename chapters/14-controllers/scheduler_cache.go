package controllers

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
)

var errPlaced = errors.New("the pod has been given a node already")

// fitError says why a pod fits on no node.
type fitError string

func (e fitError) Error() string { return string(e) }

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
	assumed map[string]bool   // keys of nodeOf that only the scheduler knows so far
	nPods   map[string]int    // by node, the number of its pods in nodeOf
}

func newSchedulerCache() *schedulerCache {
	return &schedulerCache{
		nodes: map[string]*corev1.Node{}, unfit: sets.New[string](),
		nodeOf: map[string]string{}, assumed: map[string]bool{}, nPods: map[string]int{},
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
// books. A [fitError] says that the pod fits nowhere.
func (c *schedulerCache) assume(key string, pod *corev1.Pod) (node string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nodeOf[key] != "" && !c.assumed[key] {
		return "", errPlaced
	}
	fitting, why := c.filterLocked(pod)
	if len(fitting) == 0 {
		c.unfit.Insert(key)
		return "", fitError(why)
	}
	node = c.chooseLocked(fitting)
	c.setLocked(key, node, true)
	return node, nil
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

// tolerated reports whether a pod tolerates a taint.
//
// Upstream: k8s.io/api/core/v1/toleration.go: (*Toleration).ToleratesTaint
// Differs: does not know the operators Lt and Gt.
func tolerated(pod *corev1.Pod, taint corev1.Taint) bool {
	return slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
		if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
			return false
		}
		return t.Operator == corev1.TolerationOpExists ||
			t.Value == taint.Value && (t.Operator == "" || t.Operator == corev1.TolerationOpEqual)
	})
}

// chooseLocked takes the node that holds the fewest pods.
func (c *schedulerCache) chooseLocked(nodes []string) string {
	return slices.MinFunc(nodes, func(a, b string) int { return c.nPods[a] - c.nPods[b] }) // the first of equals
}

// setLocked expects c.mu. No node takes the pod out.
func (c *schedulerCache) setLocked(key, node string, assumed bool) {
	if old, ok := c.nodeOf[key]; ok {
		if c.nPods[old]--; c.nPods[old] == 0 {
			delete(c.nPods, old) // the node may be gone
		}
	}
	c.unfit.Delete(key)
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
	for node := range c.nodes {
		counts[node] = 0
	}
	maps.Copy(counts, c.nPods)
	return counts
}
