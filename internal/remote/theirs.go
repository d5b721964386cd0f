package remote

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

// theirPeriod is how often a server is asked for its metrics, and maxMetrics how much of them is read.
const (
	theirPeriod = 5 * time.Second
	maxMetrics  = 64 << 20
)

// Theirs is what a server that is not ours says of itself at /metrics.
type Theirs struct {
	// Set by NewTheirs, never changed.
	url    string
	client *http.Client
	clock  clock.WithTicker

	mu      sync.Mutex // guards the fields below; innermost
	trouble string
	values  map[string]map[string]float64 // by resource, "" for the whole server, and station with what is counted there
}

// NewTheirs returns what has not asked yet.
func NewTheirs(servers []*url.URL, clk clock.WithTicker) *Theirs {
	return &Theirs{url: servers[0].JoinPath("/metrics").String(), client: newClient(servers), clock: clk}
}

// Run asks until ctx is done.
func (t *Theirs) Run(ctx context.Context) {
	defer t.client.CloseIdleConnections()
	ticker := t.clock.NewTicker(theirPeriod)
	defer ticker.Stop()
	for {
		t.ask(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

func (t *Theirs) ask(ctx context.Context) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, t.url, nil)
	if err != nil {
		return // the URL was parsed before
	}
	response, err := t.client.Do(request)
	if err != nil {
		t.set("/metrics cannot be reached: "+plainError(err), nil)
		return
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.set("/metrics: "+response.Status+". To read it takes the right to get the nonResourceURL /metrics", nil)
		return
	}
	t.set("", readMetrics(io.LimitReader(response.Body, maxMetrics)))
}

func (t *Theirs) set(trouble string, values map[string]map[string]float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.trouble, t.values = trouble, values
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
func (t *Theirs) State() (trouble string, texts map[string]map[string]string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	texts = map[string]map[string]string{}
	for resource, values := range t.values {
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
	return t.trouble, texts
}
