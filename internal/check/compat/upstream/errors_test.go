package upstream

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
)

const (
	mapsPath   = "/api/v1/namespaces/default/configmaps"
	eventsPath = "/api/v1/namespaces/default/events"
	tooLarge   = metav1.CauseTypeResourceVersionTooLarge
)

// failure is what a client can see of an error.
type failure struct {
	code       int32
	reason     metav1.StatusReason
	cause      metav1.CauseType // of the first cause; "": none is expected
	field      string           // of the first cause
	retryAfter string           // the header; "some": any number of seconds
	message    string           // a part of it
}

// check compares a Status, and the header that came with it, with what is expected.
func (f failure) check(t *testing.T, status *metav1.Status, retryAfter string) {
	t.Helper()
	assert.True(t, status.Kind == "Status" && status.APIVersion == "v1" && status.Status == metav1.StatusFailure,
		"not a failure: %+v", status)
	assert.True(t, status.Code == f.code && status.Reason == f.reason && strings.Contains(status.Message, f.message),
		"got %d %q %q, want %d %q …%s…", status.Code, status.Reason, status.Message, f.code, f.reason, f.message)
	var cause metav1.StatusCause
	if status.Details != nil && len(status.Details.Causes) > 0 {
		cause = status.Details.Causes[0]
	}
	if f.cause != "" && cause.Type != f.cause || f.field != "" && cause.Field != f.field {
		t.Errorf("got cause %+v, want type %q at %q", cause, f.cause, f.field)
	}
	if f.retryAfter == "some" && retryAfter != "" {
		return
	}
	assert.Equal(t, retryAfter, f.retryAfter, "got Retry-After %q, want %q", retryAfter, f.retryAfter)
}

// answer is a response to the end.
type answer struct {
	code   int
	header http.Header
	body   []byte
}

// ask sends a request; headers are name, value, ...
func ask(t *testing.T, v *program.Viz, method, path, body string, headers ...string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, v.URL+path, strings.NewReader(body))
	require.NoError(t, err)
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.Equal(t, err, nil, "%s %s: %v after %q", method, path, err, text)
	return answer{response.StatusCode, response.Header, text}
}

// status returns the Status in an answer, whose code must be that of the response.
func (a answer) status(t *testing.T) *metav1.Status {
	t.Helper()
	status := &metav1.Status{}
	require.Equal(t, json.Unmarshal(a.body, status), nil, "not a Status: %d %q", a.code, a.body)
	assert.Equal(t, int(status.Code), a.code, "code %d in the response, %d in the Status", a.code, status.Code)
	return status
}

// lastEvent returns the last event of a watch that has ended.
func (a answer) lastEvent(t *testing.T) (event metav1.WatchEvent) {
	t.Helper()
	require.Equal(t, a.code, http.StatusOK, "got %d %s, want a stream", a.code, a.body)
	for decoder := json.NewDecoder(strings.NewReader(string(a.body))); decoder.More(); {
		event = metav1.WatchEvent{}
		err := decoder.Decode(&event)
		require.Equal(t, err, nil, "%v in %q", err, a.body)
	}
	return event
}

// history is a program with a past: the first versions of its objects are in no memory.
type history struct {
	viz   *program.Viz
	old   string // a resource version that is gone from the ring, and compacted in etcd
	token string // of a list at such a version
	lost  string // a resource version after which an event was deleted that no client can read
}

func newHistory(t *testing.T) *history {
	t.Helper()
	etcd := program.StartEtcd(t)
	v := program.StartViz(t, append([]string{"-etcd-endpoints", etcd.Endpoint, "-ring-capacity=100"}, alone...)...)
	client := clientset(t, v).CoreV1()
	for _, name := range []string{"a", "b", "c"} {
		must(client.ConfigMaps("default").Create(t.Context(), configMap(name, "k", "v"), metav1.CreateOptions{}))
	}
	page := must(client.ConfigMaps("default").List(t.Context(), metav1.ListOptions{Limit: 1}))
	for i := range 120 {
		patch := fmt.Appendf(nil, `{"data":{"turn":"%d"}}`, i)
		must(client.ConfigMaps("default").Patch(t.Context(), "b", types.MergePatchType, patch, metav1.PatchOptions{}))
	}
	// A garbled event: events are not cached, so that it harms only the clients that ask for it.
	put := must(etcd.Client.Put(t.Context(), "/registry/events/broken/e", "garbage"))
	must(etcd.Client.Compact(t.Context(), put.Header.Revision))
	lost := must(etcd.Client.Put(t.Context(), "/registry/events/lost/e", "garbage"))
	must(etcd.Client.Delete(t.Context(), "/registry/events/lost/e"))
	return &history{viz: v, old: page.ResourceVersion, token: url.QueryEscape(page.Continue),
		lost: fmt.Sprint(lost.Header.Revision)}
}

