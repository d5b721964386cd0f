package kubectl

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/v3/kubernetes"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	storeerr "k8s.io/apiserver/pkg/storage/errors"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
	"k8s.io/streaming/pkg/httpstream/wsstream"
	"k8s.io/utils/clock"

	etcd3 "listwatch/chapters/02-etcd3"
	registry "listwatch/chapters/07-registry"
	handlers "listwatch/chapters/08-handlers"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/eventually"
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
	r, etcd := registry.ConfigMaps(), mvcc.New(clock.RealClock{})
	store, err := etcd3.New(etcd3.Config{
		Client: lateEtcd{etcd}, Codec: codec, NewFunc: r.NewFunc,
		ResourcePrefix: r.Prefix, Clock: clock.RealClock{},
	})
	require.NoError(t, err)
	api := apiserver.New(apiserver.Config{
		Storage: handlers.Storages(registry.Config{Resource: r, Storage: store, Clock: clock.RealClock{}}),
		Clock:   clock.RealClock{},
	})
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

// container answers exec with a command that says what it is told, in both ways of Kubernetes, and forwards everything
// else. ways takes the protocol of each.
func container(t *testing.T, v *program.Viz, ways chan<- string) *httptest.Server {
	target, err := url.Parse(v.URL)
	require.NoError(t, err)
	rest := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !strings.HasSuffix(r.URL.Path, "/exec"):
			rest.ServeHTTP(w, r)
		case wsstream.IsWebSocketRequest(r):
			ways <- "websocket"
			overWebsocket(t, w, r)
		default:
			ways <- "SPDY"
			overSPDY(t, w, r)
		}
	}))
	t.Cleanup(func() { eventually.Closes(server) })
	return server
}

const success = `{"metadata":{},"status":"Success"}`

func overWebsocket(t *testing.T, w http.ResponseWriter, r *http.Request) {
	channels := []wsstream.ChannelType{wsstream.ReadChannel, wsstream.WriteChannel, wsstream.WriteChannel,
		wsstream.WriteChannel, wsstream.ReadChannel}
	conn := wsstream.NewConn(map[string]wsstream.ChannelProtocolConfig{"v5.channel.k8s.io": {Binary: true,
		Channels: channels}})
	_, streams, err := conn.Open(w, r)
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	if _, err := io.Copy(streams[1], streams[0]); err != nil {
		t.Error(err)
	}
	fmt.Fprint(streams[3], success)
}

func overSPDY(t *testing.T, w http.ResponseWriter, r *http.Request) {
	if _, err := httpstream.Handshake(r, w, []string{"v4.channel.k8s.io"}); err != nil {
		t.Error(err)
		return
	}
	opened := make(chan httpstream.Stream, 4) // by the connection, for error, stdin, stdout and stderr; never closed
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(stream httpstream.Stream, _ <-chan struct{}) error {
		opened <- stream
		return nil
	})
	if conn == nil {
		t.Error("not upgraded")
		return
	}
	defer conn.Close()
	streams := map[string]httpstream.Stream{}
	for range cap(opened) {
		stream := <-opened
		streams[stream.Headers().Get(corev1.StreamType)] = stream
	}
	_, err := io.Copy(streams[corev1.StreamTypeStdout], streams[corev1.StreamTypeStdin])
	assert.NoError(t, err)
	fmt.Fprint(streams[corev1.StreamTypeError], success)
}

// TestExecPassesTheLens sends a megabyte to a container and back, over a websocket as kubectl does today, and over SPDY
// as it did.
func TestExecPassesTheLens(t *testing.T) {
	t.Parallel()
	v := program.StartViz(t, "-flight=off", "-demo=false", "-controllers=false")
	program.KubectlFor(t, v).Run(t, "run", "a", "--image=example.test/a")
	ways := make(chan string, 2)
	lens := program.StartViz(t, "-flight=off", "-server", container(t, v, ways).URL, "-server-writes")
	kubectl := program.KubectlFor(t, lens)
	sent := bytes.Repeat([]byte("\x00\xff\r\nlens"), 1<<17)
	for websockets, way := range map[string]string{"true": "websocket", "false": "SPDY"} {
		cmd := kubectl.Command("exec", "-i", "a", "--", "cat")
		cmd.Env = append(cmd.Env, "KUBECTL_REMOTE_COMMAND_WEBSOCKETS="+websockets)
		cmd.Stdin = bytes.NewReader(sent)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if got, err := cmd.Output(); err != nil || !bytes.Equal(got, sent) {
			t.Errorf("over %s: %d of %d bytes came back, %v, %s", way, len(got), len(sent), err, stderr.String())
		} else if got := <-ways; got != way {
			t.Errorf("went over %s, want %s", got, way)
		}
	}
	guest := program.StartViz(t, "-flight=off", "-server", v.URL)
	out, err := program.KubectlFor(t, guest).Command("exec", "a", "--", "id").CombinedOutput()
	assert.True(t, err != nil && strings.Contains(string(out), "-server-writes"),
		"without -server-writes: got %s, %v", out, err)
}
