package apiserver

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

const (
	mergeType = "application/merge-patch+json"
	logPath   = podsPath + "/a/log"
	notReal   = "this container is not real: nothing runs here, and the status of its pod is all that is known\n"
)

// bound creates the pod a, binds it, and gives its container that state.
func (a *api) bound(state string) {
	a.create(podA)
	w := a.do("POST", podsPath+"/a/binding", `{"apiVersion":"v1","kind":"Binding","metadata":{"name":"a"},`+
		`"target":{"kind":"Node","name":"n1"}}`)
	require.Equal(a.t, 201, w.Code, w.Body)
	a.state(state)
}

func (a *api) state(state string) {
	w := a.do("PATCH", podsPath+"/a/status", `{"status":{"containerStatuses":[{"name":"c","image":"i:1","imageID":"",`+
		`"ready":true,"restartCount":0,"state":`+state+`}]}}`, "Content-Type", mergeType)
	require.Equal(a.t, 200, w.Code, w.Body)
}

const (
	running = `{"running":{"startedAt":"2026-01-01T00:00:00Z"}}`
	ended   = `{"running":null,"terminated":{"exitCode":0,"reason":"Completed","startedAt":"2026-01-01T00:00:00Z",` +
		`"finishedAt":"2026-01-01T00:00:10Z"}}`
)

// TestALogIsMadeOfThePodsStatus, with upstream's codes.
func TestALogIsMadeOfThePodsStatus(t *testing.T) {
	a := newAPI(t)
	assert.Equal(t, 404, a.do("GET", logPath, "").Code, "no pod")
	a.create(podA)
	w := a.do("GET", logPath, "")
	assert.True(t, w.Code == 200 && w.Body.Len() == 0, "without a node: %d %s", w.Code, w.Body)
	a.do("DELETE", podsPath+"/a", "")
	a.bound(`{"waiting":{"reason":"ContainerCreating"}}`)
	w = a.do("GET", logPath, "")
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
		w := a.do("GET", logPath+query, "")
		assert.True(t, w.Code == 200 && w.Body.String() == want && w.Header().Get("Content-Type") == "text/plain",
			"%s: got %d %q, want %q", query, w.Code, w.Body, want)
	}
	for query, code := range map[string]int{
		"?container=d": 400, "?previous=true": 400, "?tailLines=x": 400, "?tailLines=-1": 422,
	} {
		assert.Equal(t, code, a.do("GET", logPath+query, "").Code, query)
	}
	a.create(strings.NewReplacer(`"name":"a"`, `"name":"two"`, `"containers":[`,
		`"containers":[{"name":"d","image":"i:1"},`).Replace(podA))
	a.do("POST", podsPath+"/two/binding", `{"apiVersion":"v1","kind":"Binding","metadata":{"name":"two"},`+
		`"target":{"kind":"Node","name":"n1"}}`)
	w = a.do("GET", podsPath+"/two/log", "")
	assert.True(t, w.Code == 400 && strings.Contains(w.Body.String(), "choose one of: [d c]"), "%d %s", w.Code, w.Body)
}

// TestALogIsFollowedUntilTheContainerHasEnded, or its client is gone, or its pod.
func TestALogIsFollowedUntilTheContainerHasEnded(t *testing.T) {
	for name, end := range map[string]func(a *api, leave func()){
		"ended": func(a *api, _ func()) { a.state(ended) },
		"gone":  func(a *api, _ func()) { a.do("DELETE", podsPath+"/a?gracePeriodSeconds=0", "") },
		"left":  func(_ *api, leave func()) { leave() },
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t)
			a.bound(running)
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			w, begun := newFlushed(), make(chan struct{})
			w.first = begun
			done := make(chan struct{})
			go func() {
				defer close(done)
				a.handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", logPath+"?follow=true", http.NoBody))
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

// flushed is a recorder that says when it is flushed for the first time.
type flushed struct {
	*httptest.ResponseRecorder
	first chan struct{} // closed by the first Flush; nothing is sent
}

func newFlushed() *flushed { return &flushed{ResponseRecorder: httptest.NewRecorder()} }

func (f *flushed) Flush() {
	if f.first != nil {
		close(f.first)
		f.first = nil
	}
}

// TestAMissingSubresourceIsNamed, in the sentence that kubectl prints.
func TestAMissingSubresourceIsNamed(t *testing.T) {
	a := newAPI(t)
	for path, want := range map[string]string{
		podsPath + "/a/exec":        "there is no pods/exec here",
		podsPath + "/a/portforward": "there is no pods/portforward here",
		"/api/v1/namespaces/default/replicationcontrollers/a/scale": "there is no replicationcontrollers/scale here",
		"/api/v1/nodes/n/proxy":                           "there is no nodes/proxy here",
		"/apis/batch/v1/namespaces/default/jobs/a/status": "kubectl api-resources",
	} {
		w := a.do("GET", path, "")
		assert.True(t, w.Code == 404 && strings.Contains(w.Body.String(), want), "%s: got %d %s", path, w.Code, w.Body)
	}
}
