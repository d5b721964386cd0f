package controllers

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/kube/scheme"
)

// TestARandomWalkKeepsItsBounds scales a deployment, changes its image, deletes its pods, restarts the server and holds
// informers behind, at random. Each write by our controllers is judged at its revision in etcd's history, by the most
// permissive of the specs that its controller may act by: the one that it has observed last, and newer ones.
//
//   - Replica sets never come to want more pods together than replicas + maxSurge, and none gets more than it wants.
//   - None gives up pods that are available, by the status that it was written with, if that leaves fewer available
//     than replicas - maxUnavailable; and none deletes more than that, or a ready pod before one that is not.
//
// That is where upstream counts, too: a pod that becomes ready after its replica set was made smaller is not spared,
// and pods that the walk has deleted, which a controller may not know, count as if they were there. In the end the
// deployment has what it wants.
func TestARandomWalkKeepsItsBounds(t *testing.T) {
	seeds := 5
	if os.Getenv("FULL") != "" {
		seeds = 200
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			faults := walk(t, uint64(seed))
			assert.True(t, len(faults) == 0, "%s", strings.Join(faults, "\n"))
		})
	}
}

// walker is one walk.
type walker struct {
	*cluster
	random *rand.Rand
	behind *lag
	killed map[string]bool // names of pods that the walk has deleted
}

func walk(t *testing.T, seed uint64) (faults []string) {
	inCluster(t, func(t *testing.T, c *cluster) {
		w := &walker{cluster: c, random: rand.New(rand.NewPCG(seed, 0)), killed: map[string]bool{}}
		c.schedule(nil, "node1")
		c.node("node1", nil)
		w.behind = newLag(c.http.Transport, "pods", "replicasets", "deployments")
		direct := c.http
		c.http = &http.Client{Transport: w.behind}
		c.workloads()
		c.http = direct
		c.post("deployments", webDeployment(w.size(), func(d *appsv1.Deployment) {
			d.Spec.Strategy.RollingUpdate = w.strategy()
		}))
		for range 30 {
			w.step()
			settle(time.Duration(w.random.IntN(1500)) * time.Millisecond)
		}
		w.behind.release()
		settle(10 * time.Minute) // expectations that never came true are given up
		d := c.deployment()
		want := int(*d.Spec.Replicas)
		assert.Equal(t, want, len(c.live()), "pods in the end")
		for _, pod := range c.live() {
			assert.Equal(t, d.Spec.Template.Spec.Containers[0].Image, pod.Spec.Containers[0].Image)
		}
		assert.True(t, int(d.Status.AvailableReplicas) == want && d.Status.ObservedGeneration == d.Generation,
			"the status in the end is %+v", d.Status)
		faults = w.judge()
	})
	return faults
}

func (w *walker) size() int32 { return int32(w.random.IntN(6)) }

// strategy returns bounds that are not both nothing.
func (w *walker) strategy() *appsv1.RollingUpdateDeployment {
	some := []intstr.IntOrString{intstr.FromInt32(0), intstr.FromInt32(1), intstr.FromInt32(2),
		intstr.FromString("25%"), intstr.FromString("50%")}
	surge, unavailable := some[w.random.IntN(len(some))], some[w.random.IntN(len(some))]
	if surge.IntVal == 0 && surge.StrVal == "" {
		unavailable = some[1+w.random.IntN(len(some)-1)]
	}
	return &appsv1.RollingUpdateDeployment{MaxSurge: &surge, MaxUnavailable: &unavailable}
}

