package handlers

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	corev1 "k8s.io/api/core/v1"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	registry "listwatch/chapters/07-registry"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/probetest"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
)

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	a := newAPI(t)
	const watchOne = "/api/v1/watch/namespaces/default/pods/b"
	for name, c := range map[string]struct {
		query string // below podsPath, or a path
		field string // of a cause, in a 422 Invalid; "": it is 400 BadRequest
	}{
		"list, match without version": {"?resourceVersionMatch=Exact", "resourceVersionMatch"},
		"list, unknown match":         {"?resourceVersion=1&resourceVersionMatch=About", "resourceVersionMatch"},
		"list, exactly 0":             {"?resourceVersion=0&resourceVersionMatch=Exact", "resourceVersionMatch"},
		"list, match and continue": {"?resourceVersion=1&resourceVersionMatch=Exact&continue=x",
			"resourceVersionMatch"},
		"list, sendInitialEvents":              {"?sendInitialEvents=true", "sendInitialEvents"},
		"list, negative timeout":               {"?timeoutSeconds=-1", "timeoutSeconds"},
		"watch, match alone":                   {"?watch=1&resourceVersionMatch=NotOlderThan", "resourceVersionMatch"},
		"watch, sendInitialEvents alone":       {"?watch=1&sendInitialEvents=true", "resourceVersionMatch"},
		"watch, sendInitialEvents=false alone": {"?watch=1&sendInitialEvents=false", "resourceVersionMatch"},
		"watch, exact": {"?watch=1&sendInitialEvents=true&resourceVersionMatch=Exact",
			"resourceVersionMatch"},
		"watch, match and continue": {"?watch=1&sendInitialEvents=true" +
			"&resourceVersionMatch=NotOlderThan&continue=x", "resourceVersionMatch"},
		"deprecated watch, checked as a list": {"/api/v1/watch/pods?sendInitialEvents=true", "sendInitialEvents"},
		"list, version":                       {"?resourceVersion=x", ""},
		"watch, version":                      {"?watch=1&resourceVersion=x", ""},
		"list, continue":                      {"?continue=x", ""},
		"limit":                               {"?limit=x", ""},
		"label selector":                      {"?labelSelector=a,,b", ""},
		"field selector":                      {"?fieldSelector=a", ""},
		"unknown field":                       {"?fieldSelector=spec.x%3Da", ""},
		"unknown field of a watch":            {"?watch=1&fieldSelector=spec.x%3Da", ""},
		"field of another kind":               {"/api/v1/nodes?fieldSelector=metadata.namespace%3Da", ""},
		"name and another name":               {watchOne + "?fieldSelector=metadata.name%3Da", ""},
		"name and another field":              {watchOne + "?fieldSelector=spec.nodeName%3Da", ""},
		"timeout":                             {"?timeout=x", ""},
		"get, version":                        {podsPath + "/a?resourceVersion=x", ""},
		"table of the wrong kind":             {"?includeObject=Everything", ""},
	} {
		t.Run(name, func(t *testing.T) {
			path, accept := c.query, "application/json"
			if strings.HasPrefix(path, "?") {
				path = podsPath + path
			}
			if strings.Contains(path, "includeObject") {
				accept = tableV1
			}
			w := a.Do("GET", path, "", "Accept", accept)
			if c.field == "" {
				wantStatus(t, w, 400, metav1.StatusReasonBadRequest)
				return
			}
			d := wantStatus(t, w, 422, metav1.StatusReasonInvalid).Details
			assert.True(t, d != nil && len(d.Causes) > 0 && d.Causes[0].Field == c.field && d.Kind == "ListOptions" &&
				d.Group == "meta.k8s.io", "details: got %+v, want ListOptions of meta.k8s.io, for %s", d, c.field)
		})
	}
	wantStatus(t, a.Do("GET", podsPath+"/a", ""), 404, metav1.StatusReasonNotFound)
}

