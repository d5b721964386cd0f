package upstream

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	realhandlers "k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	registry "listwatch/chapters/07-registry"
	handlers "listwatch/chapters/08-handlers"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/eventually"
	"listwatch/internal/check/require"
	"listwatch/internal/kube/scheme"
)

// shelf is a storage that does nothing: a list that is ready, and watches that are fed by hand. What is measured over
// it is what the handlers cost, ours and upstream's.
type shelf struct {
	rest.TableConvertor
	pods *corev1.PodList

	mu      sync.Mutex // guards watches
	watches []chan watch.Event
}

func (s *shelf) New() runtime.Object     { return &corev1.Pod{} }
func (s *shelf) NewList() runtime.Object { return &corev1.PodList{} }
func (s *shelf) Destroy()                {}

// feeder is one watch of a shelf.
type feeder chan watch.Event

func (f feeder) ResultChan() <-chan watch.Event { return f }
func (f feeder) Stop()                          {}

func (s *shelf) watch() watch.Interface {
	f := make(chan watch.Event, burst) // sent by send, never closed; a burst fits
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watches = append(s.watches, f)
	return feeder(f)
}

func (s *shelf) send(events ...watch.Event) {
	for _, event := range events {
		for _, f := range s.watches {
			f <- event
		}
	}
}

// theirShelf is a shelf as upstream's handlers ask for it.
type theirShelf struct{ *shelf }

func (s theirShelf) List(context.Context, *internalversion.ListOptions) (runtime.Object, error) {
	return s.pods, nil
}

func (s theirShelf) Watch(context.Context, *internalversion.ListOptions) (watch.Interface, error) {
	return s.watch(), nil
}

// ourShelf is a shelf as our handlers ask for it.
type ourShelf struct{ *shelf }

func (s ourShelf) Describe() *registry.Resource { return registry.Pods() }

func (s ourShelf) List(context.Context, string, *internalversion.ListOptions) (runtime.Object, error) {
	return s.pods, nil
}

func (s ourShelf) Watch(context.Context, string, *internalversion.ListOptions) (watch.Interface, error) {
	return s.watch(), nil
}

func ourHandler(s *shelf) http.Handler {
	return handlers.New(handlers.Config{Storage: map[string]handlers.Storage{"pods": ourShelf{s}},
		Clock: clock.RealClock{}})
}

// theirHandler is upstream's ListResource with what it needs to know of the request. It is spared the conversion from
// an internal version, and everything that stands before it in a real server.
func theirHandler(s *shelf) http.Handler {
	gv := corev1.SchemeGroupVersion
	scope := &realhandlers.RequestScope{
		Namer:           realhandlers.ContextBasedNaming{Namer: runtime.Namer(meta.NewAccessor())},
		Serializer:      scheme.Codecs,
		ParameterCodec:  scheme.ParameterCodec,
		Creater:         scheme.Scheme,
		Convertor:       scheme.Scheme,
		UnsafeConvertor: runtime.UnsafeObjectConvertor(scheme.Scheme),
		Defaulter:       scheme.Scheme,
		Typer:           scheme.Scheme,
		TableConvertor:  s.TableConvertor,
		Resource:        gv.WithResource("pods"), Kind: gv.WithKind("Pod"),
		HubGroupVersion: gv, MetaGroupVersion: metav1.SchemeGroupVersion,
	}
	list := realhandlers.ListResource(theirShelf{s}, theirShelf{s}, scope, false, time.Hour)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info := &request.RequestInfo{IsResourceRequest: true, Verb: "list", APIVersion: "v1", Resource: "pods",
			Path: r.URL.Path}
		if r.URL.Query().Has("watch") {
			info.Verb = "watch"
		}
		list(w, r.WithContext(request.WithRequestInfo(r.Context(), info)))
	})
}

// bothHandlers runs bench with each side's handlers over a shelf of pods, and a client of its own.
func bothHandlers(b *testing.B, pods int, bench func(b *testing.B, s *shelf, client *http.Client, url string)) {
	with := func(build func(*shelf) http.Handler) func(b *testing.B) {
		return func(b *testing.B) {
			s := newShelf(pods)
			server := httptest.NewServer(build(s))
			defer eventually.Closes(server)
			client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
			defer client.CloseIdleConnections()
			bench(b, s, client, server.URL+"/api/v1/pods")
		}
	}
	bothSides(b, with(ourHandler), with(theirHandler))
}

