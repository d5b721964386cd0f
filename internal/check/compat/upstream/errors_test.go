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
	assert.True(t, f.cause == "" || cause.Type == f.cause, "got cause %+v, want type %q", cause, f.cause)
	if f.retryAfter == "some" && retryAfter != "" {
		return
	}
	assert.Equal(t, f.retryAfter, retryAfter, "got Retry-After %q, want %q", retryAfter, f.retryAfter)
}

// answer is a response to the end.
type answer struct {
	code   int
	header http.Header
	body   []byte
}

// ask reads what is at a path, to the end.
func ask(t *testing.T, v *program.Viz, path string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, v.URL+path, nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err, "GET %s, after %q", path, text)
	return answer{response.StatusCode, response.Header, text}
}

// status returns the Status in an answer, whose code must be that of the response.
func (a answer) status(t *testing.T) *metav1.Status {
	t.Helper()
	status := &metav1.Status{}
	require.Equal(t, nil, json.Unmarshal(a.body, status), "not a Status: %d %q", a.code, a.body)
	assert.Equal(t, a.code, int(status.Code), "code %d in the response, %d in the Status", a.code, status.Code)
	return status
}

// lastEvent returns the last event of a watch that has ended.
func (a answer) lastEvent(t *testing.T) (event metav1.WatchEvent) {
	t.Helper()
	require.Equal(t, http.StatusOK, a.code, "got %d %s, want a stream", a.code, a.body)
	for decoder := json.NewDecoder(strings.NewReader(string(a.body))); decoder.More(); {
		event = metav1.WatchEvent{}
		err := decoder.Decode(&event)
		require.Equal(t, nil, err, "%v in %q", err, a.body)
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

// TestErrorsBeforeTheFirstByte is what a client is told, in a response, of what etcd has forgotten, will know later, or
// cannot be read. What is wrong with requests themselves is told in chapters 7 and 8.
func TestErrorsBeforeTheFirstByte(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	const newest = "999999999"
	gone := failure{code: 410, reason: metav1.StatusReasonExpired}
	future := failure{code: 504, reason: metav1.StatusReasonTimeout, cause: tooLarge, retryAfter: "1",
		message: "Too large resource version: " + newest}
	unread := failure{code: 500, reason: metav1.StatusReasonInternalError}
	for name, c := range map[string]struct {
		path string
		want failure
	}{
		"list exactly at what is compacted": {mapsPath + "?resourceVersionMatch=Exact&resourceVersion=" + h.old, gone},
		"list on from what is compacted":    {mapsPath + "?limit=1&continue=" + h.token, gone},
		"list of events that are of the past": {eventsPath + "?resourceVersionMatch=Exact&resourceVersion=" + h.old,
			gone},
		"list not older than the future": {mapsPath + "?resourceVersionMatch=NotOlderThan&resourceVersion=" + newest,
			future},
		"get not older than the future": {mapsPath + "/a?resourceVersion=" + newest, future},
		"object that does not decode":   {"/api/v1/namespaces/broken/events/e", unread},
		"list of what does not decode":  {"/api/v1/namespaces/broken/events", unread},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ask(t, h.viz, c.path)
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
	if err := json.Unmarshal(ask(t, h.viz, mapsPath+"?limit=9&continue="+url.QueryEscape(token)).body,
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
			last := ask(t, h.viz, c.path+"&timeoutSeconds=20").lastEvent(t)
			require.Equal(t, "ERROR", last.Type, "ended with %s %s", last.Type, last.Object.Raw)
			status := &metav1.Status{}
			require.NoError(t, json.Unmarshal(last.Object.Raw, status))
			c.want.check(t, status, "")
		})
	}
	t.Run("the time is over, which is none", func(t *testing.T) {
		t.Parallel()
		last := ask(t, h.viz, mapsPath+"?watch=1&timeoutSeconds=5").lastEvent(t)
		assert.Equal(t, "ADDED", last.Type, "ended with %s %s", last.Type, last.Object.Raw)
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
		refused = ask(t, v, mapsPath+"?resourceVersion=0")
		return refused.code != http.StatusOK, "still served"
	})
	want := failure{code: 429, reason: metav1.StatusReasonTooManyRequests, retryAfter: "some"}
	want.check(t, refused.status(t), refused.header.Get("Retry-After"))
	refused = ask(t, v, mapsPath+"?watch=1")
	want.check(t, refused.status(t), refused.header.Get("Retry-After"))
	if said, err := io.ReadAll(open.Body); err != nil || strings.Contains(string(said), "ERROR") {
		t.Errorf("the watch that was open should have ended without a word: got %s, %v", said, err)
	}
	must(etcd.Client.Delete(t.Context(), "/registry/configmaps/default/broken"))
	program.Eventually(t, 3*patience, func() (bool, string) {
		got := ask(t, v, mapsPath+"?resourceVersion=0")
		return got.code == http.StatusOK, fmt.Sprint("after it was taken away: ", got.code)
	})
}
