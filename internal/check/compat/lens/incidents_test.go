package lens

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/eventually"
	"listwatch/internal/check/require"
	"listwatch/internal/play/lens"
)

// world is a lens before a server whose history of configmaps is short.
type world struct {
	lens   *program.Viz
	server *program.Viz
}

// start starts the server, a writer that changes configmaps there all the time, and the lens. Between the two stands
// what tells one client to wait.
func start(t *testing.T) *world {
	t.Helper()
	w := &world{server: program.StartViz(t, "-flight=off", "-demo=false", "-controllers=false", "-ring-capacity=10")}
	target, err := url.Parse(w.server.URL)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.FlushInterval = -1
	busy := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.UserAgent() == "impatient" {
			out.Header().Set("Retry-After", "1")
			http.Error(out, "too many requests", http.StatusTooManyRequests)
			return
		}
		r.Host = target.Host
		proxy.ServeHTTP(out, r)
	}))
	t.Cleanup(func() { eventually.Closes(busy) })
	w.lens = program.StartViz(t, "-server", busy.URL, "-server-writes")
	return w
}

// client is a client without client-go: what is wrong with it stands in the test.
type client struct {
	name string
	base string
	http *http.Client
}

func newClient(t *testing.T, base, name string) *client {
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if tcp, ok := conn.(*net.TCPConn); ok {
			tcp.SetReadBuffer(4 << 10)
		}
		return conn, err
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &client{name: name, base: base, http: &http.Client{Transport: transport}}
}

func (c *client) open(t *testing.T, method, path, body string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, c.base+path, strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("User-Agent", c.name)
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	response, err := c.http.Do(request)
	require.NoError(t, err)
	return response
}

func (c *client) do(t *testing.T, method, path, body string) string {
	t.Helper()
	response := c.open(t, method, path, body)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(answer)
}

// list returns the version of a list.
func (c *client) list(t *testing.T, path string) string {
	t.Helper()
	var list metav1.PartialObjectMetadataList
	require.NoError(t, json.Unmarshal([]byte(c.do(t, http.MethodGet, path, "")), &list))
	return list.ResourceVersion
}

// gone watches from a version until that is too old, and returns what the 410 says.
func (c *client) gone(t *testing.T, path string) string {
	t.Helper()
	for {
		if answer := c.do(t, http.MethodGet, path, ""); strings.Contains(answer, `"code":410`) {
			return answer
		}
	}
}

const configmaps, pods = "/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/pods"

