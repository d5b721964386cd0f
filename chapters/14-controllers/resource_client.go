package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	listwatch "listwatch/chapters/09-listwatch"
	processor "listwatch/chapters/12-processor"
)

// resourceClient reads and writes the objects of one kind.
type resourceClient struct {
	client *listwatch.RESTClient // for its group
	name   string                // "pods"
}

// at completes a request: it is for obj.
func (r resourceClient) at(request *listwatch.Request, obj metav1.Object) *listwatch.Request {
	return request.Namespace(obj.GetNamespace()).Resource(r.name).Name(obj.GetName())
}

// get reads an object at the server; nil if there is none with that UID.
func (r resourceClient) get(ctx context.Context, namespace, name string, uid types.UID) (metav1.Object, error) {
	obj := &unstructured.Unstructured{}
	err := r.client.Untyped().Get().Namespace(namespace).Resource(r.name).Name(name).Do(ctx).Into(obj)
	if apierrors.IsNotFound(err) || err == nil && obj.GetUID() != uid {
		return nil, nil
	}
	return obj, err
}

// write creates obj, which then has no UID, or writes it, or its subresource, in the version that was looked at; if the
// server has a newer one, the error is 409 Conflict. obj becomes what the server answers with.
func (r resourceClient) write(ctx context.Context, obj processor.Object, subresource string) error {
	request := r.client.Post().Namespace(obj.GetNamespace()).Resource(r.name)
	if obj.GetUID() != "" {
		request = r.at(r.client.Put(), obj).SubResource(subresource)
	}
	return request.Body(obj).Do(ctx).Into(obj)
}

// delete deletes an object in the version that was looked at: what was decided about may be another state by now.
// Then the server answers 409 Conflict, and the next look decides again.
func (r resourceClient) delete(ctx context.Context, obj metav1.Object, policy metav1.DeletionPropagation) error {
	options := &metav1.DeleteOptions{PropagationPolicy: &policy, Preconditions: &metav1.Preconditions{
		UID: new(obj.GetUID()), ResourceVersion: new(obj.GetResourceVersion())}}
	return r.at(r.client.Delete(), obj).Body(options).Do(ctx).Error()
}

// patch replaces one list in the metadata of an object, in the version that was looked at.
//
// Differs: upstream adopts and releases in any version, by a strategic merge patch.
func (r resourceClient) patch(ctx context.Context, obj metav1.Object, field string, list any) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": obj.GetUID(),
		"resourceVersion": obj.GetResourceVersion(), field: list}})
	if err != nil {
		return fmt.Errorf("patch %s: %w", keyOf(obj), err)
	}
	return r.at(r.client.Patch(types.MergePatchType), obj).Body(body).Do(ctx).Error()
}

// release takes the references to owners out of obj.
func (r resourceClient) release(ctx context.Context, obj metav1.Object, owners ...types.UID) error {
	left := slices.DeleteFunc(slices.Clone(obj.GetOwnerReferences()), func(ref metav1.OwnerReference) bool {
		return slices.Contains(owners, ref.UID)
	})
	return ignoreGone(r.patch(ctx, obj, "ownerReferences", left))
}

// removeFinalizers takes finalizers off obj, which may let it go.
func (r resourceClient) removeFinalizers(ctx context.Context, obj metav1.Object, finalizers ...string) error {
	left := slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(each string) bool {
		return slices.Contains(finalizers, each)
	})
	return r.patch(ctx, obj, "finalizers", left)
}

// ignoreGone leaves out errors after which nothing is to be done: what was looked at has been
// deleted, or nothing can be created any more.
func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil
	}
	return err
}
