package listwatch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
	"listwatch/internal/server/pipenet"
)

func TestPathsAndParameters(t *testing.T) {
	base, _ := url.Parse("http://server:1/prefix/?x=y")
	c := NewRESTClient(Config{Base: base, Clock: clock.RealClock{}})
	seconds := int64(90)
	rows := []struct {
		request *Request
		want    string
	}{
		{c.Get().Resource("pods"), "/pods"},
		{c.Get().Namespace("default").Resource("pods"), "/namespaces/default/pods"},
		{c.Put().Namespace("default").Resource("pods").Name("a").SubResource("status"),
			"/namespaces/default/pods/a/status"},
		{c.Get().Resource("namespaces").Name("default"), "/namespaces/default"},
		{c.Get().Resource("pods").VersionedParams(&metav1.ListOptions{}), "/pods"},
		{
			c.Get().Resource("pods").VersionedParams(&metav1.ListOptions{FieldSelector: "spec.nodeName=n",
				LabelSelector: "a in (b,c)", Limit: 500}),
			"/pods?fieldSelector=spec.nodeName%3Dn&labelSelector=a+in+%28b%2Cc%29&limit=500",
		},
		{c.Get().Resource("pods").listOptions(&metav1.ListOptions{TimeoutSeconds: &seconds}),
			"/pods?timeout=1m30s&timeoutSeconds=90"},
		{c.Delete().Resource("pods").Param("a", "b&c"), "/pods?a=b%26c"},
	}
	for _, row := range rows {
		assert.Equal(t, "http://server:1/prefix/api/v1"+row.want, row.request.URL().String())
		assert.NoError(t, row.request.err, row.want)
	}
}

func TestMistakesAreReturnedBeforeAnythingIsSent(t *testing.T) {
	c := NewRESTClient(Config{Base: &url.URL{Scheme: "http", Host: "nowhere"}, Clock: clock.RealClock{},
		HTTP: &http.Client{Transport: refusing{errors.New("sent")}}})
	requests := map[string]*Request{
		"a name that leaves its place":      c.Get().Resource("pods").Name("../nodes"),
		"an escaped slash":                  c.Get().Resource("pods").Name("a%2fb"),
		"a dotted namespace":                c.Get().Namespace("..").Resource("pods"),
		"no name, so that all were deleted": c.Delete().Resource("pods").Name(""),
		"a body of unknown type":            c.Post().Resource("pods").Body(7),
	}
	for name, request := range requests {
		err := request.Do(t.Context()).Error()
		assert.True(t, err != nil && !strings.Contains(err.Error(), "sent"), "%s: Do: got %v, want the mistake", name,
			err)
		_, err = request.Watch(t.Context())
		assert.True(t, err != nil && !strings.Contains(err.Error(), "sent"), "%s: Watch: got %v, want the mistake",
			name, err)
	}
}

type refusing struct{ err error }

func (r refusing) RoundTrip(*http.Request) (*http.Response, error) { return nil, r.err }

func TestObjectsTravelAsJSON(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var headers []string
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			headers = append(headers, fmt.Sprint(r.Header["Accept"], r.Header["Content-Type"], r.Header["User-Agent"]))
			w.Header().Set("Content-Type", "application/json")
			if r.Method == http.MethodGet {
				fmt.Fprint(w,
					`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5"},`+
						`"items":[{"metadata":{"name":"a"}}]}`)
				return
			}
			_, _ = io.Copy(w, r.Body)
		})
		c := s.rest(func(c *Config) { c.UserAgent = "test" })
		var created corev1.Pod
		require.NoError(t, c.Post().Namespace("default").Resource("pods").Body(pod("a",
			"")).Do(t.Context()).Into(&created))
		assert.NoDiff(t, pod("a", ""), &created, "there and back")
		raw, err := c.Patch(types.MergePatchType).Namespace("default").Resource("pods").Name("a").Body([]byte(`{}`)).
			Do(t.Context()).Raw()
		assert.True(t, err == nil && string(raw) == "{}", "patch: got %s, %v, want {}", raw, err)
		obj := require.Value(c.ListWatch("pods", "", nil).List(t.Context(), metav1.ListOptions{}))(t)
		if list, ok := obj.(*corev1.PodList); !ok || list.ResourceVersion != "5" || len(list.Items) != 1 {
			t.Errorf("list: got %#v, want a PodList at 5 of one", obj)
		}
		want := []string{
			"[application/json] [application/json] [test]", "[application/json] [application/merge-patch+json] [test]",
			"[application/json] [] [test]",
		}
		assert.NoDiff(t, want, headers, "headers")
	})
}

