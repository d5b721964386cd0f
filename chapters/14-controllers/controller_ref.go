package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	kind       schema.GroupVersionKind // the controller's
	apps       *listwatch.RESTClient   // with which it is read
	selector   *metav1.LabelSelector
	resource   string                // of what is claimed
	client     *listwatch.RESTClient // for the resource's group
}

// claim returns those of objs that belong to the controller, after adoptions and releases. An
// object that is gone by then is left out.
func claim[T metav1.Object](ctx context.Context, m *controllerRefManager, objs []T) (claimed []T, err error) {
	if _, err := metav1.LabelSelectorAsSelector(m.selector); err != nil {
		return nil, fmt.Errorf("selector of %s: %w", keyOf(m.controller), err)
	}
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
	owner, matches := controllerOf(obj), selects(m.selector, obj.GetLabels())
	deleting := m.controller.GetDeletionTimestamp() != nil
	switch {
	case owner == m.controller.GetUID() && (matches || deleting):
		return matches, nil
	case owner == m.controller.GetUID():
		err := releaseOwners(ctx, m.client, m.resource, obj, owner)
		if apierrors.IsInvalid(err) { // the server finds no such reference any more
			return false, nil
		}
		return false, err
	case owner != "", deleting, !matches, obj.GetDeletionTimestamp() != nil:
		return false, nil
	}
	if err := m.canAdopt(ctx); err != nil {
		return false, fmt.Errorf("adopt %s: %w", obj.GetName(), err)
	}
	return true, patchMetadata(ctx, m.client, m.resource, types.StrategicMergePatchType, obj, map[string]any{
		"ownerReferences": []any{metav1.NewControllerRef(m.controller, m.kind)}})
}

// canAdopt reads the controller at the server. If it is being deleted, or is another one of that
// name, then what the informer shows is too old to adopt by.
//
// Upstream: k8s.io/kubernetes/pkg/controller/controller_ref_manager.go: RecheckDeletionTimestamp
func (m *controllerRefManager) canAdopt(ctx context.Context) error {
	fresh, name := &unstructured.Unstructured{}, m.controller.GetName()
	err := m.apps.Untyped().Get().Namespace(m.controller.GetNamespace()).
		Resource(strings.ToLower(m.kind.Kind) + "s").Name(name).Do(ctx).Into(fresh)
	if err == nil && (fresh.GetUID() != m.controller.GetUID() || fresh.GetDeletionTimestamp() != nil) {
		err = fmt.Errorf("%s is being deleted, or is another object by now", name)
	}
	return err
}

// controllerOf returns the UID of the controller of an object, "" if it has none.
func controllerOf(obj metav1.Object) types.UID {
	if ref := metav1.GetControllerOfNoCopy(obj); ref != nil {
		return ref.UID
	}
	return ""
}

// releaseOwners takes references to owners, which are merged by UID, out of obj.
func releaseOwners(ctx context.Context, client *listwatch.RESTClient, resource string, obj metav1.Object,
	owners ...types.UID) error {
	var entries []any
	for _, uid := range owners {
		entries = append(entries, map[string]any{"$patch": "delete", "uid": uid})
	}
	return patchMetadata(ctx, client, resource, types.StrategicMergePatchType, obj,
		map[string]any{"ownerReferences": entries})
}

// patchMetadata changes the metadata of obj. Its UID is sent along, so that another object of that
// name is refused.
func patchMetadata(ctx context.Context, client *listwatch.RESTClient, resource string, typ types.PatchType,
	obj metav1.Object, metadata map[string]any) error {
	metadata["uid"] = obj.GetUID()
	body, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return fmt.Errorf("patch %s: %w", keyOf(obj), err)
	}
	return client.Patch(typ).Namespace(obj.GetNamespace()).Resource(resource).Name(obj.GetName()).Body(body).
		Do(ctx).Error()
}
