package apiserver

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	etcd3 "listwatch/chapters/02-etcd3"
	registry "listwatch/chapters/07-registry"
	handlers "listwatch/chapters/08-handlers"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/kube/scheme"
	"listwatch/internal/server/mvcc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// api is a whole server half over an etcd in memory, without caches.
type api struct {
	t       testing.TB
	handler http.Handler
}

func newAPI(t testing.TB) *api {
	t.Helper()
	etcd := mvcc.New(clock.RealClock{})
	storages := map[string]handlers.Storage{}
	for _, r := range registry.Resources() {
		codec := require.Value(etcd3.NewCodec(scheme.Codecs, r.GroupVersion, etcd3.MediaTypeProtobuf))(t)
		store, err := etcd3.New(etcd3.Config{
			Client: etcd, Codec: codec, NewFunc: r.NewFunc, ResourcePrefix: r.Prefix,
			Clock: clock.RealClock{},
		})
		require.NoError(t, err)
		maps.Copy(storages, handlers.Storages(registry.Config{Resource: r, Storage: store, Clock: clock.RealClock{}}))
	}
	return &api{t: t, handler: New(Config{Config: handlers.Config{Storage: storages, Clock: clock.RealClock{}}})}
}

// do serves one request. headers come in pairs.
func (a *api) do(method, target, body string, headers ...string) *httptest.ResponseRecorder {
	a.t.Helper()
	r := httptest.NewRequestWithContext(a.t.Context(), method, target, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	a.handler.ServeHTTP(w, r)
	return w
}

const podsPath = "/api/v1/namespaces/default/pods"

const podA = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","labels":{"app":"web"}},` +
	`"spec":{"containers":[{"name":"c","image":"i:1"}]}}`

// create posts a pod and fails the test unless it is created.
func (a *api) create(pod string) {
	a.t.Helper()
	w := a.do("POST", podsPath, pod)
	require.Equal(a.t, http.StatusCreated, w.Code, "create: got %d %s", w.Code, w.Body)
}

// into decodes the answer's JSON.
func into[T any](t testing.TB, body io.Reader) T {
	t.Helper()
	var value T
	require.NoError(t, json.NewDecoder(body).Decode(&value), "decode %T", value)
	return value
}

// wantStatus fails the test unless the answer is a Status with code and reason.
func wantStatus(t testing.TB, w *httptest.ResponseRecorder, code int, reason metav1.StatusReason) metav1.Status {
	t.Helper()
	text := w.Body.String()
	status := into[metav1.Status](t, w.Body)
	assert.True(t, w.Code == code && int(status.Code) == code && status.Reason == reason && status.Kind == "Status" &&
		status.Status == metav1.StatusFailure, "got %d %s, want %d %s", w.Code, text, code, reason)
	return status
}