// step does one thing.
func (w *walker) step() {
	switch w.random.IntN(8) {
	case 0, 1:
		w.patch(appsPath, "deployments", "web", fmt.Sprintf(`{"spec":{"replicas":%d}}`, w.size()))
	case 2, 3:
		w.patch(appsPath, "deployments", "web", fmt.Sprintf(
			`{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"web:%d"}]}}}}`, w.random.IntN(4)))
	case 4:
		if pods := w.live(); len(pods) > 0 {
			name := pods[w.random.IntN(len(pods))].Name
			w.killed[name] = true
			err := w.client.Delete().Namespace("default").Resource("pods").Name(name).Do(w.ctx).Error()
			require.True(w.t, err == nil || apierrors.IsNotFound(err), err)
		}
	case 5:
		settle(0) // no request is under way: a create whose answer is lost is made again, as upstream
		w.stopServer()
		settle(time.Duration(w.random.IntN(2000)) * time.Millisecond)
		w.startServer()
		settle(time.Second)
	case 6:
		w.behind.hold()
	case 7:
		w.behind.release()
	}
}

// history is what the judge knows at one revision.
type history struct {
	pods        map[string]*corev1.Pod
	deployments []*appsv1.Deployment               // those that the controller may act by
	sets        map[types.UID][]*appsv1.ReplicaSet // the same, by replica set
	taken       int32                              // ready pods that the walk deleted, until the deployment is whole
	missing     map[types.UID]int32                // pods that it has deleted, until their replica set is
}

// judge reads etcd's history, and returns what was wrong.
func (w *walker) judge() (faults []string) {
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	last := w.etcd.Revision()
	h := &history{pods: map[string]*corev1.Pod{}, sets: map[types.UID][]*appsv1.ReplicaSet{},
		missing: map[types.UID]int32{}}
	for response := range w.etcd.Watch(ctx, "/registry/", clientv3.WithPrefix(), clientv3.WithRev(1),
		clientv3.WithPrevKV()) {
		for _, event := range response.Events {
			if fault := w.judgeOne(h, event); fault != "" {
				faults = append(faults, fmt.Sprintf("%d: %s", event.Kv.ModRevision, fault))
			}
		}
		if response.Header.Revision >= last {
			return faults
		}
	}
	w.t.Error("the history ends early")
	return faults
}

func (w *walker) judgeOne(h *history, event *clientv3.Event) (fault string) {
	key, gone := string(event.Kv.Key), event.Type == clientv3.EventTypeDelete
	switch {
	case strings.HasPrefix(key, "/registry/deployments/"):
		h.deployment(decoded[appsv1.Deployment](w.t, event.Kv.Value))
	case strings.HasPrefix(key, "/registry/replicasets/") && gone:
		delete(h.sets, decoded[appsv1.ReplicaSet](w.t, event.PrevKv.Value).UID)
	case strings.HasPrefix(key, "/registry/replicasets/"):
		return h.replicaSet(decoded[appsv1.ReplicaSet](w.t, event.Kv.Value))
	case strings.HasPrefix(key, "/registry/pods/"):
		name := key[strings.LastIndex(key, "/")+1:]
		if gone {
			return h.pod(name, nil, w.killed[name])
		}
		return h.pod(name, decoded[corev1.Pod](w.t, event.Kv.Value), w.killed[name])
	}
	return ""
}

func decoded[T any, P interface {
	*T
	runtime.Object
}](t *testing.T, value []byte) P {
	obj := P(new(T))
	require.NoError(t, runtime.DecodeInto(scheme.Codecs.UniversalDeserializer(), value, obj))
	return obj
}

// deployment takes in a version of the deployment.
func (h *history) deployment(d *appsv1.Deployment) {
	h.deployments = slices.DeleteFunc(append(h.deployments, d), func(each *appsv1.Deployment) bool {
		return each.Generation < d.Status.ObservedGeneration
	})
	want := *d.Spec.Replicas
	if len(h.deployments) == 1 && d.Status.AvailableReplicas == want && d.Status.Replicas == want && h.ready() == want {
		h.taken = 0
	}
}

// bounds returns the most pods that the deployment may want, and the fewest of which it may leave available.
func (h *history) bounds() (most, least int32) {
	least = math.MaxInt32
	for _, d := range h.deployments {
		surge, unavailable := (&rollout{d: d}).fenceposts()
		most, least = max(most, *d.Spec.Replicas+surge), min(least, *d.Spec.Replicas-unavailable)
	}
	return most, least
}

