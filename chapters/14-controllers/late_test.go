package controllers

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	listwatch "listwatch/chapters/09-listwatch"
	deltafifo "listwatch/chapters/10-deltafifo"
	processor "listwatch/chapters/12-processor"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/probetest"
	"listwatch/internal/observe/probe"
)

// overtaking is a way to the server on which a request is overtaken: before the first that ends in suffix, before is
// called, which may change the world and may return an error instead of an answer.
type overtaking struct {
	under  http.RoundTripper
	suffix string
	verb   string
	before func() error

	mu      sync.Mutex // guards answers
	answers []int      // to those requests; 0 for an error
}

// RoundTrip implements [http.RoundTripper].
func (o *overtaking) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != o.verb || !strings.HasSuffix(request.URL.Path, o.suffix) {
		return o.under.RoundTrip(request)
	}
	status := 0
	var err error
	if o.isFirst() {
		err = o.before()
	}
	var response *http.Response
	if err == nil {
		response, err = o.under.RoundTrip(request)
	}
	if err == nil {
		status = response.StatusCode
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.answers = append(o.answers, status)
	return response, err
}

func (o *overtaking) isFirst() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.answers) == 0
}

// overtake returns a client whose first request of that kind is overtaken.
func (c *cluster) overtake(verb, suffix string, before func() error) (*listwatch.RESTClient, *overtaking) {
	o := &overtaking{under: c.http.Transport, verb: verb, suffix: suffix, before: before}
	return listwatch.NewRESTClient(listwatch.Config{
		Base: &url.URL{Scheme: "http", Host: "cluster"}, HTTP: &http.Client{Transport: o}, QPS: -1,
		Clock: clock.RealClock{},
	}), o
}

// bind gives a pod a node, as another scheduler would.
func (c *cluster) bind(name, node string) error {
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: name}, Target: corev1.ObjectReference{Kind: "Node",
		Name: node}}
	return c.client.Post().Namespace("default").Resource("pods").Name(name).SubResource("binding").Body(binding).
		Do(c.ctx).Error()
}

// replace removes a pod at once and makes another one of the same name, for a scheduler that does not exist.
func (c *cluster) replace(name string) error {
	zero := int64(0)
	request := c.client.Delete().Namespace("default").Resource("pods").Name(name).Body(&metav1.DeleteOptions{
		GracePeriodSeconds: &zero})
	if err := request.Do(c.ctx).Error(); err != nil {
		return err
	}
	pod := testPod(name, func(p *corev1.Pod) { p.Spec.SchedulerName = "none" })
	pod.ResourceVersion, pod.UID, pod.Spec.NodeName = "", "", ""
	return c.client.Post().Namespace("default").Resource("pods").Body(pod).Do(c.ctx).Error()
}

func wantAnswers(t *testing.T, o *overtaking, want ...int) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	assert.EqualSlices(t, want, o.answers, "its requests were answered by %v, want %v", o.answers, want)
}

func wantAtRest(t *testing.T, scheduler *Scheduler, nodes map[string]int) {
	t.Helper()
	got := scheduler.Snapshot()
	assert.True(t, maps.Equal(got.Nodes, nodes) && got.Queue.Len+got.Queue.Waiting+len(got.Queue.Processing) == 0,
		"in the end the scheduler holds %+v, want %v and an empty queue", got, nodes)
}

// TestASchedulerThatIsTooLateIsRefusedLooksAgainAndIsDone: its binding arrives a moment after another one. It does not
// look into the error; its key comes back after 5 ms, and by then its own informer has shown it the truth.
func TestASchedulerThatIsTooLateIsRefusedLooksAgainAndIsDone(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		client, late := c.overtake("POST", "/binding", func() error { return c.bind("a", "node2") })
		all := c.observe(nil)
		scheduler := c.schedule(func(s *SchedulerConfig) { s.Client = client })
		synctest.Wait()
		created := c.create("a", nil)
		settle(time.Minute)
		first := 0
		_, err := fmt.Sscan(created.ResourceVersion, &first)
		c.must(err)
		all.expect(t, "who watches all pods", fmt.Sprint("ADDED a ", first), fmt.Sprint("MODIFIED a ", first+1))
		assert.Equal(t, "node2", c.get("a").Spec.NodeName, "the node of a is the rival's")
		wantAnswers(t, late, http.StatusConflict)
		wantAtRest(t, scheduler, map[string]int{"node1": 0, "node2": 1})
		retries, looks := probetest.Records(c.log, probe.WorkRetry), probetest.Records(c.log, probe.Reconciled)
		assert.True(t, len(retries) == 1 && retries[0].Args[0] == 5, "looked again: %v, want once, after 5 ms", retries)
		assert.True(t, len(looks) != 0 && looks[0].Field(probe.FieldDid) == "default/a is on node2: nothing to do",
			"its looks found %v, want first that a is on node2", looks)
	})
}

