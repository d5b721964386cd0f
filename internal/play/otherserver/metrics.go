package otherserver

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"time"
)

const (
	metricsPeriod = 5 * time.Second // the time between two reads of the server's metrics
	// A large API server sends tens of megabytes.
	maxMetrics         = 64 << 20 // bytes
	maxMetricResources = 1000     // maximum number of resources; the others are left out
)

// Metrics holds the figures of the server's /metrics.
type Metrics struct {
	Trouble string  `json:"trouble"` // the reason why metrics are missing; "": none is missing
	Metrics figures `json:"metrics"`
}

// figures maps a resource ("": the whole server) and a name of [shown], or "etcd" (mean milliseconds), to a value.
type figures map[string]map[string]float64

// askMetrics replaces the guest's metrics with the server's present ones, or with the reason why it cannot read them.
func (g *Guest) askMetrics(ctx context.Context) {
	said := Metrics{Metrics: figures{}}
	address := g.config.Servers[0].JoinPath("/metrics").String()
	request, _ := http.NewRequestWithContext(ctx, http.MethodGet, address, nil) // the URL is valid
	response, err := g.transport.RoundTrip(request)
	switch {
	case err != nil:
		said.Trouble = "/metrics cannot be reached: " + err.Error()
	case response.StatusCode != http.StatusOK:
		said.Trouble = "/metrics: " + response.Status + ". To read it takes the right to get the nonResourceURL " +
			"/metrics"
	default:
		said = readMetrics(io.LimitReader(response.Body, maxMetrics))
	}
	if err == nil {
		response.Body.Close()
	}
	g.metrics.Store(&said)
}

// shown maps metrics to the page's names for them: the station, and the name of the number.
var shown = map[string]string{
	"apiserver_watch_cache_capacity":                "ring capacity",
	"watch_cache_capacity":                          "ring capacity", // the metric's name in older versions
	"apiserver_watch_cache_events_received_total":   "incoming received",
	"apiserver_watch_cache_events_dispatched_total": "dispatch dispatched",
	"apiserver_watch_cache_initializations_total":   "store initialisations",
	"apiserver_terminated_watchers_total":           "watcher terminated",
	"apiserver_longrunning_requests":                "watcher open",
	"etcd_request_duration_seconds_sum":             "etcd seconds",
	"etcd_request_duration_seconds_count":           "etcd requests",
	"apiserver_request_total":                       "http requests",
}

// metricLine matches a line of the text format: name, labels, value. resourceLabel matches the label with the resource.
var (
	metricLine    = regexp.MustCompile(`^[a-z_]+(?:\{(.*)\})? ([^ ]+)`)
	resourceLabel = regexp.MustCompile(`(?:^|,)(?:resource|type)="(?:[^"]*/)?([^"./]*)`)
)

// readMetrics adds up the metrics in shown, by resource, and computes the mean time of etcd's requests.
func readMetrics(text io.Reader) Metrics {
	said := Metrics{Metrics: figures{}}
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		line := lines.Bytes()
		what := shown[string(line[:max(0, bytes.IndexAny(line, "{ "))])]
		if what == "" || what == "watcher open" && !bytes.Contains(line, []byte(`verb="WATCH"`)) {
			continue // most lines: they skip the slow regular expressions
		}
		found := metricLine.FindSubmatch(line)
		if found == nil {
			continue
		}
		resource := "" // a metric about the whole server has no resource
		if label := resourceLabel.FindSubmatch(found[1]); label != nil {
			resource = string(label[1])
		}
		value, err := strconv.ParseFloat(string(found[2]), 64)
		values := said.Metrics[resource]
		switch {
		case err != nil:
		case values != nil:
			values[what] += value
		case len(said.Metrics) == maxMetricResources:
			said.Trouble = "/metrics names more than 1,000 resources: the others are left out"
		default:
			said.Metrics[resource] = map[string]float64{what: value}
		}
	}
	for _, values := range said.Metrics {
		if n := values["etcd requests"]; n > 0 {
			values["etcd"] = math.Round(10_000*values["etcd seconds"]/n) / 10 // milliseconds per request
		}
	}
	if err := lines.Err(); err != nil {
		said.Trouble = fmt.Sprintf("/metrics breaks off, or has a line that is too long: %v", err)
	}
	return said
}
