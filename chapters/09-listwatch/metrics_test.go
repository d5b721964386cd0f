package listwatch

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
)

func TestAttemptsWaitsAndAnswersAreCountedUnderUpstreamsNames(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := 0
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if n++; n == 1 {
				w.Header().Set("Retry-After", "2")
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			_, _ = w.Write([]byte(`{"kind":"Pod","apiVersion":"v1"}`))
		})
		registry := prometheus.NewRegistry()
		c := NewRESTClient(Config{
			Base: &url.URL{Scheme: "http", Host: "api"}, HTTP: s.client, Clock: clock.RealClock{}, QPS: 1, Burst: 1,
			Metrics: NewMetrics(registry),
		})
		require.NoError(t, c.Post().Resource("pods").Body([]byte(`{}`)).Do(t.Context()).Error())
		s.stop()
		assert.True(t, c.Put().Resource("pods").Name("a").Body([]byte(`{}`)).Do(t.Context()).Error() != nil,
			"got an answer of a server that is gone")
		page := httptest.NewRecorder()
		promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(page, httptest.NewRequest("GET", "/metrics",
			nil))
		for _, want := range []string{
			`rest_client_requests_total{code="200",host="api",method="POST"} 1`,
			`rest_client_requests_total{code="503",host="api",method="POST"} 1`,
			`rest_client_requests_total{code="<error>",host="api",method="PUT"} 1`,
			`rest_client_request_retries_total{code="503",host="api",verb="POST"} 1`,
			// what the server asked for; a token has come meanwhile
			`rest_client_request_duration_seconds_sum{host="api",verb="POST"} 2`,
			`rest_client_request_duration_seconds_count{host="api",verb="POST"} 1`,
			`rest_client_rate_limiter_duration_seconds_sum{host="api",verb="PUT"} 1`,
			`rest_client_request_size_bytes_sum{host="api",verb="POST"} 4`,
			`rest_client_response_size_bytes_sum{host="api",verb="POST"} 32`,
		} {
			assert.True(t, strings.Contains(page.Body.String(), want+"\n"), "no line %s in\n%s", want, page.Body)
		}
	})
}
