package handlers

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	storage "listwatch/chapters/01-storage"
	registry "listwatch/chapters/07-registry"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
	"listwatch/internal/kube/negotiation"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
)

// countingEncoder is an encoder that counts. Everything else about it is the other's, so what it has encoded and what
// the other has are interchangeable.
type countingEncoder struct {
	runtime.Encoder
	n *int
}

func (c countingEncoder) Encode(obj runtime.Object, w io.Writer) error {
	*c.n++
	return c.Encoder.Encode(obj, w)
}

// cachedPods returns an API with a cached storage of pods, and that storage.
func cachedPods(t *testing.T) (*api, storage.Interface) {
	ctx, cancel := context.WithCancel(t.Context())
	var group routine.Group
	var pods storage.Interface
	a := buildAPI(t, func(r *registry.Resource, raw storage.Interface, p *probe.Probe) storage.Interface {
		if r.Name != "pods" {
			return raw
		}
		config := r.CacherConfig()
		config.Clock, config.Probe, config.UseWatchList = clock.RealClock{}, p, true
		c, cached, err := registry.StorageWithCacher(raw, config)
		require.NoError(t, err)
		pods = cached
		group.Go(ctx, "cacher", c.Run)
		return cached
	})
	t.Cleanup(func() { cancel(); group.Wait() })
	synctest.Wait()
	return a, pods
}

// client is one watcher, from the cache to the bytes on its wire.
type client struct {
	watch   watch.Interface
	encoder *watchEncoder
	wire    bytes.Buffer
}

// newClient begins a watch whose encodings count into n.
func newClient(t *testing.T, pods storage.Interface, s *Scope, accept string, n *int) *client {
	t.Helper()
	r := request(t, podsPath+"?watch=1")
	r.Header.Set("Accept", accept)
	output, err := negotiation.Output(r)
	require.NoError(t, err)
	media, err := negotiation.Stream(output)
	require.NoError(t, err)
	media.Encoder = countingEncoder{media.Encoder, n}
	options, err := negotiation.TableOptions(r, media)
	require.NoError(t, err)
	w, err := pods.Watch(t.Context(), "/registry/pods", storage.ListOptions{Predicate: storage.Everything,
		Recursive: true})
	require.NoError(t, err)
	return &client{watch: w, encoder: newWatchEncoder(s, media, options)}
}

// writeAll has everything written that there is to write.
func writeAll(t *testing.T, clients []*client) {
	t.Helper()
	synctest.Wait()
	for _, c := range clients {
		for len(c.watch.ResultChan()) > 0 {
			_, err := c.encoder.Encode(<-c.watch.ResultChan(), &c.wire)
			require.NoError(t, err)
		}
	}
}

const acceptTables = "application/json;as=Table;v=v1;g=meta.k8s.io"

func TestAnEventIsEncodedOnceForAllWatchersWithTheSameAccept(t *testing.T) {
	for name, c := range map[string]struct {
		accepts []string
		want    int // encodings of one event
	}{
		"one form":                     {[]string{"application/json"}, 1},
		"two forms":                    {[]string{"application/json", acceptTables}, 2},
		"one form, asked in two words": {[]string{"application/json", "*/*"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) { countEncodings(t, c.accepts, c.want) })
		})
	}
}

func countEncodings(t *testing.T, accepts []string, want int) {
	a, pods := cachedPods(t)
	s := podScope(t)
	n := 0
	byAccept := map[string][]*client{}
	var clients []*client
	for _, accept := range accepts {
		for range 5 {
			c := newClient(t, pods, s, accept, &n)
			byAccept[accept] = append(byAccept[accept], c)
			clients = append(clients, c)
		}
	}
	steps := []func(){
		func() { a.create(podA) },
		func() {
			changed := strings.Replace(podA, `"web"`, `"changed"`, 1)
			w := a.do("PUT", podsPath+"/a", changed)
			require.Equal(t, w.Code, http.StatusOK, "update: %d %s", w.Code, w.Body)
		},
		func() {
			w := a.do("DELETE", podsPath+"/a?gracePeriodSeconds=0", "")
			require.Equal(t, w.Code, http.StatusOK, "delete: %d %s", w.Code, w.Body)
		},
	}
	for _, step := range steps {
		step()
		writeAll(t, clients)
	}
	events := strings.Count(clients[0].wire.String(), "\n")
	assert.True(t, events >= len(steps) && n == want*events,
		"%d events were encoded %d times, want %d each", events, n, want)
	for accept, clients := range byAccept {
		for _, c := range clients[1:] {
			if first := clients[0].wire.String(); first == "" || c.wire.String() != first {
				t.Errorf("%s: one client was sent %q, another %q", accept, first, c.wire.String())
			}
		}
	}
}
