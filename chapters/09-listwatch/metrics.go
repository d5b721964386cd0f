package listwatch

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics counts what clients ask of servers, under upstream's names. Any number of clients may share one.
//
// Upstream: k8s.io/component-base/metrics/prometheus/restclient/metrics.go
// Differs: handed to the clients, where upstream's are the process's. Nothing of names, certificates and their plugins,
// which we do not have.
type Metrics struct {
	requests     *prometheus.CounterVec   // by code, method, host
	retries      *prometheus.CounterVec   // by code, verb, host
	duration     *prometheus.HistogramVec // by verb, host, like the following
	limiter      *prometheus.HistogramVec
	requestSize  *prometheus.HistogramVec
	responseSize *prometheus.HistogramVec
}

// noAnswer stands for the code of a request that had no answer.
const noAnswer = "<error>"

// NewMetrics returns metrics that are shown by registry.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	histogram := func(name, help string, buckets []float64) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets},
			[]string{"verb", "host"})
	}
	seconds := []float64{0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60}
	bytes := []float64{64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216}
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rest_client_requests_total", Help: "Requests sent, each attempt counted.",
		}, []string{"code", "method", "host"}),
		retries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rest_client_request_retries_total",
			Help: "Requests sent again, by what became of the attempt before.",
		}, []string{"code", "verb", "host"}),
		duration: histogram("rest_client_request_duration_seconds", "Time until a request was answered, its "+
			"repetitions included. Watches excepted.", seconds),
		limiter: histogram("rest_client_rate_limiter_duration_seconds", "Time that a request waited for the "+
			"client's own limit.", seconds),
		requestSize:  histogram("rest_client_request_size_bytes", "Size of bodies sent.", bytes),
		responseSize: histogram("rest_client_response_size_bytes", "Size of bodies received. Watches excepted.", bytes),
	}
	registry.MustRegister(m.requests, m.retries, m.duration, m.limiter, m.requestSize, m.responseSize)
	return m
}

// codeOf returns the code of an answer as the metrics want it.
func codeOf(response *http.Response, err error) string {
	if err != nil || response == nil {
		return noAnswer
	}
	return strconv.Itoa(response.StatusCode)
}

// attempted counts an attempt, with the size of its body.
func (m *Metrics) attempted(r *Request, response *http.Response, err error) {
	m.requests.WithLabelValues(codeOf(response, err), r.verb, r.client.config.Base.Host).Inc()
	if r.body != nil {
		m.requestSize.WithLabelValues(r.verb, r.client.config.Base.Host).Observe(float64(len(r.body)))
	}
}

// repeated counts an attempt that another follows.
func (m *Metrics) repeated(r *Request, response *http.Response, err error) {
	m.retries.WithLabelValues(codeOf(response, err), r.verb, r.client.config.Base.Host).Inc()
}

// waited counts how long the limiter delayed an attempt.
func (m *Metrics) waited(r *Request, d time.Duration) {
	m.limiter.WithLabelValues(r.verb, r.client.config.Base.Host).Observe(d.Seconds())
}

// finished counts a request that was answered or given up.
func (m *Metrics) finished(r *Request, took time.Duration, result Result) {
	m.duration.WithLabelValues(r.verb, r.client.config.Base.Host).Observe(took.Seconds())
	if result.statusCode != 0 {
		m.responseSize.WithLabelValues(r.verb, r.client.config.Base.Host).Observe(float64(len(result.body)))
	}
}
