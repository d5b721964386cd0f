package kubectl

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/v3/kubernetes"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	storeerr "k8s.io/apiserver/pkg/storage/errors"
	"k8s.io/utils/clock"

	etcd3 "listwatch/chapters/02-etcd3"
	registry "listwatch/chapters/07-registry"
	handlers "listwatch/chapters/08-handlers"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
	"listwatch/internal/kube/scheme"
	"listwatch/internal/server/apiserver"
	"listwatch/internal/server/mvcc"
)

// lateEtcd commits each write and loses the answer, as an etcd does that stood still for too long.
type lateEtcd struct{ *mvcc.Store }

func (l lateEtcd) OptimisticPut(ctx context.Context, key string, value []byte, expected int64,
	opts kubernetes.PutOptions) (kubernetes.PutResponse, error) {
	response, err := l.Store.OptimisticPut(ctx, key, value, expected, opts)
	if err == nil && response.Succeeded {
		err = rpctypes.ErrTimeout
	}
	return response, err
}

func TestACreateWhoseAnswerWasLostIsNotSentAgain(t *testing.T) {
	t.Parallel()
	codec, err := etcd3.NewCodec(scheme.Codecs, corev1.SchemeGroupVersion, etcd3.MediaTypeProtobuf)
	require.NoError(t, err)
	r, etcd := registry.Resources()[0], mvcc.New(clock.RealClock{}) // of configmaps
	store, err := etcd3.New(etcd3.Config{
		Client: lateEtcd{etcd}, Codec: codec, NewFunc: r.NewFunc,
		ResourcePrefix: r.Prefix, Clock: clock.RealClock{},
	})
	require.NoError(t, err)
	api := apiserver.New(apiserver.Config{Config: handlers.Config{
		Storage: handlers.Storages(registry.Config{Resource: r, Storage: store, Clock: clock.RealClock{}}),
		Clock:   clock.RealClock{},
	}})
	var posts atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			posts.Add(1)
		}
		api.ServeHTTP(w, r)
	}))
	defer server.Close()

	out, err := program.KubectlFor(t, &program.Viz{URL: server.URL}).Command("create", "configmap",
		"a").CombinedOutput()
	if err == nil || !strings.Contains(string(out), rpctypes.ErrTimeout.Error()) || strings.Contains(string(out),
		"AlreadyExists") {
		t.Errorf("got %v and %q, want etcd's words", err, out)
	}
	assert.True(t, posts.Load() == 1, "got %d POSTs, want 1", posts.Load())
	if count, err := etcd.Count(t.Context(), r.Prefix+"/", kubernetes.CountOptions{}); count != 1 || err != nil {
		t.Errorf("stored: got %d, %v, want 1", count, err)
	}
}

// What upstream makes of the same error: a 500 without a reason, and without a time to come again.
func TestUpstreamDoesNotAskForALostCreateAgain(t *testing.T) {
	status := responsewriters.ErrorToAPIStatus(storeerr.InterpretCreateError(rpctypes.ErrTimeout,
		corev1.Resource("configmaps"), "a"))
	assert.True(t, status.Code == 500 && status.Details == nil && status.Message == rpctypes.ErrTimeout.Error(),
		"got %+v", status)
}