// TestErrorsBeforeTheFirstByte is the vocabulary of errors as a client meets it in a response.
func TestErrorsBeforeTheFirstByte(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	const newest = "999999999"
	gone := failure{code: 410, reason: metav1.StatusReasonExpired}
	bad := failure{code: 400, reason: "BadRequest"}
	future := failure{code: 504, reason: metav1.StatusReasonTimeout, cause: tooLarge, retryAfter: "1",
		message: "Too large resource version: " + newest}
	for name, c := range map[string]struct {
		method, path string // "": GET
		body, accept string
		want         failure
	}{
		"list exactly at what is compacted": {path: mapsPath + "?resourceVersionMatch=Exact&resourceVersion=" +
			h.old, want: gone},
		"list on from what is compacted": {path: mapsPath + "?limit=1&continue=" + h.token, want: gone},
		"list not older than the future": {path: mapsPath +
			"?resourceVersionMatch=NotOlderThan&resourceVersion=" + newest, want: future},
		"get not older than the future": {path: mapsPath + "/a?resourceVersion=" + newest, want: future},
		"list at no number": {path: mapsPath + "?resourceVersion=x", want: failure{code: 400,
			reason: "BadRequest", message: "x"}},
		"watch from no number": {path: mapsPath + "?watch=1&resourceVersion=x", want: failure{code: 400,
			reason: "BadRequest", message: "x"}},
		"selector that does not parse": {path: mapsPath + "?labelSelector=a,,b", want: bad},
		"selector of an unknown field": {path: mapsPath + "?fieldSelector=spec.x%3Dy", want: failure{code: 400,
			reason: "BadRequest", message: "spec.x"}},
		"selector of another name": {
			path: "/api/v1/watch/namespaces/default/configmaps/a?fieldSelector=metadata.name%3Db",
			want: failure{code: 400, reason: "BadRequest", message: "doesn't match requested name"}},
		"query that does not parse": {path: mapsPath + "?limit=many", want: bad},
		"watch of what cannot be watched": {path: "/api/v1/namespaces/default/pods/a/binding?watch=1",
			want: failure{code: 405, reason: "MethodNotAllowed"}},
		"watch in YAML": {path: mapsPath + "?watch=1", accept: "application/yaml",
			want: failure{code: 406, reason: "NotAcceptable"}},
		"list in HTML": {path: mapsPath, accept: "text/html", want: failure{code: 406,
			reason: "NotAcceptable"}},
		"object that does not decode": {path: "/api/v1/namespaces/broken/events/e", want: failure{code: 500,
			reason: "InternalError"}},
		"list of what does not decode": {path: "/api/v1/namespaces/broken/events", want: failure{code: 500,
			reason: "InternalError"}},
		"object that is not there": {path: mapsPath + "/none", want: failure{code: 404, reason: "NotFound",
			message: `configmaps "none" not found`}},
		"object that is there": {method: "POST", path: mapsPath,
			body: `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}}`, want: failure{code: 409,
				reason: "AlreadyExists"}},
		"update of an old version": {method: "PUT", path: mapsPath + "/a",
			body: `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"1"}}`,
			want: failure{code: 409, reason: "Conflict"}},
		"delete of another uid": {method: "DELETE", path: mapsPath + "/a",
			body: `{"preconditions":{"uid":"other"}}`, want: failure{code: 409, reason: "Conflict"}},
		"name that is none": {method: "POST", path: mapsPath,
			body: `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"_"}}`, want: failure{code: 422,
				reason: "Invalid", cause: metav1.CauseTypeFieldValueInvalid, field: "metadata.name"}},
		"pod without containers": {method: "POST", path: "/api/v1/namespaces/default/pods",
			body: `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p"}}`, want: failure{code: 422,
				reason: "Invalid", cause: metav1.CauseTypeFieldValueRequired, field: "spec.containers"}},
		"body of another kind": {method: "POST", path: mapsPath,
			body: `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p"}}`, want: bad},
		"body that is no JSON": {method: "POST", path: mapsPath, body: `{`, want: bad},
		"path that is none":    {path: "/api/v1/nosuch", want: failure{code: 404, reason: "NotFound"}},
		"method that is none": {method: "PUT", path: mapsPath, body: `{}`, want: failure{code: 405,
			reason: "MethodNotAllowed"}},
		"body of more than 3 MiB": {method: "POST", path: mapsPath, body: strings.Repeat(" ", 3<<20+1),
			want: failure{code: 413, reason: "RequestEntityTooLarge"}},
		"list with a token never given": {path: mapsPath + "?continue=x", want: bad},
		"list of events that are of the past": {path: eventsPath + "?resourceVersionMatch=Exact&resourceVersion=" +
			h.old, want: gone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			accept := "application/json"
			if c.accept != "" {
				accept = c.accept + ";q=1"
			}
			method := c.method
			if method == "" {
				method = "GET"
			}
			got := ask(t, h.viz, method, c.path, c.body, "Accept", accept, "Content-Type", "application/json")
			if strings.Contains(accept, "yaml") { // which the answer is in, too: its code says enough
				if got.code != int(c.want.code) || !strings.Contains(string(got.body), string(c.want.reason)) {
					t.Errorf("got %d %s", got.code, got.body)
				}
				return
			}
			status := got.status(t)
			c.want.check(t, status, got.header.Get("Retry-After"))
			if strings.Contains(name, "list on from") {
				checkGoesOn(t, h, status.Continue)
			}
		})
	}
}

