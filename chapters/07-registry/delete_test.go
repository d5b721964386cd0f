package registry

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

func (w *world) delete(name string, options metav1.DeleteOptions) (*corev1.Pod, bool) {
	w.t.Helper()
	out, immediate, err := w.pods.Pod.Delete(w.t.Context(), "default", name, &options)
	require.NoError(w.t, err, "delete %s", name)
	return out.(*corev1.Pod), immediate
}

func TestAPodThatNoKubeletKnowsIsDeletedAtOnce(t *testing.T) {
	for name, edit := range map[string]func(*corev1.Pod){
		"unscheduled": func(*corev1.Pod) {},
		"finished":    onNode,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create(pod("a", edit))
			if name == "finished" {
				w.mustUpdate(w.pods.Status, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
			}
			got, immediate := w.delete("a", metav1.DeleteOptions{})
			assert.True(t, immediate && w.stored() == nil,
				"got immediate %v, stored %v; want the pod gone", immediate, w.stored())
			assert.True(t, got.ResourceVersion != "" && *got.DeletionGracePeriodSeconds == 0,
				"got version %q, grace period %v", got.ResourceVersion, got.DeletionGracePeriodSeconds)
		})
	}
}

func TestARunningPodIsFirstOnlyMarked(t *testing.T) {
	w := newWorld(t)
	w.create(pod("a", onNode))
	got, immediate := w.delete("a", metav1.DeleteOptions{})
	require.True(t, !immediate, "the pod was deleted at once")
	if want := epoch.Add(30 * time.Second); !got.DeletionTimestamp.Time.Equal(want) ||
		*got.DeletionGracePeriodSeconds != 30 || got.Generation != 2 {
		t.Errorf("got deletionTimestamp %v, grace period %d, generation %d; want %v, 30, 2", got.DeletionTimestamp,
			*got.DeletionGracePeriodSeconds, got.Generation, want)
	}
	w.clock.SetTime(epoch.Add(2 * time.Second))
	_, immediate = w.delete("a", metav1.DeleteOptions{GracePeriodSeconds: seconds(0)})
	assert.True(t, immediate && w.stored() == nil, "the kubelet's final delete left the pod there")
}

func TestAGracePeriodCanOnlyBeShortened(t *testing.T) {
	for name, c := range map[string]struct {
		again       *int64
		after       time.Duration
		wantPeriod  int64
		wantSeconds int // of the deletion timestamp, from the first delete
	}{
		"not said":             {nil, 0, 30, 30},
		"longer":               {seconds(60), 0, 30, 30},
		"shorter":              {seconds(10), 2 * time.Second, 10, 10},
		"shorter than is over": {seconds(5), 20 * time.Second, 1, 20},
		"negative":             {seconds(-1), 0, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create(pod("a", onNode))
			w.delete("a", metav1.DeleteOptions{})
			w.clock.SetTime(epoch.Add(c.after))
			got, immediate := w.delete("a", metav1.DeleteOptions{GracePeriodSeconds: c.again})
			require.True(t, !immediate, "the pod was deleted at once")
			want := epoch.Add(time.Duration(c.wantSeconds) * time.Second)
			assert.True(t, *got.DeletionGracePeriodSeconds == c.wantPeriod && got.DeletionTimestamp.Time.Equal(want),
				"got %d, %v; want %d, %v", *got.DeletionGracePeriodSeconds, got.DeletionTimestamp, c.wantPeriod, want)
		})
	}
}

func TestFinalizersHoldAnObjectBackUntilTheLastIsGone(t *testing.T) {
	w := newWorld(t)
	w.create(pod("a", finalized))
	got, immediate := w.delete("a", metav1.DeleteOptions{})
	require.True(t, !immediate && got.DeletionTimestamp != nil && w.stored() != nil,
		"got immediate %v, %+v", immediate, got.ObjectMeta)
	w.mustUpdate(w.pods.Pod, func(p *corev1.Pod) { p.DeletionTimestamp = nil })
	assert.True(t, w.stored().DeletionTimestamp != nil, "an update took the deletion back")
	w.mustUpdate(w.pods.Pod, func(p *corev1.Pod) { p.Finalizers = nil })
	assert.Equal(t, nil, w.stored(), "the pod is still there without finalizers")
}