// A binding that goes lost gives its place back: the next decision is made as if the first had not been. And a
// decision is about one pod, not about its name: the pod that has taken the name meanwhile is for another scheduler.
func TestADecisionThatIsNotCarriedOutGivesItsPlaceBack(t *testing.T) {
	for name, c := range map[string]struct {
		before  func(c *cluster) error
		on, by  string // the node of the pod, and its scheduler in the end
		answers []int
		onNode1 int
	}{
		"lost": {func(*cluster) error { return errors.New("lost on the way") }, "node1", "default-scheduler",
			[]int{0, http.StatusCreated}, 1},
		"replaced": {func(c *cluster) error { return c.replace("a") }, "", "none", []int{http.StatusConflict}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, cluster *cluster) {
				client, late := cluster.overtake("POST", "/binding", func() error { return c.before(cluster) })
				scheduler := cluster.schedule(func(s *SchedulerConfig) { s.Client = client })
				synctest.Wait()
				cluster.create("a", nil)
				settle(time.Minute)
				pod := cluster.get("a")
				assert.True(t, pod.Spec.SchedulerName == c.by && pod.Spec.NodeName == c.on,
					"a for %q is on %q, want for %q on %q", pod.Spec.SchedulerName, pod.Spec.NodeName, c.by, c.on)
				wantAnswers(t, late, c.answers...)
				wantAtRest(t, scheduler, map[string]int{"node1": c.onNode1, "node2": 0})
			})
		})
	}
}

// TestAKubeletEndsThePodItStoppedAndNoOther replaces the pod while the last request of its deletion is on its way.
func TestAKubeletEndsThePodItStoppedAndNoOther(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		client, late := c.overtake("DELETE", "/a", func() error { return c.replace("a") })
		c.schedule(nil)
		c.node("node1", func(k *KubeletConfig) { k.Client = client })
		synctest.Wait()
		old := c.create("a", nil)
		settle(5 * time.Second)
		c.delete("a", metav1.NewDeleteOptions(30))
		settle(time.Minute)
		if pod := c.get("a"); pod.UID == old.UID || pod.DeletionTimestamp != nil {
			t.Errorf("a is %s, to be deleted %v; want the new one, left alone", pod.UID, pod.DeletionTimestamp)
		}
		// It may have tried once more: when the one who was faster took the old pod's time to stop, that was news, too.
		late.mu.Lock()
		defer late.mu.Unlock()
		assert.EqualSlices(t, []int{http.StatusConflict}, slices.Compact(late.answers),
			"its last deletes were answered by")
	})
}

// TestASchedulerCountsBeforeItDecides lists the one waiting pod first, before the pods that fill node1.
func TestASchedulerCountsBeforeItDecides(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.create("a", nil)
		for i := range 100 {
			name := fmt.Sprint("p", i)
			c.create(name, nil)
			c.must(c.bind(name, "node1"))
		}
		c.schedule(nil)
		settle(time.Minute)
		assert.Equal(t, "node2", c.get("a").Spec.NodeName, "the node of a is the empty one")
	})
}

func testNode(name string, spec *corev1.NodeSpec) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: *spec}
}

func cacheOf(nodes ...string) *schedulerCache {
	c := newSchedulerCache()
	for _, name := range nodes {
		c.setNode(testNode(name, &corev1.NodeSpec{}))
	}
	return c
}

func assume(t *testing.T, c *schedulerCache, key, want string) {
	t.Helper()
	got, why := c.assume(key, testPod(key, nil))
	assert.True(t, got == want && why == "", "%s goes to %q, %q; want %q", key, got, why, want)
}

func wantCounts(t *testing.T, c *schedulerCache, want map[string]int) {
	t.Helper()
	got := c.counts()
	assert.True(t, maps.Equal(got, want), "nodes hold %v, want %v", got, want)
}

