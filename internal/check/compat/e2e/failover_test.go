package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
	"listwatch/internal/server/etcdnode"
)

// front is the way of a client to the first of several servers that takes its connection. It counts the lists among the
// requests: those that an informer that resumes does not make.
type front struct {
	http.Transport
	lists atomic.Int64
}

func newFront(t *testing.T, servers ...*program.Viz) *front {
	f := &front{}
	f.DialContext = func(ctx context.Context, network, _ string) (conn net.Conn, err error) {
		for _, v := range servers {
			conn, err = (&net.Dialer{}).DialContext(ctx, network, strings.TrimPrefix(v.URL, "http://"))
			if err == nil {
				return conn, nil
			}
		}
		return nil, err
	}
	t.Cleanup(f.CloseIdleConnections)
	return f
}

func (f *front) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/configmaps") && (query.Get("watch") == "" ||
		query.Get("sendInitialEvents") != "") {
		f.lists.Add(1)
	}
	return f.Transport.RoundTrip(r)
}

// seen keeps what an informer's handler was told of a counter in each object, and in which versions.
type seen struct {
	mu       sync.Mutex // guards the fields below
	newest   map[string]int
	versions map[string][]string
	wrong    []string
}

func (s *seen) note(obj any) {
	object := obj.(*corev1.ConfigMap)
	n, _ := strconv.Atoi(object.Data["n"])
	s.mu.Lock()
	defer s.mu.Unlock()
	if last, ok := s.newest[object.Name]; ok && n != last+1 {
		s.wrong = append(s.wrong, fmt.Sprintf("%s: %d after %d", object.Name, n, last))
	}
	s.newest[object.Name] = n
	s.versions[object.Name] = append(s.versions[object.Name], object.ResourceVersion)
}

// guestOf starts a program whose client half watches ConfigMaps at the first of several servers that answers.
func guestOf(t *testing.T, servers ...string) *program.Viz {
	guest := program.StartViz(t, "-flight=off", "-server", strings.Join(servers, ","))
	response, err := http.Post(guest.URL+"/viz/guest", "application/json",
		strings.NewReader(`{"resources":["configmaps"]}`))
	require.NoError(t, err)
	response.Body.Close()
	program.Eventually(t, program.ReadyWithin, func() (bool, string) {
		points := pointsOf(t, guest)
		return points["ReflectorWatching"] > 0, fmt.Sprint(response.Status, points)
	})
	return guest
}

// pointsOf returns how often each point was reported about ConfigMaps.
func pointsOf(t *testing.T, guest *program.Viz) map[string]int {
	var snapshot struct {
		State struct {
			Resources map[string]struct{ Points map[string]int }
		}
	}
	guest.Get(t, "/viz/snapshot", &snapshot)
	return snapshot.State.Resources["configmaps"].Points
}

// storedBy returns in which versions our own informer stored an object.
func storedBy(t *testing.T, guest *program.Viz, name string) (versions []string) {
	var past struct{ Records []struct{ Point, RV string } }
	guest.Get(t, "/viz/records?resource=configmaps&key=default/"+name, &past)
	for _, r := range past.Records {
		if r.Point == "IndexerUpdated" {
			versions = append(versions, r.RV)
		}
	}
	return versions
}