func TestDefaultWatchTimeoutsDiffer(t *testing.T) {
	seen := map[time.Duration]bool{}
	for range 10 {
		timeout := watchTimeout(&metainternalversion.ListOptions{})
		assert.True(t, timeout >= 30*time.Minute && timeout < time.Hour, "got %v, want [30m, 60m)", timeout)
		seen[timeout] = true
	}
	assert.True(t, len(seen) != 1, "ten timeouts are all the same")
	for given, want := range map[int64]time.Duration{5: 5 * time.Second, 1 << 62: 4611686018 * time.Second} {
		assert.Equal(t, want, watchTimeout(&metainternalversion.ListOptions{TimeoutSeconds: &given}),
			"timeoutSeconds=%d", given)
	}
}

const tableV1 = "application/json;as=Table;v=v1;g=meta.k8s.io," +
	"application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"

func TestAListCanBeATable(t *testing.T) {
	a := newAPI(t)
	a.Create(podA)
	for name, c := range map[string]struct {
		query    string
		rowKind  string
		withSpec bool
	}{
		"metadata":   {"", "PartialObjectMetadata", false},
		"none":       {"?includeObject=None", "", false},
		"the object": {"?includeObject=Object", "Pod", true},
	} {
		t.Run(name, func(t *testing.T) {
			table := into[struct {
				metav1.TypeMeta   `json:",inline"`
				metav1.ListMeta   `json:"metadata"`
				ColumnDefinitions []metav1.TableColumnDefinition
				Rows              []struct {
					Cells  []any
					Object *corev1.Pod
				}
			}](t, a.Do("GET", podsPath+c.query, "", "Accept", tableV1).Body)
			assert.True(t, table.Kind == "Table" && table.APIVersion == "meta.k8s.io/v1" &&
				table.ResourceVersion != "", "got %s of %s at %q", table.Kind, table.APIVersion, table.ResourceVersion)
			require.True(t, len(table.ColumnDefinitions) == 9 && len(table.Rows) == 1 && table.Rows[0].Cells[0] == "a",
				"got %d columns and rows %v", len(table.ColumnDefinitions), table.Rows)
			row := table.Rows[0].Object
			if c.rowKind == "" {
				assert.Equal(t, nil, row, "row: got an object")
				return
			}
			assert.True(t, row.Kind == c.rowKind && row.APIVersion != "" && row.Name == "a" &&
				(len(row.Spec.Containers) > 0) == c.withSpec, "row: got %+v", row)
		})
	}
}

func TestAListCanBeMetadataOnly(t *testing.T) {
	a := newAPI(t)
	a.Create(podA)
	list := into[metav1.PartialObjectMetadataList](t, a.Do("GET", podsPath, "", "Accept",
		"application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,"+
			"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1").Body)
	assert.True(t, list.Kind == "PartialObjectMetadataList" && list.ResourceVersion != "" && len(list.Items) == 1 &&
		list.Items[0].Kind == "PartialObjectMetadata" && list.Items[0].Labels["app"] == "web", "got %+v", list)
	one := into[metav1.PartialObjectMetadata](t, a.Do("GET", podsPath+"/a", "", "Accept",
		"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1").Body)
	assert.True(t, one.Kind == "PartialObjectMetadata" && one.Name == "a", "one: got %+v", one)
	wantStatus(t, a.Do("GET", podsPath, "", "Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"),
		406, metav1.StatusReasonNotAcceptable)
}

