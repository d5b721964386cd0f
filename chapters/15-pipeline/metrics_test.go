package pipeline

import (
	"net/http/httptest"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
)

func TestWhatTheClientsCountIsServedToo(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		answer := httptest.NewRecorder()
		w.Server.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
		for _, line := range []string{
			`rest_client_requests_total{code="200",host="pipe",method="GET"} `,
			`rest_client_request_duration_seconds_count{host="pipe",verb="POST"} `,
			`rest_client_request_size_bytes_count{host="pipe",verb="POST"} `,
			`apiserver_current_inflight_requests{request_kind="readOnly"} `,
		} {
			assert.True(t, strings.Contains(answer.Body.String(), line),
				"no line begins with %s in\n%s", line, answer.Body)
		}
	})
}

func TestTheMetricsOfEveryCacheAreServed(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		answer := httptest.NewRecorder()
		w.Server.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
		for _, resource := range []string{"pods", "nodes", "configmaps", "namespaces"} {
			for _, name := range []string{"apiserver_watch_cache_events_received_total",
				"apiserver_watch_cache_resource_version", "watch_cache_capacity"} {
				if line := name + `{group="",resource="` + resource + `"} `; !strings.Contains(answer.Body.String(),
					line) {
					t.Errorf("no line begins with %s", line)
				}
			}
		}
	})
}
