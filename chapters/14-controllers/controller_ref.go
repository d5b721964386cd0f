package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	listwatch "listwatch/chapters/09-listwatch"
)

// controllerRefManager decides which objects belong to a controller. Labels say which it wants;
// the reference to a controller, of which an object has at most one, says which it has, and only
// that counts. An object without a controller is adopted; one that no longer matches is released.
//
// Upstream: k8s.io/kubernetes/pkg/controller/controller_ref_manager.go: BaseControllerRefManager
// Differs: one type for pods and replica sets.
type controllerRefManager struct {
	controller metav1.Object
	kind       schema.GroupVersionKind // of controller
	plural     string                  // of kind
	apps       *listwatch.RESTClient   // with which it is read
	selector   labels.Selector
	resource   string                // of what is claimed
	client     *listwatch.RESTClient // of the group of resource
}

// claim returns those of objs that belong to the controller, after adoptions and releases. An
// object that is gone by then is left out.
func claim[T metav1.Object](ctx context.Context, m *controllerRefManager, objs []T) (claimed []T, err error) {
	var failures []error
	for _, obj := range objs {
		ours, err := m.claimObject(ctx, obj)
		if err != nil && !apierrors.IsNotFound(err) {
			failures = append(failures, err)
		} else if ours && err == nil {
			claimed = append(claimed, obj)
		}
	}
	return claimed, errors.Join(failures...)
}

// claimObject reports whether obj belongs to the controller.
//
// Upstream: k8s.io/kubernetes/pkg/controller/controller_ref_manager.go: (*BaseControllerRefManager).ClaimObject
func (m *controllerRefManager) claimObject(ctx context.Context, obj metav1.Object) (ours bool, err error) {
	matches := m.selector.Matches(labels.Set(obj.GetLabels()))
	deleting := m.controller.GetDeletionTimestamp() != nil
	ref := metav1.GetControllerOfNoCopy(obj)
	switch {
	case ref != nil && ref.UID != m.controller.GetUID():
		return false, nil
	case ref != nil && matches:
		return true, nil
	case ref != nil && !deleting:
		return false, m.release(ctx, obj)
	case ref != nil, deleting, !matches, obj.GetDeletionTimestamp() != nil:
		return false, nil
	}
	if err := m.canAdopt(ctx); err != nil {
		return false, fmt.Errorf("adopt %s: %w", obj.GetName(), err)
	}
	return true, m.patch(ctx, obj, metav1.NewControllerRef(m.controller, m.kind))
}

// release takes the reference out. If there is none any more, the server says that the patch
// makes no sense, and all is well.
func (m *controllerRefManager) release(ctx context.Context, obj metav1.Object) error {
	err := m.patch(ctx, obj, map[string]any{"$patch": "delete", "uid": m.controller.GetUID()})
	if apierrors.IsInvalid(err) {
		return nil
	}
	return err
}

// patch sends one entry of ownerReferences, which are merged by UID. The UID of obj is sent along,
// so that another object of that name is refused.
func (m *controllerRefManager) patch(ctx context.Context, obj metav1.Object, entry any) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": obj.GetUID(), "ownerReferences": []any{entry}}})
	if err != nil {
		return fmt.Errorf("claim %s: %w", obj.GetName(), err)
	}
	return m.client.Patch(types.StrategicMergePatchType).Namespace(obj.GetNamespace()).Resource(m.resource).
		Name(obj.GetName()).Body(body).Do(ctx).Error()
}

// canAdopt reads the controller at the server. If it is being deleted, or is another one of that
// name, then what the informer shows is too old to adopt by.
//
// Upstream: k8s.io/kubernetes/pkg/controller/controller_ref_manager.go: RecheckDeletionTimestamp
func (m *controllerRefManager) canAdopt(ctx context.Context) error {
	fresh, name := &unstructured.Unstructured{}, m.controller.GetName()
	err := m.apps.Untyped().Get().Namespace(m.controller.GetNamespace()).Resource(m.plural).Name(name).
		Do(ctx).Into(fresh)
	switch {
	case err != nil:
		return err
	case fresh.GetUID() != m.controller.GetUID():
		return fmt.Errorf("%s is another object by now", name)
	case fresh.GetDeletionTimestamp() != nil:
		return fmt.Errorf("%s is being deleted", name)
	}
	return nil
}
