package controllers

import (
	"errors"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"

	deltafifo "listwatch/chapters/10-deltafifo"
	processor "listwatch/chapters/12-processor"
	"listwatch/internal/check/assert"
)

func assume(t *testing.T, c *schedulerCache, key, want string) {
	t.Helper()
	got, err := c.assume(key)
	assert.True(t, got == want && err == nil, "%s goes to %q, %v; want %q", key, got, err, want)
}

func wantCounts(t *testing.T, c *schedulerCache, want map[string]int) {
	t.Helper()
	got := c.counts()
	assert.True(t, maps.Equal(got, want), "nodes hold %v, want %v", got, want)
}

func TestLeastPodsSpreadsABurstThatTheInformerHasNotSeen(t *testing.T) {
	c := newSchedulerCache([]string{"node1", "node2", "node3"}, LeastPods)
	c.update("x", "node1")
	for i, node := range []string{"node2", "node3", "node1", "node2", "node3"} {
		assume(t, c, string(rune('a'+i)), node)
	}
	wantCounts(t, c, map[string]int{"node1": 2, "node2": 2, "node3": 2})
}

func TestRoundRobinTakesTheNodesInTurn(t *testing.T) {
	c := newSchedulerCache([]string{"node1", "node2"}, RoundRobin)
	for i, node := range []string{"node1", "node2", "node1"} {
		assume(t, c, string(rune('a'+i)), node)
	}
}

func TestAnOldSightOfAPodDoesNotUndoADecision(t *testing.T) {
	c := newSchedulerCache([]string{"node1"}, LeastPods)
	c.update("a", "")
	assume(t, c, "a", "node1")
	c.update("a", "") // decided, but this event is older
	wantCounts(t, c, map[string]int{"node1": 1})
	c.update("a", "node1")
	c.forget("a") // confirmed: there is nothing to take back
	wantCounts(t, c, map[string]int{"node1": 1})
	c.remove("a")
	c.remove("a")
	wantCounts(t, c, map[string]int{"node1": 0})
}

func TestAFailedBindGivesThePlaceBack(t *testing.T) {
	c := newSchedulerCache([]string{"node1", "node2"}, LeastPods)
	assume(t, c, "a", "node1")
	c.forget("a")
	wantCounts(t, c, map[string]int{"node1": 0, "node2": 0})
}

func TestAPodBoundByAnotherCountsWhereItIs(t *testing.T) {
	c := newSchedulerCache([]string{"node1", "node2"}, LeastPods)
	assume(t, c, "a", "node1")
	c.update("a", "node2")
	wantCounts(t, c, map[string]int{"node1": 0, "node2": 1})
}

// The worker looked at the pod when it had no node; before it decides, the informer shows the pod on one.
func TestADecisionThatComesTooLateIsNotMade(t *testing.T) {
	c := newSchedulerCache([]string{"node1", "node2"}, LeastPods)
	c.update("a", "node2")
	node, err := c.assume("a")
	assert.True(t, errors.Is(err, errPlaced), "assumed %q, %v, want that it has a node", node, err)
	c.forget("a")
	wantCounts(t, c, map[string]int{"node1": 0, "node2": 1})
	c.update("a", "") // another pod of that name
	assume(t, c, "a", "node1")
}

func TestWithoutNodesThereIsNoDecision(t *testing.T) {
	_, err := newSchedulerCache(nil, LeastPods).assume("a")
	assert.True(t, err != nil, "assumed a node of none")
}

// TestASchedulerFreesThePlaceOfAPodWhoseDeletionItMissed: a tombstone has a key, and perhaps an old state of the pod or
// none.
func TestASchedulerFreesThePlaceOfAPodWhoseDeletionItMissed(t *testing.T) {
	s := &Scheduler{cache: newSchedulerCache([]string{"node1", "node2"}, LeastPods)}
	on := func(node string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = node } }
	old := testPod("b", on("node1"))
	s.OnAdd(testPod("a", on("node1")), true)
	s.OnAdd(old, true)
	s.OnAdd(testPod("c", on("node2")), true)
	wantCounts(t, s.cache, map[string]int{"node1": 2, "node2": 1})
	s.OnDelete(processor.DeletedObject[*corev1.Pod]{FinalStateUnknown: &deltafifo.DeletedFinalStateUnknown{
		Key: "default/a"}})
	s.OnDelete(processor.DeletedObject[*corev1.Pod]{
		FinalStateUnknown: &deltafifo.DeletedFinalStateUnknown{Key: "default/b", Obj: old}, OptionalObj: old,
	})
	wantCounts(t, s.cache, map[string]int{"node1": 0, "node2": 1})
	assume(t, s.cache, "default/d", "node1")
}
