// Package apitest helps tests to send requests to an API's handler and to check its responses and errors.
package apitest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

const (
	// PodsPath is the path of the pods in the namespace default.
	PodsPath = "/api/v1/namespaces/default/pods"
	// PodA is the JSON of a pod named a.
	PodA = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","labels":{"app":"web"}},` +
		`"spec":{"containers":[{"name":"c","image":"i:1"}]}}`
)

// Pod returns a valid pod whose label app equals its name.
func Pod(name string, restart corev1.RestartPolicy) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{RestartPolicy: restart, Containers: []corev1.Container{{Name: "c",
			Image: "example.com/c"}}},
	}
}

// API is a handler, and the test that uses it.
type API struct {
	T       testing.TB
	Handler http.Handler
}

// Do sends one request to the handler. headers are pairs of a name and a value.
func (a *API) Do(method, target, body string, headers ...string) *httptest.ResponseRecorder {
	a.T.Helper()
	r := httptest.NewRequestWithContext(a.T.Context(), method, target, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	a.Handler.ServeHTTP(w, r)
	return w
}

// Create posts the JSON of a pod, and ends the test unless the pod is created.
func (a *API) Create(pod string) {
	a.T.Helper()
	w := a.Do("POST", PodsPath, pod)
	require.Equal(a.T, http.StatusCreated, w.Code, "create: got %d %s", w.Code, w.Body)
}

// Into decodes the JSON in body, or ends the test.
func Into[T any](t testing.TB, body io.Reader) T {
	t.Helper()
	var value T
	require.NoError(t, json.NewDecoder(body).Decode(&value), "decode %T", value)
	return value
}

// WantStatus fails the test unless the response is a failure Status with code and reason. It returns the Status.
func WantStatus(t testing.TB, w *httptest.ResponseRecorder, code int, reason metav1.StatusReason) metav1.Status {
	t.Helper()
	text := w.Body.String()
	status := Into[metav1.Status](t, w.Body)
	assert.True(t, w.Code == code && int(status.Code) == code && status.Reason == reason && status.Kind == "Status" &&
		status.Status == metav1.StatusFailure, "got %d %s, want %d %s", w.Code, text, code, reason)
	return status
}

// WantError fails the test unless err is an API error with code and reason. It returns the error's Status.
func WantError(t testing.TB, err error, code int, reason metav1.StatusReason) metav1.Status {
	t.Helper()
	status, ok := err.(apierrors.APIStatus)
	require.True(t, ok, "got %T %v, want a status %d %s", err, err, code, reason)
	got := status.Status()
	assert.True(t, int(got.Code) == code && got.Reason == reason, "got %d %s (%s), want %d %s", got.Code, got.Reason,
		got.Message, code, reason)
	return got
}