func newShelf(pods int) *shelf {
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: make([]corev1.Pod, pods)}
	for i := range list.Items {
		list.Items[i] = *somePod(i)
	}
	return &shelf{TableConvertor: rest.NewDefaultTableConvertor(corev1.Resource("pods")), pods: list}
}

func somePod(i int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: fmt.Sprintf("pod-%05d", i), UID: "0000", ResourceVersion: fmt.Sprint(i + 1),
			CreationTimestamp: metav1.Unix(1, 0),
			Labels:            map[string]string{"app": "web", "tier": "front"}, Annotations: map[string]string{
				"note": "a few words"},
		},
		Spec: corev1.PodSpec{NodeName: "node-1", RestartPolicy: corev1.RestartPolicyAlways,
			Containers: []corev1.Container{{
				Name: "main", Image: "example.test/main:1", Ports: []corev1.ContainerPort{{ContainerPort: 80}},
				Env: []corev1.EnvVar{{Name: "COLOUR", Value: "red"}},
			}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1", Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
}

// BenchmarkFanOutOverHTTP takes one event to n watchers, each on a connection of its own. An operation is one event.
// The watchers of one event share its encoding, as they do behind either cache.
func BenchmarkFanOutOverHTTP(b *testing.B) {
	for _, n := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("%d-watchers", n), func(b *testing.B) {
			bothHandlers(b, 0, func(b *testing.B, s *shelf, client *http.Client, url string) {
				c := newCrowd(n)
				defer c.readers.Wait()
				for range n {
					response := must(client.Get(url + "?watch=1&resourceVersion=1"))
					defer response.Body.Close() // which ends its reader
					c.readers.Go(func() {
						buffer := make([]byte, 64<<10)
						for err := error(nil); err == nil; {
							var read int
							read, err = response.Body.Read(buffer)
							c.report(bytes.Count(buffer[:read], []byte{'\n'})) // a frame is a line
						}
					})
				}
				sent := 0
				c.measure(b, func(n int) (send func()) {
					events := make([]watch.Event, n)
					for i := range events {
						events[i] = watch.Event{Type: watch.Modified, Object: newCached(sent + i)}
					}
					sent += n
					return func() { s.send(events...) }
				})
			})
		})
	}
}

// cached is a pod that keeps its encodings, as those that come out of a cache do.
type cached struct {
	*corev1.Pod
	mu        sync.Mutex // guards encodings
	encodings map[runtime.Identifier][]byte
}

func newCached(i int) *cached {
	return &cached{Pod: somePod(i), encodings: map[runtime.Identifier][]byte{}}
}

// GetObject implements runtime.CacheableObject.
func (c *cached) GetObject() runtime.Object { return c.Pod.DeepCopy() }

// CacheEncode implements runtime.CacheableObject.
func (c *cached) CacheEncode(id runtime.Identifier, encode func(runtime.Object, io.Writer) error, w io.Writer) error {
	c.mu.Lock()
	encoding, known := c.encodings[id]
	if !known {
		var text bytes.Buffer
		if err := encode(c.GetObject(), &text); err != nil {
			c.mu.Unlock()
			return err
		}
		encoding = text.Bytes()
		c.encodings[id] = encoding
	}
	c.mu.Unlock()
	_, err := w.Write(encoding)
	return err
}

// TestBothHandlersSayTheSame makes sure that the benchmarks compare like with like.
func TestBothHandlersSayTheSame(t *testing.T) {
	t.Parallel()
	ours, theirs := overheard(t, ourHandler), overheard(t, theirHandler)
	assert.Equal(t, cmp.Diff(theirs, ours), "", "-theirs +ours\n")
}

// overheard returns a list, and two frames of a watch.
func overheard(t *testing.T, build func(*shelf) http.Handler) []string {
	t.Helper()
	s := newShelf(3)
	server := httptest.NewServer(build(s))
	defer eventually.Closes(server)
	list, err := server.Client().Get(server.URL + "/api/v1/pods")
	require.NoError(t, err)
	defer list.Body.Close()
	text := must(io.ReadAll(list.Body))
	following, err := server.Client().Get(server.URL + "/api/v1/pods?watch=1&resourceVersion=1")
	require.NoError(t, err)
	defer following.Body.Close()
	s.send(watch.Event{Type: watch.Modified, Object: newCached(1)})
	s.send(watch.Event{Type: watch.Deleted, Object: somePod(2)})
	frames := bufio.NewReader(following.Body)
	first, second := must(frames.ReadString('\n')), must(frames.ReadString('\n'))
	return []string{string(text), first, second, list.Header.Get("Content-Type"), following.Header.Get("Content-Type")}
}
