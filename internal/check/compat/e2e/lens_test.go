package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/eventually"
	"listwatch/internal/check/require"
)

// runRelister runs client-go's pod informer against server. The tweak of the list options has a bug: watches request no
// bookmarks. The watches are short, so that the bug has effects after seconds instead of minutes.
func runRelister(t *testing.T, server string) {
	transport := &http.Transport{}
	set := kubernetes.NewForConfigOrDie(&rest.Config{Host: server, UserAgent: "relister/v1.2 (linux/amd64)", QPS: -1,
		Transport: transport})
	short := int64(1)
	factory := informers.NewSharedInformerFactoryWithOptions(set, 0, informers.WithTweakListOptions(
		func(o *metav1.ListOptions) {
			o.LabelSelector, o.TimeoutSeconds = "app=quiet", &short
			o.AllowWatchBookmarks = o.SendInitialEvents != nil // the bug: only a watch-list requests bookmarks
		}))
	factory.Core().V1().Pods().Informer()
	ctx, cancel := context.WithCancel(t.Context())
	factory.StartWithContext(ctx)
	t.Cleanup(func() {
		cancel()
		factory.Shutdown()
		transport.CloseIdleConnections()
	})
}

// TestTheLensTellsWhyAControllerRelists points a controller at the lens of a second program and reads the controller's
// bug on the page. The first program's demo serves as the busy cluster.
func TestTheLensTellsWhyAControllerRelists(t *testing.T) {
	t.Parallel()
	server := startViz(t, "-flight=off", "-ring-capacity=2")
	post(t, server.URL+"/viz/knobs", map[string]any{"name": "traffic.rate", "value": "4"}) // overruns the ring at once
	lens := startViz(t, "-server", server.URL)
	runRelister(t, lens.URL)
	p := openPage(t, lens.URL)
	p.until(t, `$("#open-lens.broken") !== null`)
	p.run(t, `$("#open-lens").click()`)
	var sentence string
	program.Eventually(t, patience, func() (bool, string) {
		sentence = evaluate[string](t, p, `$("[data-finding=no-bookmarks] .finding")?.textContent ?? ""`)
		return sentence != "", sentence
	})
	want := "because its watches ask for no bookmarks: while nothing of its own changes, the version it knows grows " +
		"too old."
	if !strings.HasPrefix(sentence, "relister relists pods with app=quiet after every 410 (") ||
		!strings.HasSuffix(sentence, want) || strings.Count(sentence, ".") != 1 {
		t.Errorf("got %q", sentence)
	}
	p.is(t, "/book/06-cacher", "it is explained at", `$("[data-finding=no-bookmarks] a").getAttribute("href")`)
	for _, id := range []string{"create-pod", "change-pod", "delete-pod", "open-stories", "open-knobs"} {
		assert.False(t, evaluate[bool](t, p, `$("#`+id+`").checkVisibility()`), "a guest is offered #%s", id)
	}
	// The relister's watches are short, and client-go opens them less and less often. This watch keeps its lane.
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, lens.URL+"/api/v1/pods?watch=true", nil)
	require.NoError(t, err)
	request.Header.Set("User-Agent", "reader/v1.2 (linux/amd64)")
	stream := require.Value(http.DefaultClient.Do(request))(t)
	defer stream.Body.Close()
	p.until(t, `$$("#watchers .name").some((each) => each.checkVisibility({ visibilityProperty: true })
		&& each.textContent.trim() === "reader")`)
	p.watchesAsAGuest(t)
}

// watchesAsAGuest checks that the page shows our client half as a guest of the other program's server half. Then it
// adds a resource for our client half to watch.
func (p *page) watchesAsAGuest(t *testing.T) {
	t.Helper()
	p.run(t, `$("#lens-close").click()`)
	p.until(t, `Number($('[data-text="indexer.n"]').textContent) > 0`)
	p.until(t, `$('[data-theirs="ring capacity"]').textContent === "2"`)
	p.until(t, `Number($('[data-theirs="dispatch dispatched"]').textContent) > 0`)
	if evaluate[bool](t, p, `$('[data-text="ring.newest"]').checkVisibility({ visibilityProperty: true })`) {
		t.Error("a ring is drawn that is not ours")
	}
	p.run(t, `$("#guest").elements.resources.value = "namespaces, pods", $("#guest button").click()`)
	p.until(t, `[...document.querySelector("#resource").options].some((each) => each.value === "namespaces")`)
	p.run(t, `$("#resource").value = "namespaces",
		$("#resource").dispatchEvent(new Event("change", { bubbles: true }))`)
	p.until(t, `Number($('[data-text="indexer.n"]').textContent) === 4`)
}