// TestAnInformerFailsOverAndResumes kills etcd's leader, and then the server that two informers watch, while a writer
// counts up in a few objects. One is the real client-go, which is led to the first that answers; the other is ours,
// which knows both addresses. Both servers have etcd's versions, so both informers go on where they were, and are told
// the same.
func TestAnInformerFailsOverAndResumes(t *testing.T) {
	t.Parallel()
	cluster, err := etcdnode.Start(t.Context(), etcdnode.Options{Dir: t.TempDir(), Nodes: 3})
	require.NoError(t, err)
	t.Cleanup(func() { cluster.Close() })
	files := cluster.Files()
	flags := []string{
		"-flight=off", "-demo=false", "-controllers=false", "-etcd-endpoints", strings.Join(cluster.Endpoints(), ","),
		"-etcd-cacert", files.CACert, "-etcd-cert", files.Cert, "-etcd-key", files.Key,
	}
	first, second := program.StartViz(t, flags...), program.StartViz(t, flags...)
	front := newFront(t, first, second)
	config := &rest.Config{Host: "http://127.0.0.1:1", QPS: -1, Transport: front}
	client := kubernetes.NewForConfigOrDie(config)
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Core().V1().ConfigMaps().Informer()
	told := &seen{newest: map[string]int{}, versions: map[string][]string{}}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: told.note, UpdateFunc: func(_,
		now any) {
		told.note(now)
	}}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	factory.StartWithContext(ctx)
	t.Cleanup(func() {
		cancel()
		factory.Shutdown()
	})
	require.True(t, cache.WaitForCacheSync(ctx.Done(), informer.HasSynced), "not synced")
	before := front.lists.Load()
	guest := guestOf(t, first.URL, second.URL)
	listed := pointsOf(t, guest)["ReflectorListed"] + pointsOf(t, guest)["ReflectorSynced"]

	const objects, changes = 5, 60
	maps := client.CoreV1().ConfigMaps("default")
	write := func(name string, n int) {
		t.Helper()
		began := time.Now()
		for {
			err := writeCount(ctx, maps, name, n)
			if err == nil {
				return
			}
			require.True(t, time.Since(began) <= program.ReadyWithin, "write %s %d: %v", name, n, err)
		}
	}
	for n := range changes {
		switch n {
		case changes / 3:
			leader := leaderOf(t, cluster)
			began := time.Now()
			require.NoError(t, cluster.Run(ctx, leader, false))
			write("probe-leader", 0)
			t.Logf("%s, which led, is gone: the next write took %v", leader, time.Since(began))
		case changes * 2 / 3:
			began := time.Now()
			first.Kill()
			write("probe-server", 0)
			t.Logf("the first server is gone: the next write took %v", time.Since(began))
		}
		for i := range objects {
			write("c-"+strconv.Itoa(i), n)
		}
	}
	program.Eventually(t, program.ReadyWithin, func() (bool, string) {
		told.mu.Lock()
		defer told.mu.Unlock()
		for i := range objects {
			if told.newest["c-"+strconv.Itoa(i)] != changes-1 {
				return false, fmt.Sprint(told.newest)
			}
		}
		return true, ""
	})
	for i := range objects {
		name := "c-" + strconv.Itoa(i)
		program.Eventually(t, program.ReadyWithin, func() (bool, string) {
			ours := storedBy(t, guest, name)
			return slices.Equal(ours, told.versions[name]), fmt.Sprintf("%s: ours stored %v, client-go was told %v",
				name, ours, told.versions[name])
		})
	}
	if points := pointsOf(t, guest); points["ReflectorListed"]+points["ReflectorSynced"] != listed {
		t.Errorf("our informer listed again: %v", points)
	}
	assert.True(t, len(told.wrong) == 0, "the handler saw %q", told.wrong)
	if after := front.lists.Load(); after != before {
		t.Errorf("the informer listed %d times more", after-before)
	}
	list, err := maps.List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	if got := len(informer.GetStore().List()); got != len(list.Items) {
		t.Errorf("the store holds %d objects, the server %d", got, len(list.Items))
	}
}

// writeCount brings the counter of an object to n, whatever became of earlier attempts.
func writeCount(ctx context.Context, maps typed.ConfigMapInterface, name string, n int) error {
	text := strconv.Itoa(n)
	if n == 0 {
		made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"n": text}}
		if _, err := maps.Create(ctx, made, metav1.CreateOptions{}); err == nil {
			return nil
		}
	}
	object, err := maps.Get(ctx, name, metav1.GetOptions{})
	if err != nil || object.Data["n"] == text {
		return err
	}
	object.Data["n"] = text
	_, err = maps.Update(ctx, object, metav1.UpdateOptions{})
	return err
}

func leaderOf(t *testing.T, cluster *etcdnode.Etcd) (leader string) {
	keeper := etcdnode.NewKeeper(cluster.Client(), false, clock.RealClock{}, cluster.Names()...)
	program.Eventually(t, program.ReadyWithin, func() (bool, string) {
		state := keeper.Look(t.Context())
		for _, m := range state.Members {
			if m.Leader {
				leader = m.Name
			}
		}
		return leader != "", state.String()
	})
	return leader
}
