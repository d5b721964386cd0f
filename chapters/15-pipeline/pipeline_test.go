package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/client/v3/kubernetes"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/clock"

	etcd3 "listwatch/chapters/02-etcd3"
	registry "listwatch/chapters/07-registry"
	handlers "listwatch/chapters/08-handlers"
	listwatch "listwatch/chapters/09-listwatch"
	"listwatch/internal/check/apitest"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/probetest"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
	"listwatch/internal/server/apiserver"
	"listwatch/internal/server/mvcc"
	"listwatch/internal/server/pipenet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a whole pipeline in a bubble: the small etcd below it, pipes instead of sockets in its middle.
type world struct {
	*Pipeline
	client *listwatch.RESTClient // the reader's kubectl
	log    *probe.Log
	stop   func() // ends everything and returns when it has ended
}

// inWorld runs body in a bubble with a running pipeline.
func inWorld(t *testing.T, change func(*ServerConfig, *ClientConfig), body func(t *testing.T, w *world)) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, change)
		defer w.stop()
		require.NoError(t, w.WaitReady(t.Context()))
		synctest.Wait()
		body(t, w)
	})
}

func newWorld(t *testing.T, change func(*ServerConfig, *ClientConfig)) *world {
	t.Helper()
	clk := clock.RealClock{} // the bubble's
	log := probe.NewLog(clk, 1<<16)
	var network pipenet.Network
	httpClient := network.Client()
	base := &url.URL{Scheme: "http", Host: "pipe"}
	serverConfig := ServerConfig{Client: mvcc.New(clk), Handler: apiserver.Handler(nil), Clock: clk,
		Probe: probe.New(log), UseWatchList: true}
	clientConfig := ClientConfig{Base: base, HTTP: httpClient, Clock: clk, Probe: probe.New(log), UseWatchList: true,
		Controllers: Controllers}
	if change != nil {
		change(&serverConfig, &clientConfig)
	}
	server := require.Value(NewServer(serverConfig))(t)
	clientConfig.Registry = server.Registry()
	client := require.Value(NewClient(clientConfig))(t)
	w := &world{Pipeline: &Pipeline{Server: server, Client: client}, log: log}
	w.client = listwatch.NewRESTClient(listwatch.Config{Base: base, HTTP: httpClient, Clock: clk, QPS: -1,
		UserAgent: "test"})
	stop := bubble.Go(t, "pipeline.Run", func(ctx context.Context) {
		w.Run(ctx, func(ctx context.Context) { network.Serve(ctx, server.Handler(), func(err error) { t.Error(err) }) })
	})
	w.stop = func() {
		httpClient.CloseIdleConnections()
		stop()
	}
	return w
}

func (w *world) create(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	require.NoError(t, w.client.Post().Namespace("default").Resource("pods").Body(pod).Do(t.Context()).Error())
}

// get returns a pod, or nil if there is none.
func (w *world) get(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	err := w.client.Get().Namespace("default").Resource("pods").Name(name).Do(t.Context()).Into(pod)
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(t, err)
	return pod
}

// slowEtcd takes a moment to list, so that the caches of the server half take one to be ready.
type slowEtcd struct{ *mvcc.Store }

func (e slowEtcd) List(ctx context.Context, prefix string, opts kubernetes.ListOptions) (kubernetes.ListResponse,
	error) {
	time.Sleep(100 * time.Millisecond)
	return e.Store.List(ctx, prefix, opts)
}

// TestNoClientIsSentAwayAtTheStart: a client of our own that is answered 429 comes back a second later.
func TestNoClientIsSentAwayAtTheStart(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, func(s *ServerConfig, _ *ClientConfig) { s.Client = slowEtcd{mvcc.New(s.Clock)} })
		defer w.stop()
		require.NoError(t, w.WaitReady(t.Context()))
		synctest.Wait() // a handler reports its answer after the client has read it
		answered := probetest.Records(w.log, probe.RequestAnswered)
		assert.True(t, len(answered) != 0, "no request was answered")
		for _, r := range answered {
			assert.True(t, r.Args[0] != http.StatusTooManyRequests, "429: %s", r.Sentence())
		}
	})
}

