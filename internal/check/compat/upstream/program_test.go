package upstream

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	endpointmetrics "k8s.io/apiserver/pkg/endpoints/metrics"
	cachermetrics "k8s.io/apiserver/pkg/storage/cacher/metrics"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/restclient" // registers its metrics

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
)

// alone are the flags of a program that does nothing by itself.
var alone = []string{"-demo=false", "-controllers=false"}

// notes is what went over the wire, seen from the client.
type notes struct {
	next http.RoundTripper

	mu       sync.Mutex // guards requests
	requests []string   // "GET /api/v1/pods?limit=500", with "protobuf" behind it if the body is
}

// RoundTrip implements http.RoundTripper.
func (n *notes) RoundTrip(r *http.Request) (*http.Response, error) {
	line := r.Method + " " + r.URL.RequestURI()
	if strings.Contains(r.Header.Get("Content-Type"), "protobuf") {
		line += " protobuf"
	}
	n.mu.Lock()
	n.requests = append(n.requests, line)
	n.mu.Unlock()
	return n.next.RoundTrip(r)
}

// read returns the requests since the last call.
func (n *notes) read() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	requests := n.requests
	n.requests = nil
	return requests
}

// configFor returns the configuration of a client that is not slowed down, and what it asks.
func configFor(v *program.Viz) (*rest.Config, *notes) {
	n := &notes{}
	return &rest.Config{Host: v.URL, QPS: -1, WrapTransport: func(next http.RoundTripper) http.RoundTripper {
		n.next = next
		return n
	}}, n
}

// protobuf returns config of a client that sends protobuf, and takes it where it is to be had.
func protobuf(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return config
}

func clientset(tb testing.TB, v *program.Viz) *kubernetes.Clientset {
	tb.Helper()
	config, _ := configFor(v)
	return must(kubernetes.NewForConfig(protobuf(config)))
}

// churn creates, changes and deletes ConfigMaps in two namespaces from several sides at once.
func churn(t *testing.T, v *program.Viz, seed uint64, n int) {
	t.Helper()
	client := clientset(t, v)
	var sides sync.WaitGroup
	for side := range uint64(4) {
		sides.Go(func() { churnSide(t, client, rand.New(rand.NewPCG(seed, side)), n) })
	}
	sides.Wait()
}

func churnSide(t *testing.T, client kubernetes.Interface, random *rand.Rand, n int) {
	for i := range n {
		maps := client.CoreV1().ConfigMaps([]string{"default", "other"}[random.IntN(2)])
		name := fmt.Sprintf("c%d", random.IntN(15))
		var err error
		switch random.IntN(4) {
		case 0, 1:
			_, err = maps.Create(t.Context(), configMap(name, "turn", fmt.Sprint(i)), metav1.CreateOptions{})
		case 2:
			patch := fmt.Appendf(nil, `{"data":{"turn":"%d"}}`, i)
			_, err = maps.Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
		case 3:
			err = maps.Delete(t.Context(), name, metav1.DeleteOptions{})
		}
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) {
			t.Errorf("write %d to %s: %v", i, name, err)
			return
		}
	}
}

func configMap(name, key, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{key: value}}
}

// stored returns every ConfigMap as a consistent read shows it: "namespace/name@version".
func stored(t *testing.T, v *program.Viz) []string {
	t.Helper()
	list := must(clientset(t, v).CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{}))
	var lines []string
	for i := range list.Items {
		lines = append(lines, versionedName(&list.Items[i]))
	}
	slices.Sort(lines)
	return lines
}

// nameOf returns "namespace/name@version" of any object.
func versionedName(obj any) string {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return fmt.Sprintf("%T", obj)
	}
	return fmt.Sprintf("%s/%s@%s", accessor.GetNamespace(), accessor.GetName(), accessor.GetResourceVersion())
}

// namesOf returns the names of what a store holds, sorted.
func namesOf(objs []any) []string {
	names := map[string]bool{}
	for _, obj := range objs {
		names[versionedName(obj)] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// endsEqual waits until a store holds what is stored.
func endsEqual(t *testing.T, v *program.Viz, list func() []any) {
	t.Helper()
	want := stored(t, v)
	program.Eventually(t, patience, func() (bool, string) {
		got := namesOf(list())
		return slices.Equal(got, want), fmt.Sprintf("\ngot  %v\nwant %v", got, want)
	})
}

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

// ask returns what is at a path.
func ask(t *testing.T, v *program.Viz, path string) string {
	t.Helper()
	response := must(http.Get(v.URL + path))
	defer response.Body.Close()
	return string(must(io.ReadAll(response.Body)))
}

// TestMetricsHaveTheirNamesAndLabels compares what the running program shows with what upstream has registered: an
// operator who has a dashboard for the one has it for the other.
func TestMetricsHaveTheirNamesAndLabels(t *testing.T) {
	t.Parallel()
	v := program.StartViz(t)
	must(clientset(t, v).CoreV1().ConfigMaps("default").Create(t.Context(), configMap("a", "k", "v"),
		metav1.CreateOptions{DryRun: []string{"All"}}))
	shown := ask(t, v, "/metrics")
	want := `dry_run="All",group="",resource="configmaps"`
	assert.True(t, strings.Contains(shown, want), "a dry run is not told from others: no %s", want)
	ours := map[string]string{}
	for _, line := range sample.FindAllStringSubmatch(shown, -1) {
		name := line[1]
		if strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") ||
			name == "listwatch_watch_cache_store_errors_total" { // ours: upstream only logs what a store refuses
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
