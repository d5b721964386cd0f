package apiserver

import (
	"context"
	"fmt"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	registry "listwatch/chapters/07-registry"
	handlers "listwatch/chapters/08-handlers"
	"listwatch/internal/kube/scheme"
)

// openToAll is why every question for a right is answered with yes.
const openToAll = "listwatch has no authorization: every client may do everything"

// reviews returns the storages of the questions that a client asks about itself: kubectl auth can-i and whoami, k9s.
//
// Differs: everything is allowed, and the user is anonymous.
func reviews() map[string]handlers.Storage {
	storages := map[string]handlers.Storage{}
	add := func(gv schema.GroupVersion, kind string, answer func(runtime.Object)) {
		singular := strings.ToLower(kind)
		storages[singular+"s"] = &review{answer: answer,
			resource: &registry.Resource{GroupVersion: gv, Name: singular + "s", Singular: singular, Kind: kind}}
	}
	add(authorizationv1.SchemeGroupVersion, "SelfSubjectAccessReview", func(obj runtime.Object) {
		obj.(*authorizationv1.SelfSubjectAccessReview).Status =
			authorizationv1.SubjectAccessReviewStatus{Allowed: true, Reason: openToAll}
	})
	add(authorizationv1.SchemeGroupVersion, "SelfSubjectRulesReview", func(obj runtime.Object) {
		all := []string{"*"}
		obj.(*authorizationv1.SelfSubjectRulesReview).Status = authorizationv1.SubjectRulesReviewStatus{
			ResourceRules:    []authorizationv1.ResourceRule{{Verbs: all, APIGroups: all, Resources: all}},
			NonResourceRules: []authorizationv1.NonResourceRule{{Verbs: all, NonResourceURLs: all}},
			EvaluationError:  openToAll,
		}
	})
	add(authenticationv1.SchemeGroupVersion, "SelfSubjectReview", func(obj runtime.Object) {
		obj.(*authenticationv1.SelfSubjectReview).Status.UserInfo =
			authenticationv1.UserInfo{Username: "system:anonymous", Groups: []string{"system:unauthenticated"}}
	})
	return storages
}

// review answers questions of one kind. Nothing is stored.
type review struct {
	resource *registry.Resource
	answer   func(runtime.Object) // fills in the status
}

// Describe returns what is known about the kind.
func (r *review) Describe() *registry.Resource { return r.resource }

// New returns an empty question.
func (r *review) New() runtime.Object {
	obj, err := scheme.Scheme.New(r.resource.GroupVersionKind())
	utilruntime.Must(err)
	return obj
}

// Create answers the question. The error is 400 for one that names neither a resource nor a path.
func (r *review) Create(_ context.Context, _ string, obj runtime.Object,
	_ *metav1.CreateOptions) (runtime.Object, error) {
	if access, ok := obj.(*authorizationv1.SelfSubjectAccessReview); ok {
		resource, path := access.Spec.ResourceAttributes, access.Spec.NonResourceAttributes
		if (resource == nil) == (path == nil) {
			return nil, apierrors.NewBadRequest(
				fmt.Sprintf("a %s asks about either resourceAttributes or nonResourceAttributes", r.resource.Kind))
		}
	}
	r.answer(obj)
	return obj, nil
}

var _ handlers.Creater = (*review)(nil)
