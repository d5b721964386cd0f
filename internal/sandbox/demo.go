package sandbox

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	listwatch "listwatch/chapters/09-listwatch"
	"listwatch/internal/routine"
)

const (
	demoPeriod   = 2 * time.Second // slow enough to follow with the eye
	demoPods     = 4               // how many of its pods the demo keeps alive
	demoSelector = "demo=listwatch"
)

// Demo is gentle traffic, so that there is something to see before the first command. It creates pods,
// relabels them and deletes them, over HTTP, as any client would; pods that are not its own it leaves alone.
//
// Differs: upstream has nothing of the kind.
type Demo struct {
	// Set by newDemo, never changed.
	client *listwatch.RESTClient
	clock  clock.WithTicker

	rests atomic.Bool // set by the sandbox's goroutine: a tour is open

	// Owned by Run.
	step int
}

func newDemo(client *listwatch.RESTClient, clk clock.WithTicker) *Demo {
	return &Demo{client: client, clock: clk}
}

// Run does one thing every two seconds until ctx is done, unless it rests.
func (d *Demo) Run(ctx context.Context) {
	routine.Every(ctx, d.clock, demoPeriod, func(ctx context.Context) {
		if !d.rests.Load() {
			d.act(ctx)
		}
	})
}

// act looks at its pods and does the next thing. An error is not handled: the next look is two seconds away.
func (d *Demo) act(ctx context.Context) {
	var pods corev1.PodList
	list := d.client.Get().Resource("pods").Namespace(metav1.NamespaceDefault)
	list.VersionedParams(&metav1.ListOptions{LabelSelector: demoSelector, ResourceVersion: "0"})
	if list.Do(ctx).Into(&pods) != nil {
		return
	}
	living := alive(pods.Items)
	d.step++
	switch {
	case len(living) < demoPods:
		d.create(ctx)
	case d.step%2 == 0:
		d.relabel(ctx, &living[d.step%len(living)])
	default:
		d.delete(ctx, oldest(living))
	}
}

// alive returns the pods that are not being deleted.
func alive(pods []corev1.Pod) []corev1.Pod {
	var living []corev1.Pod
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil {
			living = append(living, pod)
		}
	}
	return living
}

func oldest(pods []corev1.Pod) *corev1.Pod {
	first := &pods[0]
	for i := range pods {
		if pods[i].CreationTimestamp.Before(&first.CreationTimestamp) {
			first = &pods[i]
		}
	}
	return first
}

// demoKinds are the pods the demo creates in turn. A job ends by itself, so that its pod leaves the scheduler's view
// while it still exists.
var demoKinds = []struct {
	app     string
	restart corev1.RestartPolicy
}{
	{"web", corev1.RestartPolicyAlways},
	{"api", corev1.RestartPolicyAlways},
	{"job", corev1.RestartPolicyNever},
}

func (d *Demo) create(ctx context.Context) {
	kind := demoKinds[d.step%len(demoKinds)]
	grace := int64(2)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: kind.app + "-",
			Labels:       map[string]string{"app": kind.app, "demo": "listwatch", "tier": "blue"},
		},
		Spec: corev1.PodSpec{
			RestartPolicy:                 kind.restart,
			TerminationGracePeriodSeconds: &grace,
			Containers: []corev1.Container{{
				Name: kind.app, Image: "example.com/" + kind.app + ":1",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}},
			}},
		},
	}
	_ = d.client.Post().Resource("pods").Namespace(metav1.NamespaceDefault).Body(pod).Do(ctx).Error()
}

// relabel moves a pod between two tiers, and so in and out of the view of watchers that select one.
func (d *Demo) relabel(ctx context.Context, pod *corev1.Pod) {
	tier := "green"
	if pod.Labels["tier"] == tier {
		tier = "blue"
	}
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{"tier":%q}}}`, tier)
	_ = d.client.Patch(types.MergePatchType).Resource("pods").Namespace(pod.Namespace).Name(pod.Name).Body(patch).Do(ctx).Error()
}

func (d *Demo) delete(ctx context.Context, pod *corev1.Pod) {
	_ = d.client.Delete().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).Do(ctx).Error()
}
