package cacher

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	storage "listwatch/chapters/01-storage"
	etcd3 "listwatch/chapters/02-etcd3"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/eventually"
	"listwatch/internal/check/require"
	"listwatch/internal/kube/scheme"
	"listwatch/internal/observe/routine"
	"listwatch/internal/observe/worldclock"
	"listwatch/internal/server/etcdnode"
)

// In this file the cacher stands before a real etcd, and what happens to it happens there: etcd restarts, forgets, and
// is written to by others. The clock is real as well, unless a test says otherwise.

// patience is how long something may take that is sure to happen.
const patience = 30 * time.Second

// onEtcd is a cacher over a real etcd.
type onEtcd struct {
	*Cacher
	t      *testing.T
	node   *etcdnode.Etcd
	line   *interruptible
	client *clientv3.Client
	codec  runtime.Codec
	store  *CacheDelegator
}

// interruptible is a client whose watches can be cut and kept from being opened again.
type interruptible struct {
	etcd3.Client

	mu     sync.Mutex // guards the fields below
	cut    []context.CancelFunc
	opened chan struct{} // closed while watches may be opened
}

// Watch waits until watches may be opened. The one it opens ends as if the connection had.
func (i *interruptible) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	select {
	case <-i.open():
	case <-ctx.Done():
	}
	ctx, cancel := context.WithCancel(ctx)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.cut = append(i.cut, cancel)
	return i.Client.Watch(ctx, key, opts...)
}

func (i *interruptible) open() <-chan struct{} {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.opened
}

// interrupt ends every watch and lets none be opened until restore is called.
func (i *interruptible) interrupt() (restore func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.opened = make(chan struct{})
	for _, cut := range i.cut {
		cut()
	}
	i.cut = nil
	return sync.OnceFunc(func() { close(i.opened) })
}

