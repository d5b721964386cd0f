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

// openToAll is the reason in every review.
const openToAll = "listwatch has no authorization: every client may do everything"

// reviews returns the storages of reviews that clients create about themselves, such as kubectl auth can-i and whoami.
//
// Differs: everything is allowed, and the user is anonymous.
func reviews() map[string]handlers.Storage {
	storages := map[string]handlers.Storage{}
	for kind, gv := range map[string]schema.GroupVersion{
		"SelfSubjectAccessReview": authorizationv1.SchemeGroupVersion,
		"SelfSubjectRulesReview":  authorizationv1.SchemeGroupVersion,
		"SelfSubjectReview":       authenticationv1.SchemeGroupVersion,
	} {
		singular := strings.ToLower(kind)
		storages[singular+"s"] = review{
			&registry.Resource{GroupVersion: gv, Name: singular + "s", Kind: kind}}
	}
	return storages
}

// review answers reviews of one kind, and stores none.
type review struct{ resource *registry.Resource }

// Describe returns what is known about the kind.
func (r review) Describe() *registry.Resource { return r.resource }

// New returns an empty review.
func (r review) New() runtime.Object {
	obj, err := scheme.Scheme.New(r.resource.GroupVersion.WithKind(r.resource.Kind))
	utilruntime.Must(err)
	return obj
}

// Create fills in the status. The error is 400 for a review that names neither a resource nor a path.
func (r review) Create(_ context.Context, _ string, obj runtime.Object,
	_ *metav1.CreateOptions) (runtime.Object, error) {
	switch asked := obj.(type) {
	case *authorizationv1.SelfSubjectAccessReview:
		if (asked.Spec.ResourceAttributes == nil) == (asked.Spec.NonResourceAttributes == nil) {
			return nil, apierrors.NewBadRequest(
				fmt.Sprintf("a %s asks about either resourceAttributes or nonResourceAttributes", r.resource.Kind))
		}
		asked.Status = authorizationv1.SubjectAccessReviewStatus{Allowed: true, Reason: openToAll}
	case *authorizationv1.SelfSubjectRulesReview:
		all := []string{"*"}
		asked.Status = authorizationv1.SubjectRulesReviewStatus{
			ResourceRules:    []authorizationv1.ResourceRule{{Verbs: all, APIGroups: all, Resources: all}},
			NonResourceRules: []authorizationv1.NonResourceRule{{Verbs: all, NonResourceURLs: all}},
			EvaluationError:  openToAll,
		}
	case *authenticationv1.SelfSubjectReview:
		asked.Status.UserInfo =
			authenticationv1.UserInfo{Username: "system:anonymous", Groups: []string{"system:unauthenticated"}}
	}
	return obj, nil
}

var _ handlers.Creater = review{}
