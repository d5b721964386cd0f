package handlers

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	storage "listwatch/chapters/01-storage"
	registry "listwatch/chapters/07-registry"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
)

func registryPods() *registry.Resource { return registry.Pods() }

func chiContext() *chi.Context { return chi.NewRouteContext() }

// newColdAPI returns an API whose caches are never filled.
func newColdAPI(t *testing.T) *api {
	return buildAPI(t, func(r *registry.Resource, raw storage.Interface, p *probe.Probe) storage.Interface {
		config := r.CacherConfig()
		config.Clock = clock.RealClock{}
		_, cached, err := registry.StorageWithCacher(raw, config)
		require.NoError(t, err)
		return cached
	})
}

// stuck is a storage whose gets last until their context ends, whose deletes panic, and whose watch is a given one.
type stuck struct {
	resource *registry.Resource
	watching watch.Interface
}

func (s stuck) Describe() *registry.Resource { return s.resource }
func (s stuck) New() runtime.Object          { return s.resource.NewFunc() }

func (s stuck) Get(ctx context.Context, _, _ string, _ *metav1.GetOptions) (runtime.Object, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (s stuck) Delete(context.Context, string, string, *metav1.DeleteOptions) (runtime.Object, bool, error) {
	panic("no <b>idea</b>")
}

func (s stuck) List(context.Context, string, *metainternalversion.ListOptions) (runtime.Object, error) {
	return s.resource.NewListFunc(), nil
}

func (s stuck) Watch(context.Context, string, *metainternalversion.ListOptions) (watch.Interface, error) {
	return s.watching, nil
}

func (s stuck) Create(ctx context.Context, _ string, _ runtime.Object,
	options *metav1.CreateOptions) (runtime.Object, error) {
	if options.FieldManager == "waits" {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return nil, io.ErrUnexpectedEOF
}

func stuckAPI(t *testing.T, s stuck, shutdown <-chan struct{}) *api {
	return clockedAPI(t, s, shutdown, clock.RealClock{})
}

// clockedAPI is stuckAPI in a world with a clock of its own. Its patience is the bubble's clock.
func clockedAPI(t *testing.T, s stuck, shutdown <-chan struct{}, world clock.WithTicker) *api {
	s.resource = registry.Pods()
	return &api{t: t, handler: New(Config{
		Storage: map[string]Storage{"pods": s}, Clock: world, Patience: clock.RealClock{},
		MinRequestTimeout: 30 * time.Minute, Shutdown: shutdown,
	})}
}

// hanging is an open watch on which nothing happens.
type hanging struct {
	watching *watch.FakeWatcher
	shutdown chan struct{}
	response *http.Response
}

func hang(t *testing.T) *hanging {
	t.Helper()
	h := &hanging{watching: watch.NewFakeWithChanSize(1000, false), shutdown: make(chan struct{})}
	client := stuckAPI(t, stuck{watching: h.watching}, h.shutdown).serve()
	response, err := client.Get("http://api" + podsPath + "?watch=1&timeoutSeconds=3600")
	require.NoError(t, err)
	h.response = response
	t.Cleanup(func() { response.Body.Close() })
	return h
}

func TestARequestThatTakesTooLongTimesOut(t *testing.T) {
	for query, want := range map[string]time.Duration{"": time.Minute, "?timeout=5s": 5 * time.Second,
		"?timeout=1h": time.Minute, "?timeout=0": time.Minute} {
		t.Run(query, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				started := time.Now()
				w := stuckAPI(t, stuck{}, nil).do("GET", podsPath+"/a"+query, "")
				wantStatus(t, w, 504, metav1.StatusReasonTimeout)
				assert.Equal(t, time.Since(started), want, "took")
			})
		})
	}
}

func TestAWriteTimesOutSooner(t *testing.T) {
	for query, want := range map[string]time.Duration{"": 34 * time.Second, "&timeout=5s": 5 * time.Second,
		"&timeout=40s": 34 * time.Second} {
		bubble.Test(t, func(t *testing.T) {
			started := time.Now()
			w := stuckAPI(t, stuck{}, nil).do("POST", podsPath+"?fieldManager=waits"+query,
				`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}`)
			wantStatus(t, w, 504, metav1.StatusReasonTimeout)
			assert.Equal(t, time.Since(started), want, "%q took", query)
		})
	}
}

func TestABodyThatDoesNotComeTimesOut(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		client := stuckAPI(t, stuck{}, nil).serve()
		body, half := io.Pipe()
		new(routine.Group).Go(context.Background(), "test.client", func(context.Context) {
			_,
				_ = half.Write([]byte(`{"kind":"Pod",`))
		})
		started := time.Now()
		response, err := client.Post("http://api"+podsPath, "application/json", body)
		half.Close()
		require.NoError(t, err)
		defer response.Body.Close()
		if took := time.Since(started); response.StatusCode != 504 || took != writeTimeout {
			t.Errorf("got %d after %v, want 504 after 34 seconds", response.StatusCode, took)
		}
	})
}

func TestAPanicBecomesAStatus(t *testing.T) {
	status := wantStatus(t, stuckAPI(t, stuck{}, nil).do("DELETE", podsPath+"/a", ""), 500,
		metav1.StatusReasonInternalError)
	assert.True(t, strings.Contains(status.Message, "panic"), "message: got %q", status.Message)
}

func TestAnErrorNobodyThoughtOfHasNoReason(t *testing.T) {
	wantStatus(t, stuckAPI(t, stuck{}, nil).do("POST", podsPath, podA), 500, "")
}

func TestWhatTheStorageCannotDoHasNoRoute(t *testing.T) {
	a := stuckAPI(t, stuck{}, nil)
	wantStatus(t, a.do("PATCH", podsPath+"/a", "{}"), 405, metav1.StatusReasonMethodNotAllowed)
	wantStatus(t, a.do("PUT", podsPath+"/a", podA), 405, metav1.StatusReasonMethodNotAllowed)
}

func TestTheLogHasNoCredentialsOfARequest(t *testing.T) {
	for query, want := range map[string]string{
		"":                                "",
		"?limit=1&continue=abc":           "?limit=1&continue=abc",
		"?access_token=hunter2&limit=1":   "?access_token=***&limit=1",
		"?%74oken=hunter2":                "?%74oken=***",
		"?X-Amz-Signature=hunter2&x":      "?X-Amz-Signature=***&***",
		"?labelSelector=app%3Dweb&pretty": "?labelSelector=app%3Dweb&pretty",
	} {
		t.Run(query, func(t *testing.T) {
			a := newAPI(t)
			a.do("GET", podsPath+query, "", "Authorization", "Bearer hunter2", "Cookie", "hunter2")
			for _, got := range a.recorded(probe.RequestReceived, probe.RequestAnswered) {
				assert.True(t, !strings.Contains(got, "hunter2") && strings.HasSuffix(got, "GET "+podsPath+want),
					"got %q, want it to end in %q", got, podsPath+want)
			}
		})
	}
}
