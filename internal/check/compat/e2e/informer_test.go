package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/features"
	featurestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"listwatch/internal/check/compat/program"
)

// storedPods returns what etcd holds, by "namespace/name". Its revision is an object's resourceVersion.
func storedPods(t *testing.T, etcd *program.Etcd) map[string]*corev1.Pod {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	const prefix = "/registry/pods/"
	answer, err := etcd.Client.Get(ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	pods := map[string]*corev1.Pod{}
	for _, kv := range answer.Kvs {
		obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(kv.Value, nil, nil)
		if err != nil {
			t.Fatalf("decode %s: %v", kv.Key, err)
		}
		pod := obj.(*corev1.Pod)
		pod.ResourceVersion = fmt.Sprint(kv.ModRevision)
		pods[strings.TrimPrefix(string(kv.Key), prefix)] = pod
	}
	return pods
}

// follower is the real SharedInformerFactory, with a handler that keeps a copy of its own of what it was told.
type follower struct {
	store cache.Store

	mu    sync.Mutex // guards the fields below
	told  map[string]*corev1.Pod
	wrong []string // what a handler should not have been told
}

func follow(t *testing.T, v *viz, name string) *follower {
	t.Helper()
	factory := informers.NewSharedInformerFactory(clientset(t, v, name), 0)
	informer := factory.Core().V1().Pods().Informer()
	f := &follower{store: informer.GetStore(), told: map[string]*corev1.Pod{}}
	if _, err := informer.AddEventHandler(f); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{}) // closed at the end of the test
	factory.Start(stop)
	t.Cleanup(func() { close(stop); factory.Shutdown() })
	program.Eventually(t, program.ReadyWithin, func() (bool, string) { return informer.HasSynced(), "not synced" })
	return f
}

func clientset(t *testing.T, v *viz, name string) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: v.URL, UserAgent: name, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// OnAdd is called by the real informer.
func (f *follower) OnAdd(obj any, _ bool) {
	pod := obj.(*corev1.Pod)
	f.tell(pod.Namespace+"/"+pod.Name, nil, pod)
}

// OnUpdate is called by the real informer.
func (f *follower) OnUpdate(old, obj any) {
	pod := obj.(*corev1.Pod)
	f.tell(pod.Namespace+"/"+pod.Name, old.(*corev1.Pod), pod)
}

// OnDelete is called by the real informer.
func (f *follower) OnDelete(obj any) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		f.tell(tombstone.Key, nil, nil)
		return
	}
	pod := obj.(*corev1.Pod)
	f.tell(pod.Namespace+"/"+pod.Name, nil, nil)
}

func (f *follower) tell(key string, old, pod *corev1.Pod) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.told[key]
	switch {
	case pod == nil && known == nil:
		f.wrong = append(f.wrong, key+" deleted, but it was not there")
	case pod != nil && old == nil && known != nil:
		f.wrong = append(f.wrong, key+" added, but it was there")
	case old != nil && known == nil:
		f.wrong = append(f.wrong, key+" updated, but it was not there")
	case old != nil && newer(known, pod):
		f.wrong = append(f.wrong, fmt.Sprintf("%s went back from %s to %s", key, known.ResourceVersion,
			pod.ResourceVersion))
	}
	if pod == nil {
		delete(f.told, key)
		return
	}
	f.told[key] = pod
}

// newer reports whether a is newer than b. Only a test may compare resource versions.
func newer(a, b *corev1.Pod) bool {
	return len(a.ResourceVersion) > len(b.ResourceVersion) ||
		len(a.ResourceVersion) == len(b.ResourceVersion) && a.ResourceVersion > b.ResourceVersion
}