// checkGoesOn expects of a token that came with a 410 that the list goes on with it behind its first page, as things
// are now: the token's version is -1.
func checkGoesOn(t *testing.T, h *history, token string) {
	t.Helper()
	text, err := base64.RawURLEncoding.DecodeString(token)
	assert.True(t, err == nil && strings.Contains(string(text), `"rv":-1`), "got token %q, %v", text, err)
	list := &metav1.PartialObjectMetadataList{}
	if err := json.Unmarshal(ask(t, h.viz, "GET", mapsPath+"?limit=9&continue="+url.QueryEscape(token), "").body,
		list); err != nil {
		t.Fatal(err)
	}
	assert.True(t, len(list.Items) == 2 && list.Items[0].Name == "b" && list.Items[1].Name == "c",
		"the rest: got %+v", list.Items)
}

// TestErrorsInAStream is the vocabulary of errors that come too late for a response of their own.
func TestErrorsInAStream(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	for name, c := range map[string]struct {
		path string
		want failure
	}{
		"the ring has forgotten": {mapsPath + "?watch=1&resourceVersion=" + h.old, failure{code: 410,
			reason: metav1.StatusReasonExpired, message: "too old resource version"}},
		"etcd has forgotten": {eventsPath + "?watch=1&resourceVersion=" + h.old, failure{code: 410,
			reason: metav1.StatusReasonExpired}},
		"the future, with the state": {mapsPath +
			"?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=999999999",
			failure{code: 504, reason: metav1.StatusReasonTimeout, cause: tooLarge}},
		"the future of what is uncached": {eventsPath +
			"?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=999999999",
			failure{code: 504, reason: metav1.StatusReasonTimeout, cause: tooLarge}},
		"a deleted object that is not to read": {"/api/v1/namespaces/lost/events?watch=1&resourceVersion=" + h.lost,
			failure{code: 500, reason: metav1.StatusReasonStoreReadError, message: "saw a DELETED event, but object " +
				"data is corrupt"}},
		"an object that is not to read": {"/api/v1/namespaces/broken/events?watch=1", failure{code: 500,
			reason: metav1.StatusReasonInternalError}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			last := ask(t, h.viz, "GET", c.path+"&timeoutSeconds=20", "").lastEvent(t)
			require.Equal(t, last.Type, "ERROR", "ended with %s %s", last.Type, last.Object.Raw)
			status := &metav1.Status{}
			require.NoError(t, json.Unmarshal(last.Object.Raw, status))
			c.want.check(t, status, "")
		})
	}
	t.Run("the time is over, which is none", func(t *testing.T) {
		t.Parallel()
		last := ask(t, h.viz, "GET", mapsPath+"?watch=1&timeoutSeconds=5", "").lastEvent(t)
		assert.Equal(t, last.Type, "ADDED", "ended with %s %s", last.Type, last.Object.Raw)
	})
}

// TestACacheThatCannotFillTellsClientsToComeBack garbles an object under a running cache. Its reflector believes in a
// passing weakness of etcd for half a minute; then it lists, which fails, too.
func TestACacheThatCannotFillTellsClientsToComeBack(t *testing.T) {
	t.Parallel()
	etcd := program.StartEtcd(t)
	v := program.StartViz(t, append([]string{"-etcd-endpoints", etcd.Endpoint}, alone...)...)
	open, err := http.Get(v.URL + mapsPath + "?watch=1&allowWatchBookmarks=true")
	if err != nil || open.StatusCode != http.StatusOK {
		t.Fatal(open, err)
	}
	defer open.Body.Close()
	must(etcd.Client.Put(t.Context(), "/registry/configmaps/default/broken", "garbage"))
	// Asked for whatever the cache has: a question about now would have etcd report its progress all the time.
	var refused answer
	program.Eventually(t, 3*patience, func() (bool, string) {
		refused = ask(t, v, "GET", mapsPath+"?resourceVersion=0", "")
		return refused.code != http.StatusOK, "still served"
	})
	want := failure{code: 429, reason: metav1.StatusReasonTooManyRequests, retryAfter: "some"}
	want.check(t, refused.status(t), refused.header.Get("Retry-After"))
	refused = ask(t, v, "GET", mapsPath+"?watch=1", "")
	want.check(t, refused.status(t), refused.header.Get("Retry-After"))
	if said, err := io.ReadAll(open.Body); err != nil || strings.Contains(string(said), "ERROR") {
		t.Errorf("the watch that was open should have ended without a word: got %s, %v", said, err)
	}
	must(etcd.Client.Delete(t.Context(), "/registry/configmaps/default/broken"))
	program.Eventually(t, 3*patience, func() (bool, string) {
		got := ask(t, v, "GET", mapsPath+"?resourceVersion=0", "")
		return got.code == http.StatusOK, fmt.Sprint("after it was taken away: ", got.code)
	})
}