// YAML has no way to write some characters, as the writer has them: the answer is JSON then, with the same code.
func TestAnAnswerThatYAMLCannotSayIsJSON(t *testing.T) {
	a := newAPI(t)
	created := a.Do("POST", podsPath, strings.Replace(podA, `"web"`, `"web"},"annotations":{"k":"\u0080"`, 1), "Accept",
		"application/yaml")
	renamed := strings.Replace(podA, `"a"`, `"\u0080"`, 1)
	for name, c := range map[string]struct {
		answer *httptest.ResponseRecorder
		code   int
	}{
		"a create":  {created, 201},
		"an object": {a.Do("GET", podsPath+"/a", "", "Accept", "application/yaml"), 200},
		"a list":    {a.Do("GET", podsPath, "", "Accept", "application/yaml"), 200},
		"a refusal": {a.Do("PUT", podsPath+"/a", renamed, "Accept", "application/yaml"), 400},
	} {
		assert.True(t, c.answer.Code == c.code && c.answer.Header().Get("Content-Type") == "application/json" &&
			strings.Contains(c.answer.Body.String(), "\u0080"), "%s: got %d %v %s", name, c.answer.Code,
			c.answer.Header(), c.answer.Body)
	}
}

func TestPathsAndMethodsThatDoNotExistAreStatuses(t *testing.T) {
	a := newAPI(t)
	for _, method := range []string{"GET", "POST"} {
		definitions := a.Do(method, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "{}")
		status := wantStatus(t, definitions, 404, metav1.StatusReasonNotFound)
		assert.True(t, strings.Contains(status.Message, "-server URL"), "%s: got %q", method, status.Message)
	}
	for _, path := range []string{"/nosuch", "/api/v2", "/api/v1/namespaces/default/nodes", "/api/v1/pods/a",
		"/apis/apps/v1/daemonsets", "/api/v1/foo", podsPath + "/a/log"} {
		status := wantStatus(t, a.Do("GET", path, ""), 404, metav1.StatusReasonNotFound)
		assert.True(t, strings.HasPrefix(status.Message, "the server could not find the requested resource; ") &&
			strings.Contains(status.Message, "docs/KINDS.md"), "%s: got %q", path, status.Message)
		assert.True(t, status.Details != nil && status.Details.Name == "",
			"%s: got details %v, want some, of no object", path, status.Details)
	}
	for _, call := range [][2]string{{"POST", "/api/v1/pods"}, {"PUT", podsPath}, {"POST", podsPath + "/a"},
		{"DELETE", podsPath + "/a/status"}, {"GET", podsPath + "/a/binding"}, {"BREW", podsPath}} {
		wantStatus(t, a.Do(call[0], call[1], ""), 405, metav1.StatusReasonMethodNotAllowed)
	}
	assert.Equal(t, http.StatusOK, a.Do("GET", podsPath+"/", "").Code, "a slash at the end")
}

func TestWhatCannotBeReadOrWrittenIsSaidSo(t *testing.T) {
	a := newAPI(t)
	wantStatus(t, a.Do("GET", podsPath, "", "Accept", "text/html"), 406, metav1.StatusReasonNotAcceptable)
	wantStatus(t, a.Do("POST", podsPath, podA, "Content-Type", "text/csv"), 415,
		metav1.StatusReasonUnsupportedMediaType)
	w := a.Do("GET", podsPath+"?watch=1", "", "Accept", "application/yaml")
	assert.True(t, w.Code == 406 && strings.Contains(w.Body.String(), "\nreason: NotAcceptable\n"),
		"a watch in YAML: got %d %s", w.Code, w.Body)
}

// podScope returns the scope of pods.
func podScope(t *testing.T) *Scope {
	t.Helper()
	r := registry.Pods()
	return &Scope{server: &Server{Config: Config{Clock: clock.RealClock{}}}, Resource: r, Storage: stuck{resource: r}}
}

func request(t *testing.T, target string) *http.Request {
	t.Helper()
	ctx := context.WithValue(t.Context(), chi.RouteCtxKey, chi.NewRouteContext())
	return require.Value(http.NewRequestWithContext(ctx, "GET", target, nil))(t)
}