func TestAnOldSightOfAPodDoesNotUndoADecision(t *testing.T) {
	c := cacheOf("node1")
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

// The worker looked at the pod when it had no node; before it decides, the informer shows the pod on one.
func TestADecisionThatComesTooLateIsNotMade(t *testing.T) {
	c := cacheOf("node1", "node2")
	c.update("a", "node2")
	assume(t, c, "a", "") // it has a node
	c.forget("a")
	wantCounts(t, c, map[string]int{"node1": 0, "node2": 1})
	c.update("a", "") // another pod of that name
	assume(t, c, "a", "node1")
}

// TestAPodGoesOnlyWhereItIsTolerated is a table of nodes and pods.
func TestAPodGoesOnlyWhereItIsTolerated(t *testing.T) {
	taint := func(effect corev1.TaintEffect) *corev1.NodeSpec {
		return &corev1.NodeSpec{Taints: []corev1.Taint{{Key: "k", Value: "v", Effect: effect}}}
	}
	never, leaves, rather := taint(corev1.TaintEffectNoSchedule), taint(corev1.TaintEffectNoExecute),
		taint(corev1.TaintEffectPreferNoSchedule)
	free, cordoned := &corev1.NodeSpec{}, &corev1.NodeSpec{Unschedulable: true}
	exists := corev1.TolerationOpExists
	refused := "0/1 nodes are available: 1 node(s) had untolerated taint(s)."
	for name, c := range map[string]struct {
		first, second *corev1.NodeSpec // nil: there is no such node
		tolerates     corev1.Toleration
		want          string // the node, or why there is none
	}{
		"both are free":    {first: free, second: free, want: "node1"},
		"cordoned":         {first: cordoned, second: free, want: "node2"},
		"NoSchedule":       {first: never, second: free, want: "node2"},
		"NoExecute":        {first: leaves, second: free, want: "node2"},
		"PreferNoSchedule": {first: rather, second: free, want: "node1"},
		"deleted":          {second: free, want: "node2"},
		"no node":          {want: "no nodes available to schedule pods"},
		"one reason": {first: cordoned, second: cordoned,
			want: "0/2 nodes are available: 2 node(s) were unschedulable."},
		"one reason each": {first: cordoned, second: never,
			want: "0/2 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable."},
		"tolerates all":        {first: leaves, tolerates: corev1.Toleration{Operator: exists}, want: "node1"},
		"tolerates the cordon": {first: cordoned, tolerates: corev1.Toleration{Operator: exists}, want: "node1"},
		"another value":        {first: never, tolerates: corev1.Toleration{Key: "k", Value: "w"}, want: refused},
	} {
		t.Run(name, func(t *testing.T) {
			cache := cacheOf("node1", "node2")
			for name, spec := range map[string]*corev1.NodeSpec{"node1": c.first, "node2": c.second} {
				if spec == nil {
					cache.removeNode(name)
				} else {
					cache.setNode(testNode(name, spec))
				}
			}
			got, why := cache.assume("default/a", testPod("a", func(p *corev1.Pod) {
				if c.tolerates != (corev1.Toleration{}) {
					p.Spec.Tolerations = []corev1.Toleration{c.tolerates}
				}
			}))
			assert.Equal(t, c.want, got+why)
		})
	}
}

// TestAPodThatFitsNowhereWaitsForANode: a node that only says that it lives is not worth a look.
func TestAPodThatFitsNowhereWaitsForANode(t *testing.T) {
	c := newSchedulerCache()
	free, cordoned := &corev1.NodeSpec{}, &corev1.NodeSpec{Unschedulable: true}
	for i, step := range []struct {
		spec *corev1.NodeSpec
		want []string // who is looked at again
	}{{cordoned, []string{"a", "b"}}, {cordoned, nil}, {free, []string{"a", "b"}}, {cordoned, nil}} {
		for _, key := range []string{"b", "a", "gone"} {
			if i < 3 {
				_, why := c.assume(key, testPod(key, nil))
				assert.True(t, why != "", "step %d: %s fits", i, key)
			}
		}
		c.remove("gone")
		assert.EqualSlices(t, step.want, c.setNode(testNode("node1", step.spec)), "step %d", i)
	}
}

// TestASchedulerFreesThePlaceOfAPodWhoseDeletionItMissed gets tombstones with an old state of the pod, and without.
func TestASchedulerFreesThePlaceOfAPodWhoseDeletionItMissed(t *testing.T) {
	s := &Scheduler{cache: cacheOf("node1", "node2")}
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
