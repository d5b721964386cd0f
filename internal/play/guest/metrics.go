package guest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"listwatch/internal/observe/routine"
)

const (
	metricsPeriod = 5 * time.Second // between two requests for a server's metrics
	// Bounds of what is read and kept. A large API server sends some tens of megabytes.
	maxMetrics         = 64 << 20 // bytes
	maxMetricResources = 1000     // values of the label resource
)

// Metrics is what a server says of itself at /metrics. Its methods may be called from any goroutine.
type Metrics struct {
	// Set by NewMetrics, never changed.
	url    *url.URL
	client *http.Client
	clock  clock.WithTicker

	mu      sync.Mutex // guards the fields below; innermost
	trouble string
	values  map[string]map[string]float64 // by resource, "" for the whole server; in these by what [shown] calls them
}

// NewMetrics returns the metrics of the server with these addresses. It sends nothing yet.
func NewMetrics(servers []*url.URL, clk clock.WithTicker) *Metrics {
	return &Metrics{url: servers[0].JoinPath("/metrics"), client: newClient(servers), clock: clk}
}

// Run asks for the metrics every five seconds until ctx is done.
func (m *Metrics) Run(ctx context.Context) {
	defer m.client.CloseIdleConnections()
	m.ask(ctx)
	routine.Every(ctx, m.clock, metricsPeriod, m.ask)
}

func (m *Metrics) ask(ctx context.Context) {
	response, err := get(ctx, m.client, m.url, "*/*")
	if err != nil {
		m.set(nil, "/metrics cannot be reached: "+Reason(err))
		return
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		m.set(nil, "/metrics: "+response.Status+". To read it takes the right to get the nonResourceURL /metrics")
		return
	}
	m.set(readMetrics(io.LimitReader(response.Body, maxMetrics)))
}

func (m *Metrics) set(values map[string]map[string]float64, trouble string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values, m.trouble = values, trouble
}

// shown names the metrics that the page shows: the station, and what the number there is.
var shown = map[string]string{
	"apiserver_watch_cache_capacity":                "ring capacity",
	"watch_cache_capacity":                          "ring capacity", // its name in some versions
	"apiserver_watch_cache_events_received_total":   "incoming received",
	"apiserver_watch_cache_events_dispatched_total": "dispatch dispatched",
	"apiserver_watch_cache_initializations_total":   "store initialisations",
	"apiserver_terminated_watchers_total":           "watcher terminated",
	"apiserver_longrunning_requests":                "watcher open",
	"etcd_request_duration_seconds_sum":             "etcd seconds",
	"etcd_request_duration_seconds_count":           "etcd requests",
	"apiserver_request_total":                       "http requests",
}

// metricLine is a line of the text format: name, labels, value.
var (
	metricLine    = regexp.MustCompile(`^[a-z_]+(?:\{(.*)\})? ([^ ]+)`)
	resourceLabel = regexp.MustCompile(`(?:^|,)(?:resource|type)="(?:[^"]*/)?([^"./]*)`)
)

// readMetrics adds up the metrics that are shown, by resource. trouble says why not all are read; "" if all are.
func readMetrics(text io.Reader) (values map[string]map[string]float64, trouble string) {
	values = map[string]map[string]float64{}
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		what, resource, value, ok := readMetric(lines.Bytes())
		switch {
		case !ok:
		case values[resource] != nil:
			values[resource][what] += value
		case len(values) == maxMetricResources:
			return values, "/metrics names more than 1,000 resources: the others are left out"
		default:
			values[resource] = map[string]float64{what: value}
		}
	}
	if err := lines.Err(); err != nil {
		trouble = fmt.Sprintf("/metrics breaks off, or has a line that is too long: %v", err)
	}
	return values, trouble
}

// readMetric reads one line. resource is "" if the metric is one of the whole server; ok is false if the metric is not
// shown.
func readMetric(line []byte) (what, resource string, value float64, ok bool) {
	name, _, _ := bytes.Cut(line, []byte("{"))
	name, _, _ = bytes.Cut(name, []byte(" "))
	what, ok = shown[string(name)]
	if !ok || string(name) == "apiserver_longrunning_requests" && !bytes.Contains(line, []byte(`verb="WATCH"`)) {
		return "", "", 0, false
	}
	found := metricLine.FindSubmatch(line)
	if found == nil {
		return "", "", 0, false
	}
	if label := resourceLabel.FindSubmatch(found[1]); label != nil {
		resource = string(label[1])
	}
	value, err := strconv.ParseFloat(string(found[2]), 64)
	return what, resource, value, err == nil
}

// State returns what the page shows: for each resource, and "" for the whole server, a text for each station. trouble
// says why there is nothing, or not all; "" if all is well.
func (m *Metrics) State() (trouble string, texts map[string]map[string]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	texts = map[string]map[string]string{}
	for resource, values := range m.values {
		texts[resource] = map[string]string{}
		for what, value := range values {
			switch {
			case what == "etcd seconds":
			case what == "etcd requests" && value > 0:
				texts[resource]["etcd"] = fmt.Sprintf("%.1f ms", 1000*values["etcd seconds"]/value)
			default:
				texts[resource][what] = strconv.FormatFloat(value, 'f', -1, 64)
			}
		}
	}
	return m.trouble, texts
}
