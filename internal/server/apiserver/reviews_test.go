package apiserver

import (
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"listwatch/internal/check/assert"
)

func TestAClientThatAsksForItsRightsIsToldThatItHasAll(t *testing.T) {
	a := newAPI(t)
	const root = "/apis/authorization.k8s.io/v1/"
	ask := func(spec string) string {
		return `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":` + spec + `}`
	}
	for _, spec := range []string{
		`{"resourceAttributes":{"verb":"list","resource":"pods"}}`,
		`{"nonResourceAttributes":{"verb":"get","path":"/metrics"}}`,
	} {
		w := a.do("POST", root+"selfsubjectaccessreviews", ask(spec))
		review := into[authorizationv1.SelfSubjectAccessReview](t, w.Body)
		assert.True(t, w.Code == 201 && review.Status.Allowed && review.Status.Reason == openToAll,
			"%s: got %d %+v", spec, w.Code, review.Status)
	}
	for _, spec := range []string{`{}`, `{"resourceAttributes":{},"nonResourceAttributes":{}}`} {
		wantStatus(t, a.do("POST", root+"selfsubjectaccessreviews", ask(spec)), 400, metav1.StatusReasonBadRequest)
	}
	w := a.do("POST", root+"selfsubjectrulesreviews", `{"spec":{"namespace":"default"}}`)
	rules := into[authorizationv1.SelfSubjectRulesReview](t, w.Body)
	if w.Code != 201 || len(rules.Status.ResourceRules) != 1 || rules.Status.ResourceRules[0].Verbs[0] != "*" {
		t.Errorf("got %d %+v", w.Code, rules.Status)
	}
	w = a.do("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", `{}`)
	if who := into[authenticationv1.SelfSubjectReview](t, w.Body); who.Status.UserInfo.Username != "system:anonymous" {
		t.Errorf("got %d %+v", w.Code, who.Status)
	}
}