// crowd is a test server that serves nothing but pods.
type crowd struct {
	status atomic.Int64 // the status of every list and watch; 0: success
	pods   int
	ready  chan bool // closing it triggers one more change
}

func (c *crowd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	status := int(c.status.Load())
	switch {
	case r.URL.Path != "/api/v1/pods":
		http.Error(w, "", http.StatusForbidden)
	case status != 0:
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(metav1.Status{Status: metav1.StatusFailure, Code: int32(status), Message: "no"})
	default:
		c.stream(w, r)
	}
}

// stream sends a watch-list: every pod with the usual metadata, the bookmark and, when ready is closed, a change.
func (c *crowd) stream(w http.ResponseWriter, r *http.Request) {
	out := bufio.NewWriter(w)
	event := func(kind string, i, rv int, annotations string) {
		fmt.Fprintf(out, `{"type":%q,"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",`+
			`"metadata":{"name":"pod-%06d","namespace":"ns-%d","uid":"%032d","resourceVersion":"%d",`,
			kind, i, i%100, i, rv)
		fmt.Fprintf(out, `"labels":{"app":"app-%d","pod-template-hash":"%010d"},"annotations":{%s},`+
			`"managedFields":[{"manager":%q}]}}}`+"\n", i%1000, i, annotations, strings.Repeat("m", 600))
	}
	for i := range c.pods {
		event("ADDED", i, i+1, "")
	}
	event("BOOKMARK", 0, c.pods, fmt.Sprintf("%q:\"true\"", metav1.InitialEventsAnnotationKey))
	_ = out.Flush()
	w.(http.Flusher).Flush()
	select {
	case <-r.Context().Done():
		return
	case <-c.ready:
	}
	event("MODIFIED", 42, c.pods+7, "")
	_ = out.Flush()
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

// TestAGuestToldOnThePage checks that the page reports two refusals by a server. Then the guest watches more pods than
// the page can name: 5,000, or 100,000 with FULL. Finally the test stops the server.
func TestAGuestToldOnThePage(t *testing.T) {
	t.Parallel()
	c := &crowd{pods: 5_000, ready: make(chan bool)}
	if full {
		c.pods = 100_000
	}
	c.status.Store(http.StatusUnauthorized)
	server := httptest.NewServer(c)
	t.Cleanup(func() { eventually.Closes(server) })
	// The log is large enough to keep every record, even those of 100,000 pods.
	guest := startViz(t, "-server", server.URL, "-log-size=1000000")
	p := openPage(t, guest.URL)
	troubled := func(text string) {
		t.Helper()
		p.until(t, `$("#guest-troubles").textContent.includes(%q)`, text)
	}
	troubled("Log in again, and restart kubectl proxy")
	p.until(t, `$("#open-lens.broken") !== null && $("#banner").textContent.includes("401")`)
	troubled("/metrics: 403 Forbidden. To read it takes the right to get the nonResourceURL /metrics")

	c.status.Store(0)
	post(t, guest.URL+"/viz/guest", map[string]any{"resources": []string{"pods"}})
	p.until(t, `$("#guest-state").textContent.startsWith("pods: %d ")`, c.pods)
	p.until(t, `$('[data-text="indexer.n"]').textContent.replace(/\D/g, "") === "%d"`, c.pods)
	p.until(t, `$("#open-lens.broken") === null && !$("#banner").textContent.includes("401")`)
	close(c.ready)
	p.until(t, `listwatch.state.resources.pods?.stations.reflector.rv === "%d"`, c.pods+7)
	p.run(t, `await $frames(20)`) // the page must keep drawing
	var state struct{ Memory uint64 }
	guest.Get(t, "/viz/guest", &state)
	assert.True(t, state.Memory <= 400<<20, "%d MB of memory for %d pods", state.Memory>>20, c.pods)
	eventually.Closes(server)
	troubled("is kubectl proxy still running?")
}
