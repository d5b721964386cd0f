package sidebyside

import (
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	endpointmetrics "k8s.io/apiserver/pkg/endpoints/metrics"
	cachermetrics "k8s.io/apiserver/pkg/storage/cacher/metrics"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/restclient" // registers the REST client's metrics

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
)

var (
	described = regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)
	sample    = regexp.MustCompile(`(?m)^(\w+?)(_bucket|_sum|_count)?(?:\{(.*)\})? \S+$`)
	label     = regexp.MustCompile(`(\w+)="`)
)

// theirMetrics returns the labels of every metric that upstream's server and client register.
func theirMetrics(t *testing.T) map[string]string {
	t.Helper()
	endpointmetrics.Register()
	cachermetrics.Register()
	descriptions := make(chan *prometheus.Desc) // sent and closed by the goroutine below
	go func() {
		defer close(descriptions)
		legacyregistry.Registerer().(prometheus.Collector).Describe(descriptions)
	}()
	labels := map[string]string{}
	for description := range descriptions {
		parts := described.FindStringSubmatch(description.String())
		require.True(t, parts != nil, "not understood: %s", description)
		names := strings.FieldsFunc(parts[2], func(r rune) bool { return r == ',' || r == ' ' })
		slices.Sort(names)
		labels[parts[1]] = strings.Join(names, ",")
	}
	return labels
}

// ask returns the body of the program's response at a path.
func ask(t *testing.T, v *program.Viz, path string) string {
	t.Helper()
	response := must(http.Get(v.URL + path))
	defer response.Body.Close()
	return string(must(io.ReadAll(response.Body)))
}

// TestMetricsHaveTheirNamesAndLabels checks that each metric of the running program is also upstream's, with the same
// labels, so that dashboards can show both. It also checks that a dry run is counted as one.
func TestMetricsHaveTheirNamesAndLabels(t *testing.T) {
	t.Parallel()
	v := program.StartViz(t)
	client := must(kubernetes.NewForConfig(&rest.Config{Host: v.URL}))
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	dryRun := metav1.CreateOptions{DryRun: []string{"All"}}
	must(client.CoreV1().ConfigMaps("default").Create(t.Context(), object, dryRun))
	shown := ask(t, v, "/metrics")
	want := `dry_run="All",group="",resource="configmaps"`
	assert.True(t, strings.Contains(shown, want), "a dry run is not counted as one: no %s", want)
	ours := map[string]string{}
	for _, line := range sample.FindAllStringSubmatch(shown, -1) {
		name := line[1]
		if strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") ||
			name == "listwatch_watch_cache_store_errors_total" { // upstream only logs objects that a store refuses
			continue
		}
		if !strings.Contains(shown, "# TYPE "+name+" ") {
			name += line[2] // no histogram: the suffix is part of the name
		}
		names := map[string]bool{}
		for _, found := range label.FindAllStringSubmatch(line[3], -1) {
			names[found[1]] = true
		}
		delete(names, "le")
		ours[name] = strings.Join(slices.Sorted(maps.Keys(names)), ",")
	}
	theirs := theirMetrics(t)
	assert.True(t, len(ours) >= 20, "only %d metrics were found: %v", len(ours), ours)
	for name, labels := range ours {
		want, ok := theirs[name]
		assert.True(t, ok && labels == want, "%s: got labels %q, want %q, known %v", name, labels, want, ok)
	}
}
