package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
)

// TestTheHarnessNoticesWhatAPageShouldNotDo looks at the tests' own eyes: a page that misbehaves in every way they are
// meant to notice.
func TestTheHarnessNoticesWhatAPageShouldNotDo(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, `<!doctype html><link rel="icon" href="data:,"><body data-ok="1"><script>
			console.error("an error", 42);
			setTimeout(() => { throw new Error("thrown later") }, 0);
			new Image().src = "https://example.test/elsewhere.png";
			fetch("/missing");
		</script>`)
	}))
	defer server.Close()
	inner := &page{}
	t.Run("page", func(t *testing.T) {
		p := openPage(t, server.URL)
		// All of them, or the last complaint comes after the others were taken away below.
		want := []string{"an error", "thrown later", "status of 404", "ERR_NAME_NOT_RESOLVED https://example.test"}
		program.Eventually(t, patience, func() (bool, string) {
			p.mu.Lock()
			defer p.mu.Unlock()
			seen := strings.Join(p.complaints, "\n") + "\n" + strings.Join(p.requests, "\n")
			for _, word := range want {
				if !strings.Contains(seen, word) {
					return false, seen
				}
			}
			return true, seen
		})
		p.is(t, "1", "evaluate gives", "document.body.dataset.ok")
		p.mu.Lock()
		defer p.mu.Unlock()
		// What was noticed is judged below; the page itself is not to fail for it.
		inner.requests, inner.complaints = p.requests, p.complaints
		p.requests, p.complaints = []string{server.URL}, nil
	})
	elsewhere := 0
	for _, request := range inner.requests {
		if !loopback(request) {
			elsewhere++
		}
	}
	assert.True(t, elsewhere == 1 && len(inner.complaints) >= 3,
		"noticed %d requests elsewhere, want 1, and %q", elsewhere, inner.complaints)
}