// TestACommitNamesItsRequest requires the request in the record of a commit: so the page knows the viewer's changes.
func TestACommitNamesItsRequest(t *testing.T) {
	a := newAPI(t)
	a.Do("POST", podsPath, podA, "User-Agent", "kubectl/v1.35")
	a.Do("DELETE", podsPath+"/a?gracePeriodSeconds=0", "")
	asked := probetest.Records(a.log, probe.RequestReceived)
	for i, commit := range probetest.Records(a.log, probe.TxnCommitted) {
		assert.Equal(t, asked[min(i, 1)].Seq, uint64(commit.Args[0]), "the request of %s", commit.Type)
	}
	assert.Equal(t, 0, probe.RequestOf(t.Context()), "a context without a request has")
}

func TestAPutMustBeAboutTheObjectOfItsPath(t *testing.T) {
	a := newAPI(t)
	a.Create(podA)
	w := a.Do("PUT", podsPath+"/a", strings.Replace(podA, "web", "db", 1))
	assert.Equal(t, 200, w.Code, "got %d %s", w.Code, w.Body)
	wantStatus(t, a.Do("PUT", podsPath+"/b", podA), 400, metav1.StatusReasonBadRequest)
	wantStatus(t, a.Do("PUT", podsPath+"/a", strings.Replace(podA, `"name":"a"`, `"namespace":"x","name":"a"`, 1)),
		400, metav1.StatusReasonBadRequest)
	wantStatus(t, a.Do("PUT", podsPath+"/b", strings.Replace(podA, `"name":"a"`, `"name":"b"`, 1)), 404,
		metav1.StatusReasonNotFound)
	for _, query := range []string{"dryRun=Some", "fieldValidation=Perhaps"} {
		wantStatus(t, a.Do("PUT", podsPath+"/a?"+query, podA), 422, metav1.StatusReasonInvalid)
	}
}

func TestDeleteTakesItsOptionsFromBodyOrQuery(t *testing.T) {
	const scheduled = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"nodeName":"n1",` +
		`"containers":[{"name":"c","image":"i"}]}}`
	for name, c := range map[string]struct {
		query, body string
		code        int
		grace       int64
	}{
		"nothing":  {"", "", 200, 30},
		"query":    {"?gracePeriodSeconds=7", "", 200, 7},
		"body":     {"", `{"gracePeriodSeconds":7}`, 200, 7},
		"body, v1": {"", `{"apiVersion":"v1","kind":"DeleteOptions","gracePeriodSeconds":7}`, 200, 7},
		"body, meta": {"", `{"apiVersion":"meta.k8s.io/v1","kind":"DeleteOptions","gracePeriodSeconds":7}`, 200,
			7},
		"propagation":     {"", `{"propagationPolicy":"Background"}`, 200, 30},
		"old orphan":      {"", `{"orphanDependents":false}`, 202, 30},
		"bad propagation": {"", `{"propagationPolicy":"Sideways"}`, 422, 0},
		"bad body":        {"", `[`, 400, 0},
		"another kind":    {"", scheduled, 400, 0},
		"precondition":    {"", `{"preconditions":{"uid":"other"}}`, 409, 0},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t)
			a.Create(scheduled)
			w := a.Do("DELETE", podsPath+"/a"+c.query, c.body)
			require.Equal(t, c.code, w.Code, "got %d %s, want %d", w.Code, w.Body, c.code)
			if c.grace == 0 {
				return
			}
			pod := into[corev1.Pod](t, w.Body)
			assert.True(t, pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds == c.grace,
				"got %+v, want a grace period of %d", pod.ObjectMeta, c.grace)
		})
	}
}

func TestDeleteCollectionDeletesWhatIsSelected(t *testing.T) {
	a := newAPI(t)
	a.Create(podA)
	a.Create(strings.NewReplacer(`"a"`, `"b"`, "web", "db").Replace(podA))
	w := a.Do("DELETE", podsPath+"?labelSelector=app%3Dweb", "")
	require.Equal(t, 200, w.Code, "got %d %s", w.Code, w.Body)
	left := into[corev1.PodList](t, a.Do("GET", podsPath, "").Body)
	assert.True(t, len(left.Items) == 1 && left.Items[0].Name == "b", "left: got %+v", left.Items)
}
