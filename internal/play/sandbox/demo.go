package sandbox

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	listwatch "listwatch/chapters/09-listwatch"
	"listwatch/internal/observe/routine"
)

const (
	demoPeriod   = 10 * time.Second // so that each change has been shown before the next
	demoPods     = 4                // how many of its pods the demo keeps alive
	demoSelector = "demo=listwatch"
)

// demo is gentle traffic for a page without a command. Like any client it creates, relabels and deletes pods over HTTP,
// but only its own.
type demo struct {
	*Config // the sandbox's
	client  *listwatch.RESTClient

	rests atomic.Int32 // stories that run

	// Owned by Run.
	step int
	made int // pods so far; the newest one's number
}

// Run makes one change as soon as the server is ready and, if one is awaited, a viewer has come; then one every ten
// seconds until ctx is done, unless it rests.
func (d *demo) Run(ctx context.Context) {
	if d.Pipeline.Server.WaitReady(ctx) != nil {
		return
	}
	if d.Awaited != nil {
		select {
		case <-ctx.Done():
			return
		case <-d.Awaited:
		}
	}
	d.act(ctx)
	routine.Every(ctx, d.Clock, demoPeriod, func(ctx context.Context) {
		if d.rests.Load() == 0 {
			d.act(ctx)
		}
	})
}

// clearDemo deletes the demo's pods, and returns when the informer has seen it, or after a second.
func (s *Sandbox) clearDemo(ctx context.Context) error {
	err := s.deletePods(ctx, func(pod *corev1.Pod) bool { return pod.Labels["demo"] == "listwatch" })
	for n := 0; err == nil && n < 200; n++ {
		theirs := labels.SelectorFromSet(labels.Set{"demo": "listwatch"})
		left := s.config.Pipeline.Client.Pods().Lister().List(theirs)
		if len(left) == 0 {
			break
		}
		err = routine.Sleep(ctx, s.config.Clock, 5*time.Millisecond)
	}
	return err
}

// act lists its pods and makes the next change. It ignores errors: the next act comes soon.
func (d *demo) act(ctx context.Context) {
	var pods corev1.PodList
	list := d.client.Get().Resource("pods").Namespace(metav1.NamespaceDefault)
	list.VersionedParams(&metav1.ListOptions{LabelSelector: demoSelector, ResourceVersion: "0"})
	if list.Do(ctx).Into(&pods) != nil {
		return
	}
	living := slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
	d.step++
	switch {
	case len(living) < demoPods:
		d.made++ // also if a pod of that name exists: the next act tries the next number
		_ = d.client.Post().Resource("pods").Namespace(metav1.NamespaceDefault).Body(demoPod(d.made)).Do(ctx).Error()
	case d.step%2 == 0:
		d.relabel(ctx, &living[d.step%len(living)])
	default:
		oldest := slices.MinFunc(living, func(a, b corev1.Pod) int {
			return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
		})
		_ = d.client.Delete().Resource("pods").Namespace(oldest.Namespace).Name(oldest.Name).Do(ctx).Error()
	}
}

// demoPod returns the n-th pod, n >= 1, of three kinds in turn: web-1, api-2, job-3. A job's pod ends by itself, and so
// leaves the scheduler's selector while it still exists.
func demoPod(n int) *corev1.Pod {
	app := []string{"job", "web", "api"}[n%3]
	restart := corev1.RestartPolicyAlways
	if app == "job" {
		restart = corev1.RestartPolicyNever
	}
	requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%d", app, n), Labels: map[string]string{"app": app, "demo": "listwatch",
				"tier": "blue"},
		},
		Spec: corev1.PodSpec{
			RestartPolicy: restart, TerminationGracePeriodSeconds: new(int64(2)),
			Containers: []corev1.Container{{
				Name: app, Image: "example.com/" + app + ":1", Resources: corev1.ResourceRequirements{
					Requests: requests},
			}},
		},
	}
}

// relabel moves a pod between two tiers, so that it enters and leaves watches that select one.
func (d *demo) relabel(ctx context.Context, pod *corev1.Pod) {
	tier := "green"
	if pod.Labels["tier"] == tier {
		tier = "blue"
	}
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{"tier":%q}}}`, tier)
	request := d.client.Patch(types.MergePatchType).Resource("pods").Namespace(pod.Namespace).Name(pod.Name)
	_ = request.Body(patch).Do(ctx).Error()
}
