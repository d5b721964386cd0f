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
// permissive spec since the generation that its controller has observed: no replica set gets more pods than it wants,
// and together they never come to want more than replicas + maxSurge, which is how upstream counts. No delete takes the
// available pods below replicas - maxUnavailable by the most permissive spec since the deployment was whole, where a
// pod that the walk has taken since then counts. In the end the deployment has what it wants.
func TestARandomWalkKeepsItsBounds(t *testing.T) {
	seeds := 5
	if os.Getenv("FULL") != "" {
		seeds = 200
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			faults := walk(t, uint64(seed), true)
			assert.True(t, len(faults) == 0, "%s", strings.Join(faults, "\n"))
		})
	}
}

// TestTheWalkFindsAControllerWithoutExpectations: what is judged can fail.
func TestTheWalkFindsAControllerWithoutExpectations(t *testing.T) {
	for seed := range uint64(6) {
		if len(walk(t, seed, false)) > 0 {
			return
		}
	}
	t.Error("no fault in six walks without expectations")
}

// walker is one walk.
type walker struct {
	*cluster
	random *rand.Rand
	behind *lag
	killed map[string]bool // names of pods that the walk has deleted
}

func walk(t *testing.T, seed uint64, expectations bool) (faults []string) {
	inCluster(t, func(t *testing.T, c *cluster) {
		w := &walker{cluster: c, random: rand.New(rand.NewPCG(seed, 0)), killed: map[string]bool{}}
		c.schedule(nil, "node1")
		c.node("node1", nil)
		w.behind = newLag(c.http.Transport, "pods", "replicasets", "deployments")
		direct := c.http
		c.http = &http.Client{Transport: w.behind}
		c.workloads(expectations)
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
	deployments []*appsv1.Deployment
	// by replica set: the version that its controller has observed last, and newer ones
	sets     map[types.UID][]*appsv1.ReplicaSet
	observed int64
	acting   map[types.UID]int64 // by replica set that has not got what was written: what observed was then
	taken    int32               // available pods that the walk has taken, until the deployment is whole again
}

// judge reads etcd's history, and returns what was wrong.
func (w *walker) judge() (faults []string) {
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	last := w.etcd.Revision()
	h := &history{pods: map[string]*corev1.Pod{}, sets: map[types.UID][]*appsv1.ReplicaSet{},
		acting: map[types.UID]int64{}}
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
		uid := decoded[appsv1.ReplicaSet](w.t, event.PrevKv.Value).UID
		delete(h.sets, uid)
		delete(h.acting, uid)
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
	h.deployments, h.observed = append(h.deployments, d), d.Status.ObservedGeneration
	want := *d.Spec.Replicas
	if h.observed == d.Generation && d.Status.AvailableReplicas == want && d.Status.Replicas == want &&
		h.ready() == want {
		h.taken, h.deployments = 0, []*appsv1.Deployment{d}
	}
}

// bounds returns the most pods that the deployment may want, and the fewest of which it may leave available.
func (h *history) bounds() (most, least int32) {
	least = math.MaxInt32
	oldest := h.observed
	for uid, observed := range h.acting {
		rs := h.sets[uid][len(h.sets[uid])-1]
		if rs.Status.ObservedGeneration == rs.Generation && h.active(uid) <= *rs.Spec.Replicas {
			delete(h.acting, uid)
			continue
		}
		oldest = min(oldest, observed)
	}
	for _, d := range h.deployments {
		surge, unavailable := (&rollout{d: d}).fenceposts()
		if d.Generation >= oldest {
			most = max(most, *d.Spec.Replicas+surge)
		}
		least = min(least, *d.Spec.Replicas-unavailable)
	}
	return most, least
}

// replicaSet takes in a version of a replica set. One that grows takes none of the room of others.
func (h *history) replicaSet(rs *appsv1.ReplicaSet) string {
	before, sum := int32(0), int32(0)
	if versions := h.sets[rs.UID]; len(versions) > 0 {
		before = *versions[len(versions)-1].Spec.Replicas
	}
	h.sets[rs.UID] = slices.DeleteFunc(append(h.sets[rs.UID], rs), func(each *appsv1.ReplicaSet) bool {
		return each.Generation < rs.Status.ObservedGeneration
	})
	if _, known := h.acting[rs.UID]; !known && rs.Status.ObservedGeneration < rs.Generation {
		h.acting[rs.UID] = h.observed
	}
	for _, versions := range h.sets {
		sum += *versions[len(versions)-1].Spec.Replicas
	}
	if most, _ := h.bounds(); *rs.Spec.Replicas > before && sum > most {
		return fmt.Sprintf("%s wants %d: %d pods together, want at most %d", rs.Name, *rs.Spec.Replicas, sum, most)
	}
	return ""
}

// pod takes in a version of a pod; nil: it is gone. It returns what is wrong with that.
func (h *history) pod(name string, pod *corev1.Pod, killed bool) string {
	before := h.pods[name]
	if h.pods[name] = pod; pod == nil {
		delete(h.pods, name)
	}
	if before == nil {
		return h.created(pod)
	}
	wasReady := !isInactive(before) && readySince(before) != nil
	isReady := pod != nil && !isInactive(pod) && readySince(pod) != nil
	switch {
	case wasReady && !isReady && killed:
		h.taken++
	case wasReady && !isReady:
		_, least := h.bounds()
		available := h.ready() + h.taken
		if available < least {
			return fmt.Sprintf("%s is deleted: %d available pods, want at least %d", name, available, least)
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
		if !isInactive(each) && readySince(each) != nil {
			n++
		}
	}
	return n
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
