package apiserver

import (
	"fmt"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

func TestAnEvictionIsADeletion(t *testing.T) {
	a := newAPI(t)
	a.create(podA)
	uid := string(into[corev1.Pod](t, a.do("GET", podsPath+"/a", "").Body).UID)
	evict := func(query, options string) int {
		return a.do("POST", podsPath+"/a/eviction"+query, fmt.Sprintf(`{"apiVersion":"policy/v1","kind":"Eviction",`+
			`"metadata":{"name":"a"},"deleteOptions":%s}`, options)).Code
	}
	assert.Equal(t, 409, evict("", `{"preconditions":{"uid":"other"}}`), "another pod")
	assert.Equal(t, 422, evict("", `{"propagationPolicy":"x"}`), "options of a deletion are checked")
	assert.Equal(t, 201, evict("?dryRun=All", "{}"), "dry")
	require.Equal(t, http.StatusOK, a.do("GET", podsPath+"/a", "").Code, "after a dry run")
	assert.Equal(t, 201, evict("", fmt.Sprintf(`{"preconditions":{"uid":%q}}`, uid)), "the pod")
	assert.Equal(t, http.StatusNotFound, a.do("GET", podsPath+"/a", "").Code, "the pod is still there")
}

func TestABindingOfTheOlderPathNamesItsPodItself(t *testing.T) {
	a := newAPI(t)
	a.create(podA)
	bind := func(node string) (int, *metav1.Status) {
		w := a.do("POST", "/api/v1/namespaces/default/bindings", fmt.Sprintf(`{"apiVersion":"v1","kind":"Binding",`+
			`"metadata":{"name":"a"},"target":{"kind":"Node","name":%q}}`, node))
		status := into[metav1.Status](t, w.Body)
		return w.Code, &status
	}
	code, _ := bind("n1")
	require.Equal(t, 201, code)
	code, status := bind("n2")
	assert.True(t, code == 409 && status.Reason == metav1.StatusReasonConflict, "bound twice: %d %v", code, status)
}
