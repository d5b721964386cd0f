package snippets

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
)

// TestThePageHasTheCodeThatRuns checks that docs/SNIPPETS.md has all declarations of snippets_test.go, in their order.
func TestThePageHasTheCodeThatRuns(t *testing.T) {
	source := string(require.Value(os.ReadFile("snippets_test.go"))(t))
	page := string(require.Value(os.ReadFile("../../../../docs/SNIPPETS.md"))(t))
	shown := ""
	for _, block := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(page, -1) {
		assert.True(t, strings.Contains(source, "\n"+block[1]), "snippets_test.go does not have\n%s", block[1])
		shown += block[1] + "\n"
	}
	_, declared, _ := strings.Cut(source, "\n)\n\n")
	assert.Equal(t, declared, strings.TrimSuffix(shown, "\n"), "all of the page's code, in its order")
}

func podNamed(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.com/c"}}},
	}
}

// start starts the program with a ring of five events and returns clients for it.
func start(t *testing.T) (*program.Viz, kubernetes.Interface, typed.PodInterface) {
	v := program.StartViz(t, "-demo=false", "-controllers=false", "-ring-capacity=5", "-flight=off")
	set := kubernetes.NewForConfigOrDie(&rest.Config{Host: v.URL, QPS: -1})
	return v, set, set.CoreV1().Pods("default")
}

func create(t *testing.T, pods typed.PodInterface, name string) *corev1.Pod {
	t.Helper()
	return require.Value(pods.Create(t.Context(), podNamed(name), metav1.CreateOptions{}))(t)
}

func TestInformersAndHandlers(t *testing.T) {
	_, set, pods := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	informer := informers.NewSharedInformerFactory(set, 0).Core().V1().Pods().Informer()
	first := create(t, pods, "first")
	soon, stop := context.WithTimeout(ctx, 50*time.Millisecond)
	defer stop()
	err := waitForWrite(soon, informer.GetStore(), first) // no informer fills the store yet
	assert.True(t, err != nil && soon.Err() != nil, "a store that is empty: %v", err)
	go informer.RunWithContext(ctx)

	var calls, left atomic.Int32
	ended := make(chan error)
	slow := cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
		calls.Add(1)
		<-time.After(20 * time.Millisecond)
		left.Add(1)
	}}
	handling, end := context.WithCancel(ctx)
	go func() { ended <- handle(handling, informer, slow) }()
	for n := range 20 {
		answer := create(t, pods, fmt.Sprint("pod-", n))
		require.NoError(t, waitForWrite(ctx, informer.GetStore(), answer))
		_, found, _ := informer.GetStore().GetByKey("default/" + answer.Name)
		require.True(t, found, "%s is not in the store", answer.Name)
	}
	end()
	err = <-ended // ctx's error, if handle was still waiting for the handler's first state
	require.True(t, err == nil || errors.Is(err, context.Canceled), "handle: %v", err)
	assert.Equal(t, calls.Load(), left.Load(), "handle has returned, and a call has not")
	err = waitForWrite(ctx, informer.GetStore(), &corev1.Pod{})
	assert.True(t, err != nil, "a version that no write has")
	cancel()
}

func TestTombstones(t *testing.T) {
	here, there := podNamed("a"), podNamed("a")
	here.Spec.NodeName, there.Spec.NodeName = "here", "there"
	var gone []string
	note := func(key string) { gone = append(gone, key) }
	for _, handler := range []cache.ResourceEventHandler{deletionsOn("here", note),
		&typedHandler{typedDeletionsOn("here", note)}} {
		gone = nil
		handler.OnDelete(here)
		handler.OnDelete(there)
		handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "default/old", Obj: here})
		handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "default/elsewhere", Obj: there})
		handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "default/unknown"})
		handler.OnUpdate(here, there) // a filtering handler reports this update as a deletion
		assert.Equal(t, "[default/a default/old default/unknown default/a]", fmt.Sprint(gone))
	}
}

// typedHandler calls a typed handler as the informer does.
type typedHandler struct {
	cache.TypedResourceEventHandler[*corev1.Pod]
}

