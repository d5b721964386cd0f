package guest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/eventually"
	"listwatch/internal/check/require"
)

// podsOf runs a guest on pods of a server.
func podsOf(t *testing.T, watchList bool, handler http.HandlerFunc) *Guest {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/api/", handler)
	server := httptest.NewServer(mux)
	t.Cleanup(func() { eventually.Closes(server) })
	base := require.Value(url.Parse(server.URL))(t)
	return attend(t, Config{Servers: []*url.URL{base}, Choice: Choice{Resources: []string{"pods"}},
		UseWatchList: watchList, MaxObjects: 10_000})
}

// heap returns how many bytes of the heap are in use.
func heap() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// TestAnEndlessStateIsCutOffWhileItArrives has the server send objects as fast as it can, with as much as fits in
// beside their names.
func TestAnEndlessStateIsCutOffWhileItArrives(t *testing.T) {
	fat := fmt.Sprintf(`"annotations":{"a":%q},"labels":{"b":%q},"managedFields":[{"manager":%q}]`, strings.Repeat("a",
		500), strings.Repeat("b", 500), strings.Repeat("c", 500))
	const (
		object = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",` +
			`"metadata":{"name":"pod-%d","namespace":"x","resourceVersion":"%d",%s}}`
		list = `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1",` +
			`"metadata":{"resourceVersion":"7"},"items":[`
	)
	for name, c := range map[string]struct {
		watchList          bool
		begin, object, sep string
	}{
		"list": {false, list, object, ","}, "watch-list": {true, "", `{"type":"ADDED","object":` + object + "}", "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			runtime.GC() // what other tests have left
			var sent atomic.Int64
			guest := podsOf(t, c.watchList, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, c.begin)
				for i := 0; r.Context().Err() == nil; i++ {
					fmt.Fprintf(w, c.object+c.sep, i, i+1, fat)
					sent.Add(1)
				}
			})
			guest.until(t, func(s WatchedState) bool {
				return strings.Contains(s.Trouble, "there are more than 10000 objects")
			})
			// A list is held as it came, as its objects, and as what the collector has yet to free.
			if used := heap(); used > 6*maxList || sent.Load() > 200_000 {
				t.Errorf("%d MB of memory, %d objects sent", used>>20, sent.Load())
			}
			state := guest.State()
			assert.False(t, state.Watched[0].Synced, "an informer that was cut off is synced")
		})
	}
}

func TestAnAnswerThatIsNotUnderstoodIsNamed(t *testing.T) {
	const list = `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1",` +
		`"metadata":{"resourceVersion":"7"},"items":[]}`
	const pod = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",` +
		`"metadata":{"name":"a","resourceVersion":"8"}}`
	for name, c := range map[string]struct{ mediaType, list, watch, want string }{
		"HTML":              {"text/html; charset=utf-8", "<html>", "", "not understood"},
		"protobuf":          {"application/vnd.kubernetes.protobuf", "k8s\x00", "", "not understood"},
		"protobuf, as JSON": {"application/json", "k8s\x00\x01", "", "not understood"},
		"broken list":       {"application/json", list[:70], "", "not understood"},
		"broken item": {"application/json", strings.Replace(list, "[]", `[{"metadata":5}]`, 1), "",
			"not understood"},
		"no list": {"application/json", `[1]`, "", "not understood"},
		"broken object": {"application/json", list, `{"type":"ADDED","object":{"metadata":{}}}` + "\n",
			"not understood"},
		"large object": {"application/json", list, `{"type":"ADDED","object":{"a":"` + strings.Repeat("x", 250_000) +
			`"}}` + "\n", "not understood"},
		"healthy": {"application/json", list, `{"type":"MODIFIED","object":` + pod + "}\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			guest := podsOf(t, false, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", c.mediaType)
				if !r.URL.Query().Has("watch") {
					_, _ = io.WriteString(w, c.list)
					return
				}
				_, _ = io.WriteString(w, c.watch)
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			})
			guest.until(t, func(s WatchedState) bool {
				require.True(t, len(s.Trouble) <= 400, "it is told in %d bytes", len(s.Trouble))
				return c.want != "" && strings.Contains(s.Trouble, c.want) || c.want == "" && s.Trouble == "" &&
					s.Synced && s.Objects == 1
			})
		})
	}
}

func TestTheServersMetricsAreBounded(t *testing.T) {
	many := &strings.Builder{}
	for i := range 2 * maxMetricResources {
		fmt.Fprintf(many, "watch_cache_capacity{resource=\"r%d\"} 1\n", i)
	}
	for text, want := range map[string]string{
		many.String():                      "1,000 resources",
		strings.Repeat("x", 100_000):       "too long",
		many.String()[:500] + "resource{]": "",
	} {
		got := readMetrics(strings.NewReader(text))
		assert.True(t, len(got.Metrics) <= maxMetricResources && strings.Contains(got.Trouble, want),
			"got %d resources, %q", len(got.Metrics), got.Trouble)
	}
}
