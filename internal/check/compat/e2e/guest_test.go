package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"listwatch/internal/check/eventually"
)

// crowd is a server of the test's own that has nothing but pods.
type crowd struct {
	status atomic.Int64 // of every list and watch; 0: they are answered
	pods   int
	ready  chan bool // closed when one more change is to happen
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

// stream is a watch-list: every pod with the metadata that pods have, the bookmark, and a change.
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

// TestAGuestToldOnThePage sees what is wrong with a server, each with what to do; then more pods than the page can
// name, in the heavy form a hundred thousand; and last that the server is gone.
func TestAGuestToldOnThePage(t *testing.T) {
	t.Parallel()
	c := &crowd{pods: 5_000, ready: make(chan bool)}
	if full {
		c.pods = 100_000
	}
	c.status.Store(http.StatusUnauthorized)
	server := httptest.NewServer(c)
	t.Cleanup(func() { eventually.Closes(server) })
	// The log holds it all: a record that the page asks for just when the log drops it is a 410 on its console.
	guest := startViz(t, "-server", server.URL, "-log-size=1000000")
	p := openPage(t, guest.URL)
	troubled := func(text string) {
		t.Helper()
		p.until(t, `$("#guest-troubles").textContent.includes(%q)`, text)
	}
	again := func(status int) {
		t.Helper()
		c.status.Store(int64(status))
		post(t, guest.URL+"/viz/guest", map[string]any{"resources": []string{"pods"}})
	}
	troubled("Log in again, and restart kubectl proxy")
	p.until(t, `$("#open-lens.broken") !== null && $("#banner").textContent.includes("401")`)
	troubled("/metrics: 403 Forbidden. To read it takes the right to get the nonResourceURL /metrics")
	again(http.StatusForbidden)
	troubled("you may not list and watch pods in all namespaces. Choose a namespace in which you may, or ask for the " +
		"right to")
	again(http.StatusNotFound)
	troubled("Has its CustomResourceDefinition been deleted?")

	again(0)
	p.until(t, `$("#guest-state").textContent.startsWith("pods: %d ")`, c.pods)
	p.until(t, `$('[data-text="indexer.n"]').textContent.replace(/\D/g, "") === "%d"`,
		c.pods)
	p.until(t, `$("#open-lens.broken") === null && !$("#banner").textContent.includes("404")`)
	close(c.ready)
	p.until(t, `listwatch.state.resources.pods?.stations.reflector.rv === "%d"`, c.pods+7)
	p.run(t, `await $frames(20)`) // the page draws on
	var state struct{ Memory uint64 }
	if guest.Get(t, "/viz/guest", &state); state.Memory > 400<<20 {
		t.Errorf("%d MB of memory for %d pods", state.Memory>>20, c.pods)
	}
	eventually.Closes(server)
	troubled("is kubectl proxy still running?")
}