func (h *typedHandler) OnAdd(obj any, isInInitialList bool) {}
func (h *typedHandler) OnUpdate(old, now any) {
	h.TypedResourceEventHandler.OnUpdate(old.(*corev1.Pod), now.(*corev1.Pod))
}
func (h *typedHandler) OnDelete(obj any) {
	deleted := cache.DeletedObject[*corev1.Pod]{OptionalObj: podOf(obj)}
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		deleted.FinalStateUnknown = &tombstone
	}
	h.TypedResourceEventHandler.OnDelete(deleted)
}

func TestStreamsAndPages(t *testing.T) {
	v, _, pods := start(t)
	old := create(t, pods, "pod-0").ResourceVersion
	for n := range 7 { // more than the ring holds
		create(t, pods, fmt.Sprint("pod-", n+1))
	}
	for _, version := range []string{"", "0"} {
		assert.True(t, retried(t.Context(), pods, version, nil) != nil, "a RetryWatcher began at %q", version)
	}
	err := retried(t.Context(), pods, old, nil)
	assert.True(t, apierrors.IsResourceExpired(err), "a RetryWatcher at an old version: %v", err)

	watches := 0
	behind := asking(v, func(query url.Values) { // makes follow's first watch begin at the old version
		if query.Has("watch") {
			if watches++; watches == 1 {
				query.Set("resourceVersion", old)
			}
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	var lists []int
	var changed []string
	_ = follow(ctx, behind, func(all []corev1.Pod) {
		if lists = append(lists, len(all)); len(lists) == 2 {
			create(t, pods, "late")
		}
	}, func(event watch.Event) {
		changed = append(changed, string(event.Type)+" "+event.Object.(*corev1.Pod).Name)
		cancel()
	})
	assert.Equal(t, "[8 8] [ADDED late]", fmt.Sprint(lists, changed), "lists, and what the watch brought")

	answer := require.Value(http.Post(v.URL+"/viz/knobs", "application/json",
		strings.NewReader(`{"name": "etcd.compact"}`)))(t)
	answer.Body.Close()
	asked := 0
	behind = asking(v, func(query url.Values) { // requests pages of five, and the second page at the old version
		query.Set("limit", "5")
		if asked++; asked == 2 {
			token := fmt.Sprintf(`{"v": "meta.k8s.io/v1", "rv": %s, "start": "pod-3\u0000"}`, old)
			query.Set("continue", base64.RawURLEncoding.EncodeToString([]byte(token)))
		}
	})
	var read []int
	same, err := readPages(t.Context(), behind, func(page []corev1.Pod) { read = append(read, len(page)) })
	assert.True(t, err == nil && !same && fmt.Sprint(read) == "[5 4]" && asked == 3,
		"read %d pods in %d requests, same version %v, %v", read, asked, same, err)
}

// TestAWorkerTriesAgainAndGivesUp makes each attempt fail: after ten retries, work must forget the key's failures.
func TestAWorkerTriesAgainAndGivesUp(t *testing.T) {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Microsecond, time.Microsecond)
	queue := workqueue.NewTypedRateLimitingQueue(limiter)
	queue.Add("broken")
	attempts := 0
	work(t.Context(), queue, func(context.Context, string) error {
		if attempts++; attempts == 11 {
			queue.ShutDown()
		}
		return errors.New("broken")
	})
	assert.Equal(t, 11, attempts)
	assert.Equal(t, 0, queue.NumRequeues("broken"), "failures that are not forgotten")
}

// asking returns a client for pods that applies change to the query of each request.
func asking(v *program.Viz, change func(url.Values)) typed.PodInterface {
	return kubernetes.NewForConfigOrDie(&rest.Config{Host: v.URL, QPS: -1,
		WrapTransport: func(next http.RoundTripper) http.RoundTripper {
			return transport(func(r *http.Request) (*http.Response, error) {
				query := r.URL.Query()
				change(query)
				r.URL.RawQuery = query.Encode()
				return next.RoundTrip(r)
			})
		}}).CoreV1().Pods("default")
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestExpectations(t *testing.T) {
	e := &expectations{missing: map[string]int{}, since: map[string]time.Time{}}
	e.expect("default/web", 3)
	for range 3 {
		assert.False(t, e.satisfied("default/web"), "too early")
		e.observed("default/web")
	}
	assert.True(t, e.satisfied("default/web") && e.satisfied("default/other"), "all have come")
}