func TestAPodIsScheduledRunsAndGoes(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		w.create(t, apitest.Pod("a", corev1.RestartPolicyAlways))
		time.Sleep(time.Minute)
		pod := w.get(t, "a")
		require.True(t, pod != nil && pod.Spec.NodeName != "" && pod.Status.Phase == corev1.PodRunning &&
			pod.Status.PodIP != "", "a minute after its creation: got %+v", pod)
		held, err := w.Client.Pods().Lister().Namespace("default").Get("a")
		require.True(t, err == nil && len(pod.ManagedFields) != 0,
			"the informer has no such pod, %v, or the server notes no managers: %v", err, pod.ManagedFields)
		pod.ManagedFields = nil // which no informer keeps
		assert.True(t, equality.Semantic.DeepEqual(held, pod), "the informer holds %+v, the server %+v", held, pod)
		require.NoError(t, w.client.Delete().Namespace("default").Resource("pods").Name("a").Do(t.Context()).Error())
		time.Sleep(time.Minute)
		assert.Equal(t, nil, w.get(t, "a"), "a minute after its deletion")
	})
}

// receivedSince returns what each reflector of the client half received of pods, "ADDED r1" being the version first.
func (w *world) receivedSince(first uint64) map[string][]string {
	received := map[string][]string{}
	for _, r := range probetest.Records(w.log, probe.ReflectorReceived) {
		if r.Resource == "pods" && r.Subject != "cacher" && r.Type != "BOOKMARK" {
			received[r.Subject] = append(received[r.Subject], fmt.Sprintf("%s r%d", r.Type, r.RV-first+1))
		}
	}
	return received
}

// TestAfterABurstTheShelvesAreKnownAgain: of many objects a picture keeps the number only. When few are left, their
// names come as records, from the store itself.
func TestAfterABurstTheShelvesAreKnownAgain(t *testing.T) {
	inWorld(t, func(_ *ServerConfig, c *ClientConfig) { c.Controllers = nil }, func(t *testing.T, w *world) {
		for n := range 40 {
			w.create(t, apitest.Pod(fmt.Sprintf("p%02d", n), corev1.RestartPolicyAlways))
		}
		for n := 2; n < 40; n++ {
			deletion := w.client.Delete().Namespace("default").Resource("pods").Name(fmt.Sprintf("p%02d", n)).
				VersionedParams(&metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
			require.NoError(t, deletion.Do(t.Context()).Error())
		}
		state := fold.New()
		look := func() (store, indexer *fold.Shelf) {
			synctest.Wait()
			records, ok := w.log.Since(nil, state.Seq, 1<<16)
			require.True(t, ok, "the log has moved on")
			state.Apply(records)
			pods := state.Resources["pods"]
			return pods.Shelves[fold.ShelfName(probe.Store, "cacher")],
				pods.Shelves[fold.ShelfName(probe.Indexer, "informer")]
		}
		if store, indexer := look(); store.N+indexer.N != 4 || len(store.Rows)+len(indexer.Rows) != 0 {
			t.Errorf("after the burst: got %+v and %+v, want two objects each, without names", store, indexer)
		}
		for resource, subject := range map[string]string{"pods": "cacher", "": "informer"} {
			w.Recount(resource, subject, 1)
		}
		if store, indexer := look(); len(store.Rows)+len(indexer.Rows) != 0 {
			t.Errorf("two objects were told although only one was to be: %v, %v", store.Rows, indexer.Rows)
		}
		w.Recount("pods", "cacher", fold.MaxRows)
		w.Recount("pods", "informer", fold.MaxRows)
		store, indexer := look()
		for name, shelf := range map[string]*fold.Shelf{"store": store, "indexer": indexer} {
			keys := []string{}
			for _, row := range shelf.Rows {
				keys = append(keys, probe.ObjectKey(row.Key))
			}
			assert.Equal(t, "2 [default/p00 default/p01]", fmt.Sprint(shelf.N, keys), name)
		}
	})
}

func TestADeletedNamespaceTakesItsContentAlong(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		namespaces := func() *corev1.Namespace {
			namespace := &corev1.Namespace{}
			err := w.client.Get().Resource("namespaces").Name("n").Do(t.Context()).Into(namespace)
			if apierrors.IsNotFound(err) {
				return nil
			}
			require.NoError(t, err)
			return namespace
		}
		must := func(err error) {
			t.Helper()
			require.NoError(t, err)
		}
		pod := apitest.Pod("a", corev1.RestartPolicyAlways)
		err := w.client.Post().Namespace("n").Resource("pods").Body(pod).Do(t.Context()).Error()
		assert.Fails(t, err, apierrors.IsNotFound, "before the namespace is there")
		must(w.client.Post().Resource("namespaces").Body(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n"}}).
			Do(t.Context()).Error())
		must(w.client.Post().Namespace("n").Resource("pods").Body(pod).Do(t.Context()).Error())
		configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
		must(w.client.Post().Namespace("n").Resource("configmaps").Body(configMap).Do(t.Context()).Error())
		time.Sleep(time.Minute) // the pod runs: it will need time to stop
		must(w.client.Delete().Resource("namespaces").Name("n").Do(t.Context()).Error())
		if namespace := namespaces(); namespace == nil || namespace.Status.Phase != corev1.NamespaceTerminating {
			t.Errorf("just deleted: got %+v, want Terminating", namespace)
		}
		time.Sleep(time.Minute)
		assert.Equal(t, nil, namespaces(), "a minute later")
		var pods corev1.PodList
		must(w.client.Get().Resource("pods").Do(t.Context()).Into(&pods))
		assert.Equal(t, 0, len(pods.Items), "pods")
	})
}

