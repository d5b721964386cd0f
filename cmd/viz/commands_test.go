package main

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"listwatch/internal/check/eventually"
	"listwatch/internal/check/require"
)

// A page that goes away while etcd restarts must not leave etcd down.
func TestEtcdIsUpAgainWhenThePageHasGone(t *testing.T) {
	t.Parallel()
	p := start(t, "-demo=false", "-controllers=false", "-flight=off")
	for n, patience := range []time.Duration{2 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+"/viz/knobs",
			strings.NewReader(`{"name":"etcd.restart"}`))
		require.NoError(t, err)
		request.Header.Set("Content-Type", "application/json")
		if answer, err := http.DefaultClient.Do(request); err == nil {
			answer.Body.Close()
		}
		cancel()
		eventually.Holds(t, "a pod can be created again", func() bool {
			code, _ := p.post(t, "/api/v1/namespaces/default/pods", `{"metadata":{"name":"a`+string(rune('0'+n))+
				`"},"spec":{"containers":[{"name":"c","image":"i"}]}}`)
			return code == http.StatusCreated
		})
	}
	p.end(t)
}

// Nothing that is asked of the page is the server's fault.
func TestNoCommandOfThePageAnswers500(t *testing.T) {
	t.Parallel()
	p := start(t, "-demo=false", "-controllers=false", "-flight=off")
	for _, command := range []struct{ path, body string }{
		{"/viz/watchers", `{"resource":"a/b"}`}, {"/viz/watchers", `{"resource":"cars"}`}, {"/viz/watchers",
			`{"resource":"../nodes"}`},
		{"/viz/watchers", `{"namespace":".."}`}, {"/viz/watchers", `{"namespace":"%"}`}, {"/viz/watchers",
			`{"resourceVersion":"x"}`},
		{"/viz/watchers", `{"fieldSelector":"spec.colour=blue"}`}, {"/viz/watchers", `{"timeoutSeconds":-1}`},
		{"/viz/watchers", `{"watchList":true,"resource":"events"}`},
		{"/viz/knobs", `{"name":"line.cut","target":"` + strings.Repeat("x", 10_000) + `","value":"true"}`},
		{"/viz/knobs", `{"name":"line.drop","target":"a"}`},
		{"/viz/knobs", `{"name":"ring.capacity","target":"events","value":"5"}`}, {"/viz/knobs",
			`{"name":"switch","target":"clock","value":"manual"}`},
		{"/viz/knobs", `{"name":"handler.add","target":"\u0000"}`}, {"/viz/scenario/none", ""}, {"/viz/scenario/..",
			""},
	} {
		if code, body := p.post(t, command.path, command.body); code >= http.StatusInternalServerError {
			t.Errorf("%s %.60s: %d, %s", command.path, command.body, code, body)
		}
	}
	p.end(t)
}
