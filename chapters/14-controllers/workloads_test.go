package controllers

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"

	informer "listwatch/chapters/13-informer"
	"listwatch/internal/check/assert"
)

// appsPath is where the resources of apps/v1 are.
const appsPath = "/apis/apps/v1"

// workloads runs the controllers of deployments and replica sets.
func (c *cluster) workloads() {
	c.t.Helper()
	pods, startPods := c.informers(nil)
	client := c.newClient("controllers").WithAPIPath(appsPath)
	apps := informer.NewSharedInformerFactory(informer.FactoryConfig{Client: client, Clock: clock.RealClock{},
		UseWatchList: true})
	config := WorkloadConfig{Client: c.newClient("controllers"), Apps: client, Deployments: apps.Deployments(),
		ReplicaSets: apps.ReplicaSets(), Pods: pods.Pods(), Clock: clock.RealClock{}}
	c.running.Go(c.ctx, "replicaset", NewReplicaSetController(config).Run)
	c.running.Go(c.ctx, "deployment", NewDeploymentController(config).Run)
	startPods()
	apps.Start(c.ctx)
	c.running.Go(c.ctx, "factory.Shutdown", func(context.Context) { <-c.ctx.Done(); apps.Shutdown() })
	settle(time.Second)
}

// machinery runs what makes pods of a deployment, and what makes them run.
func (c *cluster) machinery() {
	c.t.Helper()
	c.schedule(nil, "node1")
	c.node("node1", nil)
	c.workloads()
}

var webLabels = map[string]string{"app": "web"}

func webTemplate(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: webLabels},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: image}}}}
}

// post creates an object of apps/v1.
func (c *cluster) post(resource string, obj runtime.Object) {
	c.t.Helper()
	c.must(c.client.WithAPIPath(appsPath).Post().Namespace("default").Resource(resource).Body(obj).Do(c.ctx).Error())
}

func (c *cluster) patch(path, resource, name, body string) {
	c.t.Helper()
	c.must(c.client.WithAPIPath(path).Patch(types.MergePatchType).Namespace("default").Resource(resource).Name(name).
		Body([]byte(body)).Do(c.ctx).Error())
}

// live returns the pods that are not being deleted.
func (c *cluster) live() []corev1.Pod {
	c.t.Helper()
	list := &corev1.PodList{}
	c.must(c.client.Get().Namespace("default").Resource("pods").Do(c.ctx).Into(list))
	return slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
}

func (c *cluster) replicaSets() []appsv1.ReplicaSet {
	c.t.Helper()
	list := &appsv1.ReplicaSetList{}
	c.must(c.client.WithAPIPath(appsPath).Get().Namespace("default").Resource("replicasets").Do(c.ctx).Into(list))
	return list.Items
}

func (c *cluster) deployment() *appsv1.Deployment {
	c.t.Helper()
	d := &appsv1.Deployment{}
	c.must(c.client.WithAPIPath(appsPath).Get().Namespace("default").Resource("deployments").Name("web").Do(c.ctx).
		Into(d))
	return d
}

func webSet(replicas int32) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.ReplicaSetSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: webLabels}, Template: webTemplate("web:1")}}
}

func webDeployment(replicas int32, change func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: webLabels}, Template: webTemplate("web:1")}}
	if change != nil {
		change(d)
	}
	return d
}

// TestAReplicaSetHasAsManyPodsAsItWants: also after some are deleted, after another number is wanted, and with one that
// was there before. Its template is copied from a pod, with the pod's own metadata.
func TestAReplicaSetHasAsManyPodsAsItWants(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.machinery()
		c.create("orphan", func(p *corev1.Pod) { p.Labels = webLabels })
		c.create("other", func(p *corev1.Pod) { p.Labels = map[string]string{"app": "other"} })
		settle(0) // the informer of pods shows them before that of replica sets shows the set
		set := webSet(3)
		set.Spec.Template.Name, set.Spec.Template.UID, set.Spec.Template.ResourceVersion = "a", "b", "3"
		c.post("replicasets", set)
		settle(5 * time.Second)
		assert.Equal(t, 4, len(c.live()), "pods, with one of another app")
		assert.True(t, metav1.GetControllerOf(c.get("orphan")) != nil, "the orphan is not adopted")

		c.delete("orphan", &metav1.DeleteOptions{})
		settle(5 * time.Second)
		assert.Equal(t, 4, len(c.live()), "pods after one was deleted")

		c.patch(appsPath, "replicasets", "web", `{"spec":{"replicas":1}}`)
		settle(5 * time.Second)
		assert.Equal(t, 2, len(c.live()), "pods after one was wanted")

		status := c.replicaSets()[0].Status
		assert.True(t, status.Replicas == 1 && status.ReadyReplicas == 1 && status.AvailableReplicas == 1 &&
			status.ObservedGeneration == 2, "the status is %+v", status)
	})
}

// TestAPodThatNoLongerMatchesIsReleased: it lives on, and the replica set makes another.
func TestAPodThatNoLongerMatchesIsReleased(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.machinery()
		c.post("replicasets", webSet(1))
		settle(5 * time.Second)
		name := c.live()[0].Name
		c.patch("/api/v1", "pods", name, `{"metadata":{"labels":{"app":"debugged"}}}`)
		settle(5 * time.Second)
		assert.Equal(t, 2, len(c.live()), "pods")
		assert.True(t, metav1.GetControllerOf(c.get(name)) == nil, "the pod has an owner still")
	})
}

// TestADeploymentRolls: to a new template, back, and through a pause and another size, until all its pods are of the
// template that is wanted. Of each template there is one replica set, of which it keeps as many as it is told to.
func TestADeploymentRolls(t *testing.T) {
	for name, change := range map[string]func(*appsv1.Deployment){
		"rolling": nil,
		"without surge": func(d *appsv1.Deployment) {
			d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: new(intstr.FromInt32(0)),
				MaxUnavailable: new(intstr.FromInt32(1))}
		},
		"recreate": func(d *appsv1.Deployment) { d.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType },
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				c.machinery()
				d := webDeployment(3, change)
				d.Spec.RevisionHistoryLimit = new(int32(2))
				c.post("deployments", d)
				rolled := func(image string, replicas int, revision string) {
					t.Helper()
					settle(30 * time.Second)
					for _, pod := range c.live() {
						assert.Equal(t, image, pod.Spec.Containers[0].Image)
					}
					assert.Equal(t, replicas, len(c.live()), "pods")
					d := c.deployment()
					assert.Equal(t, revision, d.Annotations[revisionAnnotation])
					assert.Equal(t, d.Generation, d.Status.ObservedGeneration, "generation")
					assert.Equal(t, replicas, int(d.Status.AvailableReplicas), "available")
				}
				set := func(spec string) { c.patch(appsPath, "deployments", "web", `{"spec":{`+spec+`}}`) }
				image := func(image string) string {
					return fmt.Sprintf(`"template":{"spec":{"containers":[{"name":"web","image":%q}]}}`, image)
				}
				rolled("web:1", 3, "1")
				set(image("web:2"))
				rolled("web:2", 3, "2")
				set(image("web:1"))
				rolled("web:1", 3, "3")
				set(`"paused":true`)
				set(image("web:3"))
				rolled("web:1", 3, "3")
				set(`"replicas":5`)
				rolled("web:1", 5, "3")
				set(`"paused":false`)
				rolled("web:3", 5, "4")
				set(image("web:4"))
				rolled("web:4", 5, "5")
				assert.Equal(t, 3, len(c.replicaSets()), "replica sets")
			})
		})
	}
}
