package pipeline

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/client/v3/kubernetes"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	listwatch "listwatch/chapters/09-listwatch"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/server/mvcc"
)

func (w *world) leases() *listwatch.RESTClient {
	return w.client.WithAPIPath("/apis/coordination.k8s.io/v1")
}

// createLease creates a lease in a namespace, which it creates, too, unless it is default.
func (w *world) createLease(t *testing.T, namespace string) {
	t.Helper()
	if namespace != metav1.NamespaceDefault {
		object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
		require.NoError(t, w.client.Post().Resource("namespaces").Body(object).Do(t.Context()).Error())
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	if err := w.leases().Post().Namespace(namespace).Resource("leases").Body(lease).Do(t.Context()).
		Error(); err != nil {
		t.Fatal(err)
	}
}

func (w *world) cached() (names []string) {
	for _, each := range w.Server.Cachers() {
		names = append(names, each.Resource())
	}
	return names
}

func TestACacheOnDemandBeginsWithItsFirstWatch(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		w.createLease(t, "default")
		w.createLease(t, "n")
		require.NoError(t, w.client.Delete().Resource("namespaces").Name("n").Do(t.Context()).Error())
		time.Sleep(time.Minute)
		list := &coordinationv1.LeaseList{}
		if err := w.leases().Get().Resource("leases").Do(t.Context()).Into(list); err != nil || len(list.Items) != 1 {
			t.Fatalf("got %v, %v, want the lease in default", list.Items, err)
		}
		got := w.cached()
		assert.Equal(t, len(got), 4, "before anyone watches: got caches of %v", got)
		var watches []watch.Interface
		for range 3 {
			stream, err := w.leases().Get().Resource("leases").Param("watch", "true").Watch(t.Context())
			require.NoError(t, err)
			watches = append(watches, stream)
		}
		for _, each := range watches {
			event := <-each.ResultChan()
			lease, ok := event.Object.(*coordinationv1.Lease)
			assert.True(t, ok && event.Type == watch.Added && lease.Name == "a", "got %+v", event)
		}
		got = w.cached()
		assert.True(t, len(got) == 5 && got[4] == "leases", "while leases are watched: got caches of %v", got)
		lists := w.leases().Get().Resource("leases").Param("resourceVersion", "0")
		if err := lists.Do(t.Context()).Into(list); err != nil || len(list.Items) != 1 {
			t.Errorf("from the cache: got %v, %v", list.Items, err)
		}
		for _, each := range watches {
			each.Stop()
		}
	})
}

// noLeases is an etcd that never answers a list of leases.
type noLeases struct{ *mvcc.Store }

func (e noLeases) List(ctx context.Context, prefix string, opts kubernetes.ListOptions) (kubernetes.ListResponse,
	error) {
	if strings.Contains(prefix, "leases") {
		<-ctx.Done()
		return kubernetes.ListResponse{}, ctx.Err()
	}
	return e.Store.List(ctx, prefix, opts)
}

func TestARequestDoesNotWaitForeverForItsCache(t *testing.T) {
	inWorld(t, func(s *ServerConfig, _ *ClientConfig) {
		s.Client, s.UseWatchList = noLeases{mvcc.New(s.Clock)}, false
	}, func(t *testing.T, w *world) {
		began := time.Now()
		err := w.leases().Get().Resource("leases").Param("resourceVersion", "0").Do(t.Context()).Error()
		if took := time.Since(began); !apierrors.IsTooManyRequests(err) || took < beginPatience {
			t.Errorf("got %v after %v, want 429 after %v", err, took, beginPatience)
		}
	})
}