func TestDeletePreconditionsMustHold(t *testing.T) {
	w := newWorld(t)
	created := w.create(pod("a"))
	other, version := types.UID("other"), "1"
	for name, p := range map[string]*metav1.Preconditions{"uid": {UID: &other},
		"resourceVersion": {ResourceVersion: &version}} {
		t.Run(name, func(t *testing.T) {
			_, _, err := w.pods.Pod.Delete(t.Context(), "default", "a", &metav1.DeleteOptions{Preconditions: p})
			wantStatus(t, err, 409, metav1.StatusReasonConflict)
		})
	}
	right := &metav1.Preconditions{UID: &created.UID, ResourceVersion: &created.ResourceVersion}
	_, immediate := w.delete("a", metav1.DeleteOptions{Preconditions: right})
	assert.True(t, immediate, "fulfilled preconditions: not deleted")
}

func TestAMissingPodIsNotFound(t *testing.T) {
	w := newWorld(t)
	for _, dryRun := range [][]string{nil, {metav1.DryRunAll}} {
		_, _, err := w.pods.Pod.Delete(t.Context(), "default", "a", &metav1.DeleteOptions{DryRun: dryRun})
		wantStatus(t, err, 404, metav1.StatusReasonNotFound)
	}
	_, err := w.update(w.pods.Pod, func(*corev1.Pod) {})
	wantStatus(t, err, 404, metav1.StatusReasonNotFound)
}

// dyingStorage is a storage whose etcd goes away before it erases anything.
type dyingStorage struct{ storage.Interface }

func (dyingStorage) Delete(context.Context, string, runtime.Object, *storage.Preconditions, runtime.Object) error {
	return apierrors.NewTimeoutError("etcd is away", 0)
}

// A deletion takes two writes: the mark, with a grace period of 0 if there is nothing to wait for, and the erasure. The
// process may die between them. Upstream has no goroutine that looks for what is left either: the next write to the pod
// ends it.
//
// Upstream: k8s.io/apiserver/pkg/registry/generic/registry/store.go: (*Store).Update, (*Store).Delete
func TestADeletionThatDiesBetweenItsTwoWritesIsEndedByTheNextWrite(t *testing.T) {
	for name, next := range map[string]func(t *testing.T, w *world, left *corev1.Pod){
		"an update answers with the old version": func(t *testing.T, w *world, left *corev1.Pod) {
			got := require.Value(w.update(w.pods.Pod,
				func(p *corev1.Pod) { p.Labels = map[string]string{"x": "1"} }))(t)
			assert.True(t, got.ResourceVersion == left.ResourceVersion && got.Labels["x"] == "1",
				"got version %s and labels %v, want %s and the new label", got.ResourceVersion, got.Labels,
				left.ResourceVersion)
		},
		"so does an update of the status": func(t *testing.T, w *world, left *corev1.Pod) {
			got, err := w.update(w.pods.Status, func(p *corev1.Pod) { p.Status.Message = "late" })
			assert.True(t, err == nil && got.ResourceVersion == left.ResourceVersion && got.Status.Message == "late",
				"got %+v, %v", got, err)
		},
		"an update that would hold it back is refused, and does not end it": func(t *testing.T, w *world,
			_ *corev1.Pod) {
			_, err := w.update(w.pods.Pod, func(p *corev1.Pod) { p.Finalizers = []string{"example.com/late"} })
			wantStatus(t, err, 422, metav1.StatusReasonInvalid)
			assert.True(t, w.stored() != nil, "the pod is gone")
			w.delete("a", metav1.DeleteOptions{})
		},
		"another deletion": func(t *testing.T, w *world, _ *corev1.Pod) {
			_, immediate := w.delete("a", metav1.DeleteOptions{})
			assert.True(t, immediate, "it was not deleted at once")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create(pod("a"))
			config := w.config(Pods())
			config.Storage = dyingStorage{config.Storage}
			_, _, err := newPodStorage(config).Pod.Delete(t.Context(), "default", "a", &metav1.DeleteOptions{})
			wantStatus(t, err, 504, metav1.StatusReasonTimeout)
			left := w.stored()
			require.True(t, left != nil && left.DeletionTimestamp != nil && *left.DeletionGracePeriodSeconds == 0,
				"between the two writes: got %+v, want it marked, with a grace period of 0", left)
			next(t, w, left)
			got := w.stored()
			assert.True(t, got == nil, "it is still there: %+v", got)
		})
	}
}

