package apiserver

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/utils/clock"

	etcd3 "listwatch/chapters/02-etcd3"
	registry "listwatch/chapters/07-registry"
	handlers "listwatch/chapters/08-handlers"
	"listwatch/internal/check/apitest"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/kube/scheme"
	"listwatch/internal/server/mvcc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// api is a whole API server, without caches, over an etcd in memory.
type api struct{ apitest.API }

func newAPI(t testing.TB) *api {
	t.Helper()
	etcd := mvcc.New(clock.RealClock{})
	storages := map[string]handlers.Storage{}
	for _, r := range registry.Resources() {
		codec := require.Value(etcd3.NewCodec(scheme.Codecs, r.GroupVersion, etcd3.MediaTypeProtobuf))(t)
		store := require.Value(etcd3.New(etcd3.Config{
			Client: etcd, Codec: codec, NewFunc: r.NewFunc, ResourcePrefix: r.Prefix,
			Clock: clock.RealClock{}}))(t)
		maps.Copy(storages, handlers.Storages(registry.Config{Resource: r, Storage: store, Clock: clock.RealClock{}}))
	}
	return &api{apitest.API{T: t, Handler: New(Config{Config: handlers.Config{Storage: storages,
		Clock: clock.RealClock{}}})}}
}

const podsPath, podA = apitest.PodsPath, apitest.PodA

var wantStatus = apitest.WantStatus

func into[T any](t testing.TB, body io.Reader) T { return apitest.Into[T](t, body) }

const (
	mergeType = "application/merge-patch+json"
	logPath   = podsPath + "/a/log"
	notReal   = "this container is not real: nothing runs here, and the status of its pod is all that is known\n"
)

// bound creates pod a, binds it, and sets the state of its container.
func (a *api) bound(state string) {
	a.Create(podA)
	w := a.Do("POST", podsPath+"/a/binding", `{"apiVersion":"v1","kind":"Binding","metadata":{"name":"a"},`+
		`"target":{"kind":"Node","name":"n1"}}`)
	require.Equal(a.T, 201, w.Code, w.Body)
	a.state(state)
}

func (a *api) state(state string) {
	w := a.Do("PATCH", podsPath+"/a/status", `{"status":{"containerStatuses":[{"name":"c","image":"i:1","imageID":"",`+
		`"ready":true,"restartCount":0,"state":`+state+`}]}}`, "Content-Type", mergeType)
	require.Equal(a.T, 200, w.Code, w.Body)
}

const (
	running = `{"running":{"startedAt":"2026-01-01T00:00:00Z"}}`
	ended   = `{"running":null,"terminated":{"exitCode":0,"reason":"Completed","startedAt":"2026-01-01T00:00:00Z",` +
		`"finishedAt":"2026-01-01T00:00:10Z"}}`
)

// TestALogIsMadeOfThePodsStatus also checks the statuses of errors, which are upstream's.
func TestALogIsMadeOfThePodsStatus(t *testing.T) {
	a := newAPI(t)
	assert.Equal(t, 404, a.Do("GET", logPath, "").Code, "no pod")
	a.Create(podA)
	w := a.Do("GET", logPath, "")
	assert.True(t, w.Code == 200 && w.Body.Len() == 0, "without a node: %d %s", w.Code, w.Body)
	a.Do("DELETE", podsPath+"/a", "")
	a.bound(`{"waiting":{"reason":"ContainerCreating"}}`)
	w = a.Do("GET", logPath, "")
	assert.True(t, w.Code == 400 && strings.Contains(w.Body.String(), "is waiting to start: ContainerCreating"),
		"waiting: %d %s", w.Code, w.Body)
	a.state(`{"waiting":null,` + running[1:])
	started := "c: image i:1 started on n1\n"
	for query, want := range map[string]string{
		"":                             notReal + started,
		"?container=c":                 notReal + started,
		"?tailLines=1":                 started,
		"?tailLines=0":                 "",
		"?tailLines=1&timestamps=true": "2026-01-01T00:00:00Z " + started,
	} {
		w := a.Do("GET", logPath+query, "")
		assert.True(t, w.Code == 200 && w.Body.String() == want && w.Header().Get("Content-Type") == "text/plain",
			"%s: got %d %q, want %q", query, w.Code, w.Body, want)
	}
	for query, code := range map[string]int{
		"?container=d": 400, "?previous=true": 400, "?tailLines=x": 400, "?tailLines=-1": 422,
	} {
		assert.Equal(t, code, a.Do("GET", logPath+query, "").Code, query)
	}
	a.Create(strings.NewReplacer(`"name":"a"`, `"name":"two"`, `"containers":[`,
		`"containers":[{"name":"d","image":"i:1"},`).Replace(podA))
	a.Do("POST", podsPath+"/two/binding", `{"apiVersion":"v1","kind":"Binding","metadata":{"name":"two"},`+
		`"target":{"kind":"Node","name":"n1"}}`)
	w = a.Do("GET", podsPath+"/two/log", "")
	assert.True(t, w.Code == 400 && strings.Contains(w.Body.String(), "choose one of: [d c]"), "%d %s", w.Code, w.Body)
}

// TestALogIsFollowedUntilTheContainerHasEnded also expects an end when the pod is deleted or the client disconnects.
func TestALogIsFollowedUntilTheContainerHasEnded(t *testing.T) {
	for name, end := range map[string]func(a *api, leave func()){
		"ended": func(a *api, _ func()) { a.state(ended) },
		"gone":  func(a *api, _ func()) { a.Do("DELETE", podsPath+"/a?gracePeriodSeconds=0", "") },
		"left":  func(_ *api, leave func()) { leave() },
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t)
			a.bound(running)
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			begun := make(chan struct{})
			w := &flushed{httptest.NewRecorder(), begun}
			done := make(chan struct{})
			go func() {
				defer close(done)
				a.Handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", logPath+"?follow=true", http.NoBody))
			}()
			<-begun
			end(a, leave)
			<-done
			want := notReal + "c: image i:1 started on n1\n"
			if name == "ended" {
				want += "c: ended with exit code 0 (Completed)\n"
			}
			assert.Equal(t, want, w.Body.String())
		})
	}
}

// flushed is a recorder that reports its first flush.
type flushed struct {
	*httptest.ResponseRecorder
	first chan struct{} // closed by the first Flush; nothing is sent
}

func (f *flushed) Flush() {
	if f.first != nil {
		close(f.first)
		f.first = nil
	}
}

// TestAMissingSubresourceIsNamed checks the sentence that kubectl prints.
func TestAMissingSubresourceIsNamed(t *testing.T) {
	a := newAPI(t)
	for path, want := range map[string]string{
		podsPath + "/a/exec":        "there is no pods/exec here",
		podsPath + "/a/portforward": "there is no pods/portforward here",
		"/api/v1/namespaces/default/replicationcontrollers/a/scale": "there is no replicationcontrollers/scale here",
		"/api/v1/nodes/n/proxy":                           "there is no nodes/proxy here",
		"/apis/batch/v1/namespaces/default/jobs/a/status": "kubectl api-resources",
	} {
		w := a.Do("GET", path, "")
		assert.True(t, w.Code == 404 && strings.Contains(w.Body.String(), want), "%s: got %d %s", path, w.Code, w.Body)
	}
}