// together returns how many pods all replica sets want, and how many of these are available by their status.
func (h *history) together() (want, available int32) {
	for _, versions := range h.sets {
		newest := versions[len(versions)-1]
		want += *newest.Spec.Replicas
		available += min(*newest.Spec.Replicas, newest.Status.AvailableReplicas)
	}
	return want, available
}

// replicaSet takes in a version of a replica set.
func (h *history) replicaSet(rs *appsv1.ReplicaSet) string {
	before, spared := h.together()
	h.sets[rs.UID] = slices.DeleteFunc(append(h.sets[rs.UID], rs), func(each *appsv1.ReplicaSet) bool {
		return each.Generation < rs.Status.ObservedGeneration
	})
	if len(h.sets[rs.UID]) == 1 && rs.Status.Replicas == *rs.Spec.Replicas && h.active(rs.UID) == *rs.Spec.Replicas {
		h.missing[rs.UID] = 0
	}
	want, available := h.together()
	most, least := h.bounds()
	switch {
	case want > before && want > most:
		return fmt.Sprintf("%s wants %d: %d pods together, want at most %d", rs.Name, *rs.Spec.Replicas, want, most)
	case want < before && available < spared && available+h.taken < least:
		return fmt.Sprintf("%s wants %d: that leaves %d available, want at least %d", rs.Name, *rs.Spec.Replicas,
			available, least)
	}
	return ""
}

// pod takes in a version of a pod; nil: it is gone. It returns what is wrong with that.
func (h *history) pod(name string, pod *corev1.Pod, killed bool) string {
	before := h.pods[name]
	if h.pods[name] = pod; pod == nil {
		delete(h.pods, name)
	}
	switch {
	case before == nil:
		return h.created(pod)
	case isInactive(before) || pod != nil && !isInactive(pod):
		return ""
	case !killed:
		return h.deleted(before)
	}
	h.missing[metav1.GetControllerOf(before).UID]++
	if isReady(before) {
		h.taken++
	}
	return ""
}

// created judges a new pod: its replica set must want it.
func (h *history) created(pod *corev1.Pod) string {
	owner, most := metav1.GetControllerOf(pod).UID, int32(0)
	for _, rs := range h.sets[owner] {
		most = max(most, *rs.Spec.Replicas)
	}
	if pods := h.active(owner); pods > most {
		return fmt.Sprintf("%s is created: %d pods, want at most %d", pod.Name, pods, most)
	}
	return ""
}

// deleted judges the deletion of a pod by our controllers: its replica set must want fewer, and this one least.
func (h *history) deleted(pod *corev1.Pod) string {
	owner, least := metav1.GetControllerOf(pod).UID, int32(math.MaxInt32)
	for _, rs := range h.sets[owner] {
		least = min(least, *rs.Spec.Replicas)
	}
	pods := h.active(owner)
	if pods+h.missing[owner] < least {
		return fmt.Sprintf("%s is deleted: %d pods, want at least %d", pod.Name, pods, least)
	}
	if pods > least || !isReady(pod) {
		return "" // others will follow
	}
	for _, each := range h.pods {
		if !isInactive(each) && metav1.GetControllerOf(each).UID == owner && !isReady(each) {
			return fmt.Sprintf("%s is deleted, and %s, which is not ready, is kept", pod.Name, each.Name)
		}
	}
	return ""
}

// active returns how many pods a replica set has.
func (h *history) active(owner types.UID) (n int32) {
	for _, each := range h.pods {
		if !isInactive(each) && metav1.GetControllerOf(each).UID == owner {
			n++
		}
	}
	return n
}

// ready returns how many pods are available.
func (h *history) ready() (n int32) {
	for _, each := range h.pods {
		if !isInactive(each) && isReady(each) {
			n++
		}
	}
	return n
}
