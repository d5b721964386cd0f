package e2e

import (
	"context"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
)

// runRelister runs a stock controller's informer through the lens, with one bug in its tweak of the list options: its
// watches ask for no bookmarks. They are short, so that what takes an hour elsewhere takes seconds here.
func runRelister(t *testing.T, server string) {
	transport := &http.Transport{}
	set := kubernetes.NewForConfigOrDie(&rest.Config{Host: server, UserAgent: "relister/v1.2 (linux/amd64)", QPS: -1,
		Transport: transport})
	short := int64(1)
	factory := informers.NewSharedInformerFactoryWithOptions(set, 0, informers.WithTweakListOptions(
		func(o *metav1.ListOptions) {
			o.LabelSelector, o.TimeoutSeconds = "app=quiet", &short
			o.AllowWatchBookmarks = o.SendInitialEvents != nil // the bug: only the first state has its bookmark
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

// TestTheLensTellsWhyAControllerRelists points a controller at the lens of a second program, whose demo is a cluster
// where things happen, and reads on the page what is wrong with it.
func TestTheLensTellsWhyAControllerRelists(t *testing.T) {
	t.Parallel()
	server := startViz(t, "-flight=off", "-ring-capacity=2")
	post(t, server.URL+"/viz/knobs", map[string]any{"name": "traffic.rate", "value": "4"}) // the ring runs over at once
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
	if response, err := http.Post(lens.URL+"/api/v1/namespaces/default/pods", "application/json",
		strings.NewReader("{}")); err != nil || response.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("a write through the lens: got %v, %v", response, err)
	} else {
		response.Body.Close()
	}
	// A lane stands as long as its watch. The relister's are short, and client-go opens them less and less often.
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, lens.URL+"/api/v1/pods?watch=true", nil)
	require.NoError(t, err)
	request.Header.Set("User-Agent", "reader/v1.2 (linux/amd64)")
	stream, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer stream.Body.Close()
	p.until(t, `$$("#watchers .name").some((each) => each.checkVisibility({ visibilityProperty: true })
		&& each.textContent.trim() === "reader")`)
	p.watchesAsAGuest(t, lens)
}

// watchesAsAGuest sees our own client half on the other program's server half, and lets it watch something else.
func (p *page) watchesAsAGuest(t *testing.T, lens *viz) {
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
	response, err := http.Post(lens.URL+"/viz/guest", "application/json",
		strings.NewReader(`{"resources":["gadgets.example.com"]}`))
	require.NoError(t, err)
	response.Body.Close()
	assert.True(t, response.StatusCode == http.StatusBadRequest,
		"a resource that is not there: got %s", response.Status)
}
