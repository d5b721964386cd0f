package controllers

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
)

// collect runs a garbage collector, whose watches of the resources can be held.
func (c *cluster) collect(resources ...string) *lag {
	c.t.Helper()
	behind := newLag(c.http.Transport, resources...)
	direct := c.http
	c.http = &http.Client{Transport: behind}
	client := c.newClient("collector")
	c.http = direct
	collector := NewGarbageCollector(GarbageCollectorConfig{Client: client, Clock: clock.RealClock{},
		UseWatchList: true})
	c.running.Go(c.ctx, "collector", collector.Run)
	settle(5 * time.Second)
	return behind
}

// remove deletes something of apps/v1 with a policy; "": none.
func (c *cluster) remove(resource, name string, policy metav1.DeletionPropagation) {
	c.t.Helper()
	options := &metav1.DeleteOptions{}
	if policy != "" {
		options.PropagationPolicy = &policy
	}
	c.must(c.client.WithAPIPath(appsPath).Delete().Namespace("default").Resource(resource).Name(name).Body(options).
		Do(c.ctx).Error())
}

// left says how many pods, replica sets and deployments there are.
func (c *cluster) left() string {
	c.t.Helper()
	deployments := &appsv1.DeploymentList{}
	c.must(c.client.WithAPIPath(appsPath).Get().Resource("deployments").Do(c.ctx).Into(deployments))
	return fmt.Sprintf("%d deployments, %d replica sets, %d pods", len(deployments.Items), len(c.replicaSets()),
		len(c.live()))
}

// TestADeploymentIsDeletedWithWhatItOwns, or without.
func TestADeploymentIsDeletedWithWhatItOwns(t *testing.T) {
	for policy, want := range map[metav1.DeletionPropagation]string{
		"":                                 "0 deployments, 0 replica sets, 0 pods",
		metav1.DeletePropagationBackground: "0 deployments, 0 replica sets, 0 pods",
		metav1.DeletePropagationForeground: "0 deployments, 0 replica sets, 0 pods",
		metav1.DeletePropagationOrphan:     "0 deployments, 1 replica sets, 2 pods",
	} {
		t.Run(string(policy), func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				c.machinery()
				c.collect()
				c.post("deployments", webDeployment(2, nil))
				settle(5 * time.Second)
				c.remove("deployments", "web", policy)
				settle(100 * time.Millisecond)
				if policy == metav1.DeletePropagationForeground {
					assert.Equal(t, "1 deployments, 1 replica sets, 0 pods", c.left(), "while pods stop")
				}
				settle(10 * time.Second)
				assert.Equal(t, want, c.left())
				for _, rs := range c.replicaSets() {
					assert.Equal(t, 0, len(rs.OwnerReferences), "owners of the orphan")
				}
			})
		})
	}
}

// owned returns a change that makes web, with that UID, one of a pod's owners.
func owned(uid string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = append(p.OwnerReferences, metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet",
			Name: "web", UID: types.UID(uid)})
	}
}

// TestACollectorThatIsBehindAsksBeforeItDeletes: what its informer shows of the owners is old in both directions.
func TestACollectorThatIsBehindAsksBeforeItDeletes(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		uid := func() string { return string(c.replicaSets()[0].UID) }
		c.post("replicasets", webSet(0))
		old := uid()
		behind := c.collect("replicasets")
		behind.hold()
		c.create("old", owned(old))
		settle(time.Second)

		// Another replica set of that name, which the informer does not show: a pod of it has an owner, and so has one
		// of both. What is left of the first is garbage, although the informer shows its owner.
		c.remove("replicasets", "web", "")
		c.post("replicasets", webSet(0))
		c.create("new", owned(uid()))
		c.create("both", func(p *corev1.Pod) { owned(old)(p); owned(uid())(p) })
		settle(30 * time.Second)
		names := func() (names []string) {
			for _, pod := range c.live() {
				names = append(names, pod.Name)
			}
			return names
		}
		assert.EqualSlices(t, []string{"both", "new", "old"}, names(), "while the informer is behind")

		behind.release()
		settle(5 * time.Second)
		assert.Equal(t, 1, len(c.get("both").OwnerReferences), "owners of both")
		assert.EqualSlices(t, []string{"both", "new"}, names(), "pods")
	})
}

// TestAPodOfAnUnknownKindStays: whether its owner exists cannot be asked.
func TestAPodOfAnUnknownKindStays(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.collect()
		c.create("a", func(p *corev1.Pod) {
			owned("1")(p)
			p.OwnerReferences[0].Kind = "Unknown"
		})
		settle(time.Hour)
		assert.True(t, slices.ContainsFunc(c.live(), func(p corev1.Pod) bool { return p.Name == "a" }), "it is gone")
	})
}