// kindTest is what a client does with the objects of one kind.
type kindTest struct {
	t        *testing.T
	w        *world
	resource *registry.Resource
	path     string // the collection's
	first    string // the version of the first object
}

// serve runs body with a server on etcd.
func (k *kindTest) serve(etcd etcd3.Client, body func()) {
	k.w = newWorld(k.t, func(s *ServerConfig, c *ClientConfig) { s.Client, c.Controllers = etcd, nil })
	defer k.w.stop()
	require.NoError(k.t, k.w.WaitReady(k.t.Context()))
	body()
}

// send sends a request and fails the test unless it is answered with code.
func (k *kindTest) send(method, path, contentType, body string, code int) *httptest.ResponseRecorder {
	k.t.Helper()
	_, accept, _ := strings.Cut(contentType, "accept ")
	api := &apitest.API{T: k.t, Handler: k.w.Server.Handler()}
	answer := api.Do(method, k.path+path, body, "Content-Type", contentType, "Accept", accept)
	require.True(k.t, answer.Code == code,
		"%s %s %s: got %d %s, want %d", method, path, body, answer.Code, answer.Body, code)
	return answer
}

// object sends a request whose answer is an object or a list.
func (k *kindTest) object(method, path, contentType, body string, code int) *unstructured.Unstructured {
	k.t.Helper()
	obj := &unstructured.Unstructured{}
	require.NoError(k.t, utiljson.Unmarshal(k.send(method, path, contentType, body, code).Body.Bytes(), &obj.Object))
	return obj
}

func (k *kindTest) create(name string) *unstructured.Unstructured {
	k.t.Helper()
	return k.object("POST", "", "application/json", k.body(name, `"labels":{"l":"`+name+`"},"finalizers":["x/a"],
		"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n","uid":"1"}]`), 201)
}