func startOnEtcd(t *testing.T, age string, clk clock.WithTicker) *onEtcd {
	t.Helper()
	node, err := etcdnode.Start(context.Background(), etcdnode.Options{Dir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() { node.Close() })
	e := &onEtcd{t: t, node: node, client: node.Client()}
	e.codec = must(etcd3.NewCodec(scheme.Codecs, corev1.SchemeGroupVersion, etcd3.MediaTypeProtobuf))
	e.line = &interruptible{Client: etcd3.NewClient(e.client), opened: make(chan struct{})}
	close(e.line.opened)
	pods := schema.GroupResource{Resource: "pods"}
	store, err := etcd3.New(etcd3.Config{
		Client: e.line, Codec: e.codec, NewFunc: newPod, ResourcePrefix: prefix, Resource: pods, Clock: clk,
		Watcher: age,
	})
	require.NoError(t, err)
	config := Config{
		Storage: store, ResourcePrefix: prefix, Resource: pods, Namespaced: true, KeyFunc: keyFunc, NewFunc: newPod,
		NewListFunc: newPodList,
		GetAttrs:    podAttrs, Clock: clk, UseWatchList: true, RingCapacity: 1000,
	}
	withTrigger(&config)
	e.Cacher, err = New(config)
	require.NoError(t, err)
	e.store = NewCacheDelegator(e.Cacher, store)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	new(routine.Group).Go(context.Background(), "cacher.Run", func(context.Context) {
		defer close(ended)
		e.Run(ctx)
	})
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	require.NoError(t, e.Wait(ctx))
	return e
}

// put writes as a client that knows the format and nothing of us. It returns the revision.
func (e *onEtcd) put(pods ...*corev1.Pod) int64 {
	e.t.Helper()
	var ops []clientv3.Op
	for _, p := range pods {
		ops = append(ops, clientv3.OpPut(must(keyFunc(p)), string(must(runtime.Encode(e.codec, p)))))
	}
	return must(e.client.Txn(e.t.Context()).Then(ops...).Commit()).Header.Revision
}

func (e *onEtcd) putRaw(id, value string, opts ...clientv3.OpOption) int64 {
	e.t.Helper()
	return must(e.client.Put(e.t.Context(), prefix+"/"+id, value, opts...)).Header.Revision
}

func (e *onEtcd) begin(key string, opts storage.ListOptions) watch.Interface {
	e.t.Helper()
	w, err := e.store.Watch(e.t.Context(), prefix+key, opts)
	require.NoError(e.t, err, "watch %s", key)
	return w
}

// next returns the next event of w, "closed" at the end.
func (e *onEtcd) next(w watch.Interface) string {
	e.t.Helper()
	select {
	case event, ok := <-w.ResultChan():
		if !ok {
			return "closed"
		}
		return describeEvent(event)
	case <-time.After(patience):
		e.t.Fatal("nothing comes")
		return ""
	}
}

func (e *onEtcd) wants(w watch.Interface, want ...string) {
	e.t.Helper()
	for _, event := range want {
		require.Equal(e.t, e.next(w), event)
	}
}

func (e *onEtcd) eventually(what string, is func() bool) {
	e.t.Helper()
	eventually.Holds(e.t, what, is)
}

// The cache's watch breaks; before it is back, etcd has forgotten where it was. All watches end, without an error; who
// resumes is told 410, lists, and goes on from the list.
func TestACompactionWhileTheCacheLagsEndsEveryWatch(t *testing.T) {
	for _, age := range []string{etcd3.WatcherEtcd3, etcd3.WatcherEtcd2} {
		t.Run(age, func(t *testing.T) {
			e := startOnEtcd(t, age, clock.RealClock{})
			first := e.put(pod("default/a"))
			w := e.begin("", everything("1"))
			e.wants(w, fmt.Sprintf("ADDED default/a %d", first))
			restore := e.line.interrupt()
			t.Cleanup(restore)
			e.put(pod("default/b"))
			missed := e.put(pod("default/a", "app=x"))
			must(e.client.Compact(t.Context(), missed, clientv3.WithCompactPhysical()))
			last := e.put(pod("default/c"))
			restore()
			e.wants(w, "closed")
			e.eventually("another generation", func() bool { s := e.Snapshot(); return s.Ready && s.Generation == 2 })
			again := e.begin("", everything(fmt.Sprint(first)))
			e.wants(again, "ERROR 410 Expired", "closed")
			list := &corev1.PodList{}
			if err := e.store.GetList(t.Context(), prefix, everything("0"), list); err != nil || len(list.Items) != 3 {
				t.Errorf("list: %d items, %v", len(list.Items), err)
			}
			assert.Equal(t, list.ResourceVersion, fmt.Sprint(last), "list at %s, want %d", list.ResourceVersion, last)
			resumed := e.begin("", everything(list.ResourceVersion))
			e.wants(resumed, fmt.Sprintf("ADDED default/d %d", e.put(pod("default/d"))))
			resumed.Stop()
		})
	}
}

func TestAnUndecodableValueStopsTheCacheUntilItIsGone(t *testing.T) {
	clk := worldclock.New(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	new(routine.Group).Go(context.Background(), "worldclock.run", func(context.Context) {
		defer close(ended)
		clk.Run(ctx)
	})
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	e := startOnEtcd(t, etcd3.WatcherEtcd3, clk)
	w := e.begin("", everything("1"))
	a := e.put(pod("default/a"))
	e.wants(w, fmt.Sprintf("ADDED default/a %d", a))

	e.putRaw("default/broken", "this is no pod")
	e.put(pod("default/b"))
	// For half a minute the cache insists, and its watches wait; then it lists, which fails at the same value.
	e.eventually("not ready", func() bool {
		clk.Advance(time.Second)
		return !e.Ready()
	})
	e.wants(w, "closed")
	_, err := e.store.Watch(t.Context(), prefix, everything("0"))
	assert.Fails(t, err, apierrors.IsTooManyRequests, "a watch")
	assert.Fails(t, e.store.GetList(t.Context(), prefix, everything("0"), newPodList()), apierrors.IsTooManyRequests,
		"a list")
	if err := e.store.Get(t.Context(), prefix+"/default/a", storage.GetOptions{ResourceVersion: "0"},
		newPod()); err != nil {
		t.Errorf("another pod: %v", err) // etcd is asked
	}
	if err := e.store.Get(t.Context(), prefix+"/default/broken", storage.GetOptions{},
		newPod()); !apierrors.IsInternalError(err) {
		t.Errorf("the broken one: got %v, want 500", err)
	}

	must(e.client.Delete(t.Context(), prefix+"/default/broken"))
	e.eventually("ready again", func() bool {
		clk.Advance(time.Second)
		return e.Ready()
	})
	again := e.begin("", watchList(everything("")))
	e.wants(again, fmt.Sprintf("ADDED default/a %d", a), fmt.Sprintf("ADDED default/b %d", a+2), fmt.Sprintf("END %d",
		a+3))
	again.Stop()
}

func TestTheEtcd2WatcherSkipsAnUndecodableValue(t *testing.T) {
	e := startOnEtcd(t, etcd3.WatcherEtcd2, clock.RealClock{})
	w := e.begin("", everything("1"))
	e.putRaw("default/broken", "this is no pod")
	b := e.put(pod("default/b"))
	e.wants(w, fmt.Sprintf("ADDED default/b %d", b))
	must(e.client.Delete(t.Context(), prefix+"/default/broken"))
	c := e.put(pod("default/c"))
	e.wants(w, fmt.Sprintf("ADDED default/c %d", c))
	w.Stop()
}

// A client that writes to etcd past us is seen as if it had asked us: in protobuf or JSON, one by one or several at
// once, deleted by prefix or by a lease that ran out.
func TestWhatOthersWriteIntoEtcdArrives(t *testing.T) {
	for _, age := range []string{etcd3.WatcherEtcd3, etcd3.WatcherEtcd2} {
		t.Run(age, func(t *testing.T) {
			e := startOnEtcd(t, age, clock.RealClock{})
			all, onlyX := e.begin("", everything("1")), e.begin("", selecting("1", "app=x", ""))
			text :=
				`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"j","namespace":"default","labels":{"app":"x"}}}`
			j := e.putRaw("default/j", text)
			e.wants(all, fmt.Sprintf("ADDED default/j %d", j))
			e.wants(onlyX, fmt.Sprintf("ADDED default/j %d", j))

			three := e.put(pod("default/a"), pod("default/b", "app=x"), pod("kube-system/a"))
			e.wants(all, fmt.Sprintf("ADDED default/a %d", three), fmt.Sprintf("ADDED default/b %d", three),
				fmt.Sprintf("ADDED kube-system/a %d", three))
			e.wants(onlyX, fmt.Sprintf("ADDED default/b %d", three))
			e.wants(e.begin("", everything(fmt.Sprint(three-1))), fmt.Sprintf("ADDED default/a %d", three),
				fmt.Sprintf("ADDED default/b %d", three), fmt.Sprintf("ADDED kube-system/a %d", three))

			gone := must(e.client.Delete(t.Context(), prefix+"/default/", clientv3.WithPrefix())).Header.Revision
			for _, name := range []string{"a", "b", "j"} {
				e.wants(all, fmt.Sprintf("DELETED default/%s %d", name, gone))
			}
			e.wants(onlyX, fmt.Sprintf("DELETED default/b %d", gone), fmt.Sprintf("DELETED default/j %d", gone))

			lease := must(e.client.Grant(t.Context(), 1)).ID
			short := e.putRaw("default/s", strings.Replace(text, `"j"`, `"s"`, 1), clientv3.WithLease(lease))
			e.wants(all, fmt.Sprintf("ADDED default/s %d", short), fmt.Sprintf("DELETED default/s %d", short+1))
			e.wants(onlyX, fmt.Sprintf("ADDED default/s %d", short), fmt.Sprintf("DELETED default/s %d", short+1))
			all.Stop()
			onlyX.Stop()
		})
	}
}

// An update through us, on the ground of a state that another client has changed meanwhile and the cache has not heard
// of: the first attempt fails in etcd, the second is right.
func TestAnUpdateAfterAnExternalWriteLosesNeither(t *testing.T) {
	e := startOnEtcd(t, etcd3.WatcherEtcd3, clock.RealClock{})
	a := e.put(pod("default/a", "by=none"))
	e.eventually("the cache has a", func() bool { return e.Snapshot().Cache.ResourceVersion >= uint64(a) })
	restore := e.line.interrupt()
	t.Cleanup(restore)
	e.put(pod("default/a", "by=others"))
	out := &corev1.Pod{}
	attempts := 0
	change := func(current runtime.Object) (runtime.Object, error) {
		attempts++
		current.(*corev1.Pod).Labels["and"] = "us"
		return current, nil
	}
	require.NoError(t, e.store.GuaranteedUpdate(t.Context(), prefix+"/default/a", out, false, nil, change, nil))
	assert.True(t, attempts == 2 && out.Labels["by"] == "others" && out.Labels["and"] == "us",
		"after %d attempts: %v", attempts, out.Labels)
}
