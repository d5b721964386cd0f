package guest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// metricsPeriod is how often a server is asked for its metrics, and maxMetrics how much of them is read.
const (
	metricsPeriod = 5 * time.Second
	maxMetrics    = 64 << 20
)

// Metrics is what a server that is not ours says of itself at /metrics.
type Metrics struct {
	// Set by NewMetrics, never changed.
	url    string
	client *http.Client
	clock  clock.WithTicker

	mu      sync.Mutex // guards the fields below; innermost
	trouble string
	values  map[string]map[string]float64 // by resource, "" for the whole server, and station with what is counted there
}

// NewMetrics returns what has not asked yet.
func NewMetrics(servers []*url.URL, clk clock.WithTicker) *Metrics {
	return &Metrics{url: servers[0].JoinPath("/metrics").String(), client: newClient(servers), clock: clk}
}

// Run asks until ctx is done.
func (m *Metrics) Run(ctx context.Context) {
	defer m.client.CloseIdleConnections()
	ticker := m.clock.NewTicker(metricsPeriod)
	defer ticker.Stop()
	for {
		m.ask(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

func (m *Metrics) ask(ctx context.Context) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.url, nil)
	if err != nil {
		return // the URL was parsed before
	}
	response, err := m.client.Do(request)
	if err != nil {
		m.set("/metrics cannot be reached: "+Reason(err), nil)
		return
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		m.set("/metrics: "+response.Status+". To read it takes the right to get the nonResourceURL /metrics", nil)
		return
	}
	m.set("", readMetrics(io.LimitReader(response.Body, maxMetrics)))
}

func (m *Metrics) set(trouble string, values map[string]map[string]float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.trouble, m.values = trouble, values
}

// counted is which metric is shown at which station, as what.
var counted = map[string]string{
	"apiserver_watch_cache_capacity":                "ring capacity",
	"watch_cache_capacity":                          "ring capacity", // as it is called by some versions
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
	metricLine    = regexp.MustCompile(`^([a-z_]+)(?:\{(.*)\})? ([^ ]+)`)
	resourceLabel = regexp.MustCompile(`(?:^|,)(?:resource|type)="([^"]*)"`)
)

// readMetrics adds up what is counted, by resource. A metric without that label is one of the whole server.
func readMetrics(text io.Reader) map[string]map[string]float64 {
	values := map[string]map[string]float64{}
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		line := lines.Text()
		name, _, _ := strings.Cut(line, "{")
		name, _, _ = strings.Cut(name, " ")
		what, ok := counted[name]
		found := metricLine.FindStringSubmatch(line)
		if !ok || found == nil || name == "apiserver_longrunning_requests" && !strings.Contains(line, `verb="WATCH"`) {
			continue
		}
		value, err := strconv.ParseFloat(found[3], 64)
		if err != nil {
			continue
		}
		resource := ""
		if label := resourceLabel.FindStringSubmatch(found[2]); label != nil {
			resource = label[1]
			resource = resource[strings.LastIndexByte(resource, '/')+1:]
			resource, _, _ = strings.Cut(resource, ".")
		}
		if values[resource] == nil {
			values[resource] = map[string]float64{}
		}
		values[resource][what] += value
	}
	return values
}

// State returns what is known: for each resource, and "" for the whole server, what a station shows.
func (m *Metrics) State() (trouble string, texts map[string]map[string]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	texts = map[string]map[string]string{}
	for resource, values := range m.values {
		shown := map[string]string{}
		for what, value := range values {
			station, unit, _ := strings.Cut(what, " ")
			switch {
			case what == "etcd seconds":
			case what == "etcd requests" && value > 0:
				shown["etcd"] = fmt.Sprintf("%.1f ms", 1000*values["etcd seconds"]/value)
			default:
				shown[strings.TrimSpace(station+" "+unit)] = strconv.FormatFloat(value, 'f', -1, 64)
			}
		}
		texts[resource] = shown
	}
	return m.trouble, texts
}