func (k *kindTest) body(name, rest string) string {
	spec := ""
	if k.resource.GroupVersion.Group == "apps" { // a pod template is required
		spec = `,"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{
			"containers":[{"name":"c","image":"i"}]}}}`
	}
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q,%s}%s}`, k.resource.GroupVersion.String(),
		k.resource.Kind, name, rest, spec)
}

// watch returns the types and names of the events from a version on.
func (k *kindTest) watch(version string) string {
	k.t.Helper()
	synctest.Wait() // the budget is empty: a watcher that meets a dispatcher with more than it holds is closed
	body := k.send("GET", "?watch=1&timeoutSeconds=1&resourceVersion="+version, "", "", 200).Body
	var seen []string
	for decoder := json.NewDecoder(body); decoder.More(); {
		var event struct {
			Type   string
			Object struct {
				metav1.PartialObjectMetadata
				Reason metav1.StatusReason
			}
		}
		require.NoError(k.t, decoder.Decode(&event))
		seen = append(seen, event.Type+" "+event.Object.Kind+" "+event.Object.Name+string(event.Object.Reason))
	}
	return strings.ReplaceAll(strings.Join(seen, ", "), k.resource.Kind+" ", "")
}

// names returns the names in a list.
func (k *kindTest) names(query string) string {
	k.t.Helper()
	list := &unstructured.UnstructuredList{}
	require.NoError(k.t, list.UnmarshalJSON(k.send("GET", query, "", "", 200).Body.Bytes()))
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].GetName())
	}
	return strings.Join(names, " ")
}

// patches sends every kind of patch for the object a. Lists are merged by all but the merge patch.
func (k *kindTest) patches() {
	k.t.Helper()
	const owner2 = `{"metadata":{"finalizers":["x/b"],"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n",` +
		`"uid":"2"}]}}`
	for _, patch := range []struct {
		contentType, query, body, label string
		nFinalizers, nOwners            int
	}{
		{"application/strategic-merge-patch+json", "", owner2, "a", 2, 2},
		{"application/json-patch+json", "", `[{"op":"replace","path":"/metadata/labels/l","value":"j"}]`, "j", 2, 2},
		{"application/apply-patch+yaml", "?fieldManager=m&force=true", k.body("a", `"labels":{"l":"y"}`), "y", 2, 2},
		{"application/merge-patch+json", "", `{"metadata":{"labels":{"l":"m"},"finalizers":null}}`, "m", 0, 2},
	} {
		obj := k.object("PATCH", "/a"+patch.query, patch.contentType, patch.body, 200)
		if label, nf, no := obj.GetLabels()["l"], len(obj.GetFinalizers()), len(obj.GetOwnerReferences()); label !=
			patch.label || nf != patch.nFinalizers || no != patch.nOwners {
			k.t.Errorf("%s: got %s, %d finalizers, %d owners, want %+v", patch.contentType, label, nf, no, patch)
		}
		assert.True(k.t, len(obj.GetManagedFields()) != 0 && obj.GetKind() == k.resource.Kind,
			"%s: got %v", patch.contentType, obj)
	}
}

// forms writes objects as protobuf, which says its kind or leaves that to the path, also their status where that has a
// path of its own, and applies one that is not there.
func (k *kindTest) forms() {
	k.t.Helper()
	const proto = "application/vnd.kubernetes.protobuf"
	for name, says := range map[string]schema.GroupVersionKind{
		"proto": k.resource.GroupVersion.WithKind(k.resource.Kind), "bare": {}} {
		encode := func(body string) string {
			obj := k.resource.NewFunc()
			require.NoError(k.t, json.Unmarshal([]byte(body), obj))
			unknown := &runtime.Unknown{
				Raw: require.Value(obj.(interface{ Marshal() ([]byte, error) }).Marshal())(k.t)}
			unknown.APIVersion, unknown.Kind = says.ToAPIVersionAndKind()
			return "k8s\x00" + string(require.Value(unknown.Marshal())(k.t))
		}
		obj := k.object("POST", "", proto, encode(k.body(name, `"labels":{}`)), 201)
		paths := []string{"/" + name}
		if k.resource.StatusStrategy != nil {
			paths = append(paths, "/"+name+"/status")
		}
		for _, path := range paths {
			obj = k.object("PUT", path, proto, encode(string(require.Value(obj.MarshalJSON())(k.t))), 200)
		}
		assert.True(k.t, obj.GetName() == name && obj.GetKind() == k.resource.Kind, "%s: got %v", name, obj)
		applied := "/" + name + "-applied"
		for _, code := range []int{201, 200} {
			k.object("PATCH", applied+"?fieldManager=m", "application/apply-patch+yaml",
				k.body(name+"-applied", `"labels":{}`), code)
		}
		k.object("DELETE", applied, "", "", 200)
		k.object("DELETE", "/"+name, "", "", 200)
	}
}

func (k *kindTest) run() {
	k.forms()
	first := k.create("a")
	k.create("b")
	k.create("c")
	k.send("POST", "", "application/json", strings.Replace(k.body("d", `"labels":{}`), k.resource.Kind, "Job", 1), 400)
	k.send("POST", "", "application/json", k.body("d", `"labels":{"l":5}`), http.StatusBadRequest) // labels are text
	k.patches()
	blind := http.StatusOK // the answer to a PUT that does not say which version it was made from
	switch k.resource.Name {
	case "leases", "poddisruptionbudgets", "csinodes", "csidrivers", "csistoragecapacities", "volumeattachments":
		blind = http.StatusUnprocessableEntity
	}
	k.send("PUT", "/a?dryRun=All", "application/json", k.body("a", `"labels":{}`), blind)
	k.object("DELETE", "/a", "", "", 200)
	if got := k.watch(first.GetResourceVersion()); got != "ADDED b, ADDED c, "+
		"MODIFIED a, MODIFIED a, MODIFIED a, MODIFIED a, DELETED a" {
		k.t.Errorf("watch: got %s", got)
	}
	for query, want := range map[string]string{
		"": "b c", "?labelSelector=l%3Db": "b", "?fieldSelector=metadata.name%3Dc": "c", "?resourceVersion=0": "b c",
		"?limit=1": "b",
	} {
		got := k.names(query)
		assert.True(k.t, got == want, "list %s: got %q, want %q", query, got, want)
	}
	page := k.object("GET", "?limit=1", "", "", 200)
	token, _, _ := unstructured.NestedString(page.Object, "metadata", "continue")
	got := k.names("?limit=1&continue=" + token)
	assert.True(k.t, got == "c", "second page: got %s", got)
	table := k.object("GET", "", "accept application/json;as=Table;v=v1;g=meta.k8s.io", "", 200)
	rows, _, _ := unstructured.NestedSlice(table.Object, "rows")
	assert.True(k.t, table.GetKind() == "Table" && len(rows) == 2, "table: got %v", table)
	require.Value(k.w.Server.Compact(k.t.Context()))(k.t)
	k.first = first.GetResourceVersion()
}

// TestEveryKindIsServedAlike does with every kind what clients do with configmaps. Pods and namespaces, which have a
// life, have tests of their own.
func TestEveryKindIsServedAlike(t *testing.T) {
	for _, resource := range registry.Resources() {
		if resource.Name == "pods" || resource.Name == "namespaces" {
			continue
		}
		bubble.Run(t, resource.GroupResource().String(), func(t *testing.T) {
			etcd := mvcc.New(clock.RealClock{})
			k := &kindTest{t: t, resource: resource, path: handlers.Root(resource) + "/" + resource.Name}
			if resource.Namespaced {
				k.path = handlers.Root(resource) + "/namespaces/default/" + resource.Name
			}
			k.serve(etcd, k.run)
			k.serve(etcd, func() {
				assert.Equal(t, "b c, ADDED b, ADDED c", k.names("")+", "+k.watch("0"), "after a restart")
				assert.Equal(t, "ERROR Status Expired", k.watch(k.first), "from a version of before")
			})
		})
	}
}
