package upstream

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	endpointmetrics "k8s.io/apiserver/pkg/endpoints/metrics"
	cachermetrics "k8s.io/apiserver/pkg/storage/cacher/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/restclient" // registers its metrics

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
)

var (
	described = regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)
	sample    = regexp.MustCompile(`(?m)^(\w+?)(_bucket|_sum|_count)?(?:\{(.*)\})? \S+$`)
	label     = regexp.MustCompile(`(\w+)="`)
)

// theirMetrics returns the labels of every metric that upstream's server and client have.
func theirMetrics(t *testing.T) map[string]string {
	t.Helper()
	endpointmetrics.Register()
	cachermetrics.Register()
	descriptions := make(chan *prometheus.Desc) // sent by the registry, closed when it has no more
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

// TestMetricsHaveTheirNamesAndLabels compares what the running program shows with what upstream has registered: an
// operator who has a dashboard for the one has it for the other.
func TestMetricsHaveTheirNamesAndLabels(t *testing.T) {
	t.Parallel()
	v := program.StartViz(t)
	must(clientset(t, v).CoreV1().ConfigMaps("default").Create(t.Context(), configMap("a", "k", "v"),
		metav1.CreateOptions{DryRun: []string{"All"}}))
	shown := string(ask(t, v, "GET", "/metrics", "").body)
	want := `dry_run="All",group="",resource="configmaps"`
	assert.True(t, strings.Contains(shown, want), "a dry run is not told from others: no %s", want)
	ours := map[string]string{}
	for _, line := range sample.FindAllStringSubmatch(shown, -1) {
		name := line[1]
		if strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") {
			continue
		}
		if !strings.Contains(shown, "# TYPE "+name+" ") {
			name += line[2] // the ending is a part of the name
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