func TestListWatchPutsSelectorsIntoEveryRequest(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := serve(t, frameless())
		lw := s.rest(nil).ListWatch("pods", "default", func(o *metav1.ListOptions) {
			o.FieldSelector = "spec.nodeName=n"
		})
		_, _ = lw.List(t.Context(), metav1.ListOptions{ResourceVersion: "0", Limit: 500})
		sendInitialEvents, seconds := true, int64(590)
		w := require.Value(lw.Watch(t.Context(), metav1.ListOptions{
			SendInitialEvents: &sendInitialEvents, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
			AllowWatchBookmarks: true, TimeoutSeconds: &seconds}))(t)
		collect(w)
		want := "0s GET /api/v1/namespaces/default/pods?fieldSelector=spec.nodeName%3Dn&limit=500&resourceVersion=0\n" +
			"0s GET /api/v1/namespaces/default/pods?allowWatchBookmarks=true&fieldSelector=spec.nodeName%3Dn" +
			"&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&timeout=9m50s&timeoutSeconds=590&watch=true"
		assert.NoDiff(t, want, s.log(), "asked")
	})
}

func answer(code int, contentType, retryAfter, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		if retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		w.WriteHeader(code)
		fmt.Fprint(w, body)
	}
}

func TestErrorsOfTheServerComeBackAsStatusErrors(t *testing.T) {
	gone, _ := runtime.Encode(encoder, status(expired()))
	rows := []struct {
		name    string
		handler http.HandlerFunc
		want    func(error) bool
		text    string
	}{
		{"a Status", answer(410, "application/json", "", string(gone)), apierrors.IsResourceExpired,
			"too old resource version: 1 (9)"},
		{"text", answer(403, "text/plain", "", "go away\n"), apierrors.IsForbidden, "go away"},
		{"a page of a proxy", answer(502, "text/html", "", "<h1>Bad Gateway</h1>"), func(err error) bool {
			return code(err) == 502
		}, "<h1>Bad Gateway</h1>"},
		{"bytes", answer(500, "application/octet-stream", "", "\x00\x01"), apierrors.IsInternalError, "unknown"},
		{"a long text", answer(500, "text/plain", "", strings.Repeat("x", 1<<20)), func(err error) bool {
			return len(err.Error()) < 5000
		}, "xxx"},
		{"429 that does not say when", answer(429, "text/plain", "", "busy"), apierrors.IsTooManyRequests,
			"too many requests"},
		{"a Status of success with a code of failure", answer(404, "application/json", "",
			`{"kind":"Status","apiVersion":"v1","status":"Success"}`), apierrors.IsNotFound, ""},
	}
	for _, row := range rows {
		bubble.Run(t, row.name, func(t *testing.T) {
			s := serve(t, row.handler)
			lw := s.rest(nil).ListWatch("pods", "", nil)
			_, listErr := lw.List(t.Context(), metav1.ListOptions{})
			_, watchErr := lw.Watch(t.Context(), metav1.ListOptions{})
			for verb, err := range map[string]error{"list": listErr, "watch": watchErr} {
				var statusErr *apierrors.StatusError
				assert.True(t, errors.As(err, &statusErr) && row.want(err) && strings.Contains(err.Error(), row.text),
					"%s: got %T %.200v", verb, err, err)
			}
		})
	}
}

func code(err error) int {
	var e apierrors.APIStatus
	errors.As(err, &e)
	return int(e.Status().Code)
}

func TestStreamOfAnotherContentTypeIsRefused(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			answer(200, "application/vnd.kubernetes.protobuf;stream=watch", "", "k8s")(w, r)
			http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
		_, err := s.rest(nil).ListWatch("pods", "", nil).Watch(t.Context(), metav1.ListOptions{})
		assert.True(t, err != nil && strings.Contains(err.Error(), "protobuf"),
			"got %v, want an error that names the content type", err)
		s.wantIdle(t)
	})
}

// times answers the first n requests with one handler and the others with another.
func times(n int, first, then http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if n > 0 {
			n--
			first(w, r)
			return
		}
		then(w, r)
	}
}

func hangUp(w http.ResponseWriter, r *http.Request) {
	conn, _, _ := http.NewResponseController(w).Hijack()
	conn.Close()
}

var emptyList = answer(200, "application/json", "", `{"kind":"PodList","apiVersion":"v1"}`)

func TestRetries(t *testing.T) {
	busy := answer(429, "text/plain", "2", "busy")
	rows := []struct {
		name    string
		verb    string
		handler http.HandlerFunc
		want    string // how often, for how long, and how it ended
	}{
		{"429 that says when", "list", times(3, busy, emptyList), "4 attempts in 6s: ok"},
		{"503 that says when", "list", times(1, answer(503, "text/plain", "1", ""), emptyList), "2 attempts in 1s: ok"},
		{"503 that does not", "list", times(1, answer(503, "text/plain", "", ""), emptyList),
			"1 attempts in 0s: ServiceUnavailable"},
		{"a date is not understood", "list", times(1, answer(503, "text/plain", "Wed, 21 Oct 2015 07:28:00 GMT", ""),
			emptyList), "1 attempts in 0s: ServiceUnavailable"},
		{"404 that says when", "list", times(1, answer(404, "text/plain", "1", ""), emptyList),
			"1 attempts in 0s: NotFound"},
		{"ten times and no more", "list", busy, "11 attempts in 20s: TooManyRequests"},
		{"a connection that broke", "list", times(2, hangUp, emptyList), "3 attempts in 2s: ok"},
		{"a write is not repeated when the connection broke", "create", times(1, hangUp, emptyList),
			"1 attempts in 0s: EOF"},
		{"a write is repeated when the server asks for it", "create", times(1, busy, emptyList),
			"2 attempts in 2s: ok"},
		{"a watch after 429", "watch", times(1, busy, frameless()), "2 attempts in 2s: ok"},
		{"a watch on a connection that broke", "watch", times(2, hangUp, frameless()), "3 attempts in 2s: ok"},
		{"a watch on a connection that keeps breaking is closed already", "watch", hangUp, "11 attempts in 10s: ok"},
	}
	for _, row := range rows {
		bubble.Run(t, row.name, func(t *testing.T) {
			s := serve(t, row.handler)
			// A connection per request: the transport itself repeats a GET on one that it had kept.
			s.client.Transport.(*http.Transport).DisableKeepAlives = true
			start := time.Now()
			ended := ending(do(t.Context(), s.rest(nil), row.verb))
			asked := strings.Count(s.log(), "/api/v1/pods")
			assert.Equal(t, row.want, fmt.Sprintf("%d attempts in %v: %s", asked, time.Since(start), ended))
		})
	}
}