// lifecycle is a world in which a client asks for namespaces.
func lifecycle(t *testing.T) (w *world, namespaces *Store, finalize *FinalizeREST) {
	t.Helper()
	w = newWorld(t)
	namespaces = New(w.config(kindOf("namespaces")))
	config := w.config(Pods())
	config.Namespaces = namespaces
	w.pods = newPodStorage(config)
	for _, name := range []string{"default", "other"} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		require.Value(namespaces.Create(t.Context(), "", namespace, &metav1.CreateOptions{}))(t)
	}
	return w, namespaces, NewFinalizeREST(namespaces)
}

func TestNothingIsCreatedInANamespaceThatIsNotThere(t *testing.T) {
	w, _, _ := lifecycle(t)
	w.create(pod("a"))
	_, err := w.pods.Pod.Create(t.Context(), "nowhere", pod("a"), &metav1.CreateOptions{})
	status := wantStatus(t, err, 404, metav1.StatusReasonNotFound)
	assert.Equal(t, `namespaces "nowhere" not found`, status.Message, "message")
}

func TestADeletedNamespaceRefusesContentAndWaitsForItsFinalizer(t *testing.T) {
	w, namespaces, finalize := lifecycle(t)
	out, immediate, err := namespaces.Delete(t.Context(), "", "other", &metav1.DeleteOptions{})
	require.True(t, err == nil && !immediate, "delete: got immediate %v, %v", immediate, err)
	namespace := out.(*corev1.Namespace)
	assert.True(t, namespace.Status.Phase == corev1.NamespaceTerminating && namespace.DeletionTimestamp != nil,
		"got %+v", namespace)
	_, err = w.pods.Pod.Create(t.Context(), "other", pod("a"), &metav1.CreateOptions{})
	status := wantStatus(t, err, 403, metav1.StatusReasonForbidden)
	assert.True(t, len(status.Details.Causes) == 1 && status.Details.Causes[0].Type == corev1.NamespaceTerminatingCause,
		"causes: got %+v", status.Details.Causes)
	// An ordinary update does not reach the finalizers.
	namespace.Spec.Finalizers = nil
	_, _, err = namespaces.Update(t.Context(), "", "other", replacing(namespace), false, &metav1.UpdateOptions{})
	require.NoError(t, err)
	out, err = namespaces.Get(t.Context(), "", "other", &metav1.GetOptions{})
	require.True(t, err == nil && len(out.(*corev1.Namespace).Spec.Finalizers) == 1,
		"after an update: got %+v, %v", out, err)
	namespace = out.(*corev1.Namespace)
	namespace.Spec.Finalizers, namespace.Labels = nil, map[string]string{"not": "here"}
	_, _, err = finalize.Update(t.Context(), "", "other", replacing(namespace), false, &metav1.UpdateOptions{})
	require.NoError(t, err)
	_, err = namespaces.Get(t.Context(), "", "other", &metav1.GetOptions{})
	wantStatus(t, err, 404, metav1.StatusReasonNotFound)
}

func TestTheSystemsNamespacesStay(t *testing.T) {
	_, namespaces, _ := lifecycle(t)
	_, _, err := namespaces.Delete(t.Context(), "", "default", &metav1.DeleteOptions{})
	status := wantStatus(t, err, 403, metav1.StatusReasonForbidden)
	assert.Equal(t, `namespaces "default" is forbidden: this namespace may not be deleted`, status.Message, "message")
}

// TestThePropagationPolicyIsAFinalizer: a garbage collector reads it. A later deletion may change its mind.
func TestThePropagationPolicyIsAFinalizer(t *testing.T) {
	orphan, foreground := metav1.DeletePropagationOrphan, metav1.DeletePropagationForeground
	for name, tt := range map[string]struct {
		options metav1.DeleteOptions
		want    string
	}{
		"orphan":            {metav1.DeleteOptions{PropagationPolicy: &orphan}, metav1.FinalizerOrphanDependents},
		"foreground":        {metav1.DeleteOptions{PropagationPolicy: &foreground}, metav1.FinalizerDeleteDependents},
		"orphan before 1.7": {metav1.DeleteOptions{OrphanDependents: new(true)}, metav1.FinalizerOrphanDependents},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create(pod("a"))
			_, immediate := w.delete("a", tt.options)
			assert.True(t, !immediate, "deleted at once")
			assert.EqualSlices(t, []string{tt.want}, w.stored().Finalizers, "finalizers")
			_, immediate = w.delete("a",
				metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)})
			assert.True(t, immediate, "not deleted in the background")
		})
	}
}
