package registry

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/kube/resources"
)

// BindingREST is the binding subresource of pods, by which a scheduler assigns a pod to a node.
// It writes to the pod, and can do so once.
type BindingREST struct {
	Store *Store // of pods
}

// Describe returns what is known about pods.
func (r *BindingREST) Describe() *Resource { return r.Store.Describe() }

// New returns an empty binding.
func (r *BindingREST) New() runtime.Object { return &corev1.Binding{} }

// Create binds the pod name to the node that obj names. Errors: 400 when the names differ, 404 NotFound, 409 Conflict
// when the pod is bound already or is being deleted, 422 when there is no node.
func (r *BindingREST) Create(ctx context.Context, namespace, name string, obj runtime.Object,
	options *metav1.CreateOptions) (runtime.Object, error) {
	binding, ok := obj.(*corev1.Binding)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a Binding object: %#v", obj))
	}
	if binding.Name != name {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("name in URL does not match name in Binding object: %s != %s",
			name, binding.Name))
	}
	if problems := resources.ValidateBinding(binding); len(problems) > 0 {
		return nil, apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Binding").GroupKind(), name, problems)
	}
	key, err := r.Store.resource.Key(namespace, name)
	if err != nil {
		return nil, err
	}
	preconditions := &storage.Preconditions{}
	if binding.UID != "" {
		preconditions.UID = &binding.UID
	}
	if binding.ResourceVersion != "" {
		preconditions.ResourceVersion = &binding.ResourceVersion
	}
	assign := func(current runtime.Object) (runtime.Object, error) { return r.assign(current.(*corev1.Pod), binding) }
	err = r.Store.storage.GuaranteedUpdate(ctx, key, &corev1.Pod{}, false, preconditions, assign,
		isDryRun(options.DryRun))
	if err != nil {
		return nil, storage.InterpretError(err, "create", r.Store.resource.GroupResource(), name)
	}
	return &metav1.Status{Status: metav1.StatusSuccess, Code: 201}, nil
}

// assign is the [storage.UpdateFunc] of a binding.
func (r *BindingREST) assign(pod *corev1.Pod, binding *corev1.Binding) (runtime.Object, error) {
	var reason string
	switch {
	case pod.DeletionTimestamp != nil:
		reason = "is being deleted, cannot be assigned to a host"
	case pod.Spec.NodeName != "":
		reason = fmt.Sprintf("is already assigned to node %q", pod.Spec.NodeName)
	case len(pod.Spec.SchedulingGates) > 0:
		reason = "has non-empty .spec.schedulingGates"
	}
	if reason != "" {
		return nil, apierrors.NewConflict(corev1.Resource("pods/binding"), pod.Name,
			fmt.Errorf("pod %s %s", pod.Name, reason))
	}
	pod.Spec.NodeName = binding.Target.Name
	for key, value := range binding.Annotations {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, key, value)
	}
	resources.SetPodCondition(&pod.Status, corev1.PodCondition{
		Type:               corev1.PodScheduled,
		Status:             corev1.ConditionTrue,
		LastTransitionTime: metav1.NewTime(r.Store.clock.Now()).Rfc3339Copy(),
	})
	return pod, nil
}