func do(ctx context.Context, c *RESTClient, verb string) error {
	switch verb {
	case "list":
		return c.Get().Resource("pods").Do(ctx).Error()
	case "create":
		return c.Post().Resource("pods").Body(pod("a", "")).Do(ctx).Error()
	default:
		w, err := c.Get().Resource("pods").Watch(ctx)
		if err == nil {
			collect(w)
		}
		return err
	}
}

func ending(err error) string {
	if err == nil {
		return "ok"
	}
	if reason := apierrors.ReasonForError(err); reason != metav1.StatusReasonUnknown {
		return string(reason)
	}
	if errors.Is(err, io.EOF) {
		return "EOF"
	}
	return err.Error()
}

func TestAttemptsShareAConnectionIfTheAnswerIsShort(t *testing.T) {
	for size, want := range map[int]int{100: 1, 1 << 20: 2} {
		bubble.Test(t, func(t *testing.T) {
			s := serve(t, times(1, answer(429, "text/plain", "1", strings.Repeat("x", size)), emptyList))
			require.NoError(t, do(t.Context(), s.rest(nil), "list"))
			assert.Equal(t, want, int(s.nDials.Load()), "connections, with an answer of %d bytes", size)
			s.wantIdle(t)
		})
	}
}

func TestRefusedConnectionIsNotRetried(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		listener := pipenet.Listen()
		listener.Close()
		c := NewRESTClient(Config{Base: &url.URL{Scheme: "http", Host: "server"}, HTTP: listener.Client(),
			Clock: clock.RealClock{}})
		start := time.Now()
		for _, verb := range []string{"list", "watch"} {
			// The reflector recognises it, and waits.
			err := do(t.Context(), c, verb)
			assert.True(t, errors.Is(err, syscall.ECONNREFUSED), "%s: got %v, want connection refused", verb, err)
		}
		assert.Equal(t, 0, time.Since(start), "it took")
	})
}

func TestClientLimitsItself(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := serve(t, emptyList)
		c := s.rest(func(c *Config) { c.QPS, c.Burst = 2, 3 })
		for range 6 {
			require.NoError(t, do(t.Context(), c, "list"))
		}
		want := strings.Fields("0s 0s 0s 500ms 1s 1.5s")
		assert.NoDiff(t, want, firstFields(s.log()), "asked at")
		time.Sleep(time.Hour) // a bucket holds no more than the burst
		for range 4 {
			_ = do(t.Context(), c, "list")
		}
		want = strings.Fields("1h0m1.5s 1h0m1.5s 1h0m1.5s 1h0m2s")
		assert.NoDiff(t, want, firstFields(s.log()), "asked after an hour at")
	})
}

func TestWatchesAreNotLimitedButTheirRetriesAre(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := serve(t, times(5, frameless(), times(1, answer(429, "text/plain", "0", ""), frameless())))
		c := s.rest(func(c *Config) { c.QPS, c.Burst = 0.125, 1 })
		c.limiter.AllowN(time.Now(), 1)
		for range 6 {
			require.NoError(t, do(t.Context(), c, "watch"))
		}
		assert.NoDiff(t, strings.Fields("0s 0s 0s 0s 0s 0s 8s"), firstFields(s.log()), "asked at")
	})
}

func TestCancelledWaitGivesItsTokenBack(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := serve(t, emptyList).rest(func(c *Config) { c.QPS, c.Burst = 1, 1 })
		c.limiter.AllowN(time.Now(), 1)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(500*time.Millisecond, cancel)
		err := c.Get().tryThrottle(ctx)
		assert.True(t, errors.Is(err, context.Canceled), "got %v, want context.Canceled", err)
		start := time.Now()
		require.NoError(t, c.Get().tryThrottle(t.Context()))
		assert.Equal(t, 500*time.Millisecond, time.Since(start), "the next waited")
	})
}

func firstFields(log string) []string {
	var fields []string
	for line := range strings.Lines(log) {
		fields = append(fields, strings.Fields(line)[0])
	}
	return fields
}