func configMap(name, data string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"x":%q}}`, name, data)
}

// makeNoise changes a configmap all the time, so that versions of configmaps grow old.
func (w *world) makeNoise(t *testing.T) {
	c := newClient(t, w.server.URL, "noise")
	c.do(t, http.MethodPost, configmaps, configMap("noise", ""))
	done, stop := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
			}
			request, err := http.NewRequest(http.MethodPatch, c.base+configmaps+"/noise",
				strings.NewReader(fmt.Sprintf(`{"data":{"x":"%d"}}`, n)))
			if err != nil {
				t.Error(err)
				return
			}
			request.Header.Set("Content-Type", "application/merge-patch+json")
			if response, err := c.http.Do(request); err == nil {
				response.Body.Close()
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-done })
}

// inform runs real informers of configmaps with a tweak, n of them.
func (w *world) inform(t *testing.T, name string, n int, tweak func(*metav1.ListOptions)) {
	config := &rest.Config{Host: w.lens.URL, UserAgent: name, QPS: -1}
	transport := &http.Transport{}
	config.Transport = transport
	set := kubernetes.NewForConfigOrDie(config)
	ctx, cancel := context.WithCancel(t.Context())
	var factories []informers.SharedInformerFactory
	for range n {
		factory := informers.NewSharedInformerFactoryWithOptions(set, 0, informers.WithTweakListOptions(tweak))
		factory.Core().V1().ConfigMaps().Informer()
		factory.StartWithContext(ctx)
		factories = append(factories, factory)
	}
	t.Cleanup(func() {
		cancel()
		for _, factory := range factories {
			factory.Shutdown()
		}
		transport.CloseIdleConnections()
	})
}

// finds waits until the lens says that of a client, and returns the sentence.
func (w *world) finds(t *testing.T, name, id string) {
	t.Helper()
	program.Eventually(t, time.Minute, func() (bool, string) {
		var report lens.Report
		w.lens.Get(t, "/viz/lens", &report)
		said := ""
		for _, finding := range report.Findings {
			if finding.Client == name {
				said += finding.ID + ": " + finding.Sentence + "\n"
			}
			if finding.Client == name && finding.ID == id {
				t.Log(finding.Sentence)
				return true, ""
			}
		}
		return false, "said: " + said
	})
}

func TestEveryIncidentIsTold(t *testing.T) {
	w := start(t)
	w.makeNoise(t)
	short := int64(1)
	for id, play := range map[string]func(t *testing.T, c *client){
		"no-bookmarks": func(t *testing.T, c *client) {
			w.inform(t, c.name, 1, func(o *metav1.ListOptions) {
				o.LabelSelector, o.TimeoutSeconds = "app=quiet", &short
				o.AllowWatchBookmarks = o.SendInitialEvents != nil
			})
		},
		"polls": func(t *testing.T, c *client) {
			for range 16 { // at once: fewer could be those of a command
				c.list(t, configmaps)
			}
		},
		"no-initial-end": func(t *testing.T, c *client) {
			watch := c.open(t, http.MethodGet, configmaps+
				"?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&labelSelector=app%3Dquiet", "")
			t.Cleanup(func() { watch.Body.Close() })
			go io.Copy(io.Discard, watch.Body)
		},
		"two-informers": func(t *testing.T, c *client) { w.inform(t, c.name, 2, func(*metav1.ListOptions) {}) },
		"slow-reader": func(t *testing.T, c *client) {
			direct := newClient(t, w.server.URL, "filler")
			direct.do(t, http.MethodPost, "/api/v1/namespaces",
				`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"large"}}`)
			for n := range 14 {
				direct.do(t, http.MethodPost, "/api/v1/namespaces/large/configmaps", configMap(fmt.Sprint("c", n),
					strings.Repeat("x", 900_000)))
			}
			watch := c.open(t, http.MethodGet, "/api/v1/namespaces/large/configmaps?watch=true&resourceVersion=0", "")
			t.Cleanup(func() { watch.Body.Close() })
		},
		"hot-loop": func(t *testing.T, c *client) {
			c.do(t, http.MethodPost, configmaps, configMap("hot", ""))
			for n := range 40 {
				c.do(t, http.MethodPatch, configmaps+"/hot", fmt.Sprintf(`{"data":{"n":"%d"}}`, n))
			}
		},
		"answers-itself": func(t *testing.T, c *client) {
			c.do(t, http.MethodPost, configmaps, configMap("echo", ""))
			echo := configmaps + "?watch=true&fieldSelector=metadata.name%3Decho&resourceVersion="
			watch := c.open(t, http.MethodGet, echo+c.list(t, configmaps), "")
			defer watch.Body.Close()
			events := bufio.NewReader(watch.Body)
			for n := range 15 {
				c.do(t, http.MethodPatch, configmaps+"/echo", fmt.Sprintf(`{"data":{"n":"%d"}}`, n))
				_, err := events.ReadString('\n')
				assert.NoError(t, err)
			}
		},
		"changes-nothing": func(t *testing.T, c *client) {
			c.do(t, http.MethodPost, configmaps, configMap("same", ""))
			for range 12 {
				c.do(t, http.MethodPatch, configmaps+"/same", `{"data":{"n":"1"}}`)
			}
		},
		"same-conflict": func(t *testing.T, c *client) {
			c.do(t, http.MethodPost, configmaps, configMap("stale", ""))
			for range 6 {
				c.do(t, http.MethodPatch, configmaps+"/stale", `{"metadata":{"resourceVersion":"1"}}`)
				<-time.After(500 * time.Millisecond) // its pace
			}
		},
		"deaf-to-deletions": func(t *testing.T, c *client) {
			for range 3 {
				c.do(t, http.MethodGet, pods+"?watch=true&timeoutSeconds=1&resourceVersion=0", "")
			}
		},
		"jumps-forward": func(t *testing.T, c *client) {
			watch := configmaps + "?watch=true&allowWatchBookmarks=true&timeoutSeconds=1&resourceVersion="
			said := c.gone(t, watch+c.list(t, configmaps))
			_, newest, _ := strings.Cut(said, "too old resource version: ")
			_, newest, _ = strings.Cut(newest, "(")
			newest, _, _ = strings.Cut(newest, ")")
			c.do(t, http.MethodGet, watch+newest, "")
		},
		"stale-again": func(t *testing.T, c *client) {
			stale := configmaps + "?watch=true&timeoutSeconds=1&resourceVersion=" + c.list(t, configmaps)
			for range 5 {
				c.gone(t, stale)
			}
		},
		"no-version": func(t *testing.T, c *client) {
			for range 2 {
				c.do(t, http.MethodGet, pods+"?watch=true&timeoutSeconds=1", "")
			}
		},
		"tweak": func(t *testing.T, c *client) {
			w.inform(t, c.name, 1, func(o *metav1.ListOptions) { o.ResourceVersion, o.TimeoutSeconds = "", &short })
		},
		"ignores-retry-after": func(t *testing.T, c *client) {
			for range 3 {
				c.do(t, http.MethodGet, configmaps, "")
			}
		},
		"goes-back": func(t *testing.T, c *client) {
			c.do(t, http.MethodPost, pods,
				`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"back"},"spec":{"containers":[{"name":"c","image":"c:1"}]}}`)
			watch := c.list(t, pods)
			c.do(t, http.MethodPatch, pods+"/back", `{"metadata":{"labels":{"a":"b"}}}`)
			for range 3 {
				stream := c.open(t, http.MethodGet, pods+"?watch=true&timeoutSeconds=2&resourceVersion="+watch, "")
				_, err := bufio.NewReader(stream.Body).ReadString('\n')
				assert.NoError(t, err)
				io.Copy(io.Discard, stream.Body)
				stream.Body.Close()
			}
		},
	} {
		name := id
		if id == "ignores-retry-after" {
			name = "impatient"
		}
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			play(t, newClient(t, w.lens.URL, name))
			w.finds(t, name, id)
		})
	}
}

// TestAClientThatDoesNothingWrongIsLeftAlone runs an ordinary informer beside the noise, whose history is too short for
// it: it is told 410, and heals as it should.
func TestAClientThatDoesNothingWrongIsLeftAlone(t *testing.T) {
	w := start(t)
	w.makeNoise(t)
	short := int64(1)
	w.inform(t, "good", 1, func(o *metav1.ListOptions) { o.LabelSelector, o.TimeoutSeconds = "app=quiet", &short })
	program.Eventually(t, time.Minute, func() (bool, string) {
		var report lens.Report
		w.lens.Get(t, "/viz/lens", &report)
		require.True(t, len(report.Findings) == 0, "got %+v", report.Findings)
		var log struct{ Records []struct{ Text string } }
		w.lens.Get(t, "/viz/records?point=RequestReceived", &log)
		states, watches := 0, 0
		for _, r := range log.Records {
			if strings.Contains(r.Text, "sendInitialEvents=true") {
				states++
			} else if strings.Contains(r.Text, "watch=true") {
				watches++
			}
		}
		return states > 2 && watches > 2, fmt.Sprintf("%d first states, %d watches", states, watches)
	})
}

func TestMain(m *testing.M) {
	// What the real client-go says about the mistakes it is made to make is not about our program.
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	goleak.VerifyTestMain(m)
}
