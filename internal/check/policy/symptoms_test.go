package policy

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
)

var (
	ourMetric    = regexp.MustCompile("`((?:apiserver|watch_cache|rest_client|informer|workqueue)_[a-z_]+)")
	otherMetric  = regexp.MustCompile(`\*((?:apiserver|informer|workqueue)_[a-z_]+)`)
	metricsFiles = []string{"chapters/06-cacher/metrics.go", "chapters/09-listwatch/metrics.go",
		"internal/server/apiserver/metrics.go"}
)

// TestSymptomsNameMetricsThatExist: in SYMPTOMS a metric stands as code if this program has it, and in italics if only
// upstream does.
func TestSymptomsNameMetricsThatExist(t *testing.T) {
	var sources strings.Builder
	for _, file := range metricsFiles {
		sources.WriteString(read(t, filepath.Join(root, filepath.FromSlash(file))))
	}
	page := read(t, filepath.Join(root, "docs", "SYMPTOMS.md"))
	has := func(name string) bool { return strings.Contains(sources.String(), `"`+name+`"`) }
	named := ourMetric.FindAllStringSubmatch(page, -1)
	assert.True(t, len(named) >= 10, "only %d metrics are named", len(named))
	for _, each := range named {
		if !has(each[1]) {
			t.Errorf("%s is not at /metrics", each[1])
		}
	}
	for _, each := range otherMetric.FindAllStringSubmatch(page, -1) {
		if has(each[1]) {
			t.Errorf("%s is at /metrics: it stands as code", each[1])
		}
	}
}