// equals waits until informer and handler hold exactly what etcd holds, and expects that nothing went wrong on the way.
func (f *follower) equals(t *testing.T, etcd *program.Etcd) {
	t.Helper()
	program.Eventually(t, patience, func() (bool, string) {
		want := storedPods(t, etcd)
		stored := map[string]*corev1.Pod{}
		for _, obj := range f.store.List() {
			pod := obj.(*corev1.Pod)
			stored[pod.Namespace+"/"+pod.Name] = pod
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		difference := difference("store", stored, want) + difference("handler", f.told, want)
		return difference == "", difference
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, wrong := range f.wrong {
		t.Errorf("the handler was told: %s", wrong)
	}
}

func difference(who string, got, want map[string]*corev1.Pod) string {
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(want)) {
		switch pod := got[key]; {
		case pod == nil:
			fmt.Fprintf(&text, "%s lacks %s; ", who, key)
		case !equalPods(pod, want[key]):
			fmt.Fprintf(&text, "%s has %s at %s, etcd at %s; ", who, key, pod.ResourceVersion,
				want[key].ResourceVersion)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if want[key] == nil {
			fmt.Fprintf(&text, "%s has %s, which is gone; ", who, key)
		}
	}
	return text.String()
}

// equalPods compares whole objects, as bytes. The type is not compared: a typed client leaves it out.
func equalPods(a, b *corev1.Pod) bool {
	a, b = a.DeepCopy(), b.DeepCopy()
	a.TypeMeta, b.TypeMeta = metav1.TypeMeta{}, metav1.TypeMeta{}
	left, leftErr := a.Marshal()
	right, rightErr := b.Marshal()
	return leftErr == nil && rightErr == nil && slices.Equal(left, right)
}

// churn creates, changes and deletes pods through the API until n requests were answered. Conflicts with the
// controllers, which act on the same pods, are part of it.
func churn(t *testing.T, v *viz, seed uint64, n int) {
	t.Helper()
	pods := clientset(t, v, "churn").CoreV1().Pods("default")
	random := rand.New(rand.NewPCG(seed, 0))
	zero := int64(0)
	for i := range n {
		name := fmt.Sprintf("churn-%d-%d", seed, random.IntN(12))
		var err error
		switch random.IntN(4) {
		case 0, 1:
			_, err = pods.Create(t.Context(), churnPod(name, random), metav1.CreateOptions{})
		case 2:
			patch := fmt.Appendf(nil, `{"metadata":{"labels":{"turn":"%d"}}}`, i)
			_, err = pods.Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
		case 3:
			err = pods.Delete(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: &zero})
		}
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) {
			t.Errorf("request %d about %s: %v", i, name, err)
			return
		}
	}
}

func churnPod(name string, random *rand.Rand) *corev1.Pod {
	policies := []corev1.RestartPolicy{corev1.RestartPolicyAlways, corev1.RestartPolicyNever}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "churn"}},
		Spec: corev1.PodSpec{
			RestartPolicy: policies[random.IntN(len(policies))],
			Containers:    []corev1.Container{{Name: "main", Image: "example.test/main:1"}},
		},
	}
}

func churnFromAllSides(t *testing.T, v *viz, first uint64, n int) {
	t.Helper()
	var sides sync.WaitGroup
	for side := range uint64(4) {
		sides.Go(func() { churn(t, v, first+side, n) })
	}
	sides.Wait()
}

func TestARealInformerStaysEqualToEtcdUnderChurn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		watchList bool
		flags     []string
	}{
		{"streamed initial state", true, nil},
		{"list, then watch", false, nil},
		{"a ring of 100", true, []string{"-ring-capacity=100"}},
		{"the older parts", false, []string{"-etcd-watcher=etcd2", "-dispatch=sequential",
			"-storage-media-type=application/json"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			featurestesting.SetFeatureDuringTest(t, features.WatchListClient, c.watchList)
			etcd := program.StartEtcd(t)
			v := startViz(t, append([]string{"-etcd-endpoints", etcd.Endpoint, "-demo=false"}, c.flags...)...)
			churn(t, v, 100, 30) // so that there is an initial state
			f := follow(t, v, "real-informer")
			churnFromAllSides(t, v, 0, 100)
			f.equals(t, etcd)
			late := follow(t, v, "late-informer")
			late.equals(t, etcd)
		})
	}
}

// TestARealInformerOutlivesTheServer restarts the program under an informer, on the same etcd and the same port, while
// the pods change behind the informer's back.
func TestARealInformerOutlivesTheServer(t *testing.T) {
	t.Parallel()
	etcd := program.StartEtcd(t)
	flags := []string{"-etcd-endpoints", etcd.Endpoint, "-demo=false", "-controllers=false"}
	first := startViz(t, flags...)
	f := follow(t, first, "real-informer")
	churnFromAllSides(t, first, 0, 40)
	f.equals(t, etcd)

	address, err := url.Parse(first.URL)
	if err != nil {
		t.Fatal(err)
	}
	first.Interrupt(t)
	if code := first.ExitCode(t, program.EndsWithin); code != 0 {
		t.Fatalf("exit status %d\n%s", code, first.Stderr.String())
	}
	for key := range storedPods(t, etcd) { // one pod is gone, and no watch was open
		if _, err := etcd.Client.Delete(t.Context(), "/registry/pods/"+key); err != nil {
			t.Fatal(err)
		}
		break
	}
	second := startViz(t, append(flags, "-listen", address.Host)...)
	churnFromAllSides(t, second, 0, 40)
	f.equals(t, etcd)
}
