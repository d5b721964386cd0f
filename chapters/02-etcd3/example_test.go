package etcd3_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	storage "listwatch/chapters/01-storage"
	etcd3 "listwatch/chapters/02-etcd3"
	"listwatch/internal/kube/scheme"
	"listwatch/internal/server/mvcc"
)

func newStore() *etcd3.Store {
	codec, err := etcd3.NewCodec(scheme.Codecs, corev1.SchemeGroupVersion, etcd3.MediaTypeJSON)
	if err != nil {
		panic(err)
	}
	store, err := etcd3.New(etcd3.Config{
		Client: mvcc.New(clock.RealClock{}), Codec: codec, ResourcePrefix: "/registry/pods",
		NewFunc: func() runtime.Object { return &corev1.Pod{} },
	})
	if err != nil {
		panic(err)
	}
	return store
}

func podA() *corev1.Pod {
	p := &corev1.Pod{}
	p.Namespace, p.Name = "default", "a"
	return p
}

// A created object's resource version is the revision of the write.
func ExampleStore_Create() {
	store, out := newStore(), &corev1.Pod{}
	err := store.Create(context.Background(), "/registry/pods/default/a", podA(), out)
	fmt.Println(out.Name, out.ResourceVersion, err)
	// Output: a 2 <nil>
}

// The update function gets the state of the moment; doing it again changes nothing and makes no revision.
func ExampleStore_GuaranteedUpdate() {
	ctx, store, key := context.Background(), newStore(), "/registry/pods/default/a"
	if err := store.Create(ctx, key, podA(), nil); err != nil {
		panic(err)
	}
	bind := func(current runtime.Object) (runtime.Object, error) {
		current.(*corev1.Pod).Spec.NodeName = "n1"
		return current, nil
	}
	for range 2 {
		out := &corev1.Pod{}
		err := store.GuaranteedUpdate(ctx, key, out, false, nil, bind, nil)
		fmt.Println(out.Spec.NodeName, out.ResourceVersion, err)
	}
	// Output:
	// n1 3 <nil>
	// n1 3 <nil>
}

// A watch without a resource version begins with what is there.
func ExampleStore_Watch() {
	ctx, store := context.Background(), newStore()
	if err := store.Create(ctx, "/registry/pods/default/a", podA(), nil); err != nil {
		panic(err)
	}
	w, err := store.Watch(ctx, "/registry/pods", storage.ListOptions{Recursive: true, Predicate: storage.Everything})
	if err != nil {
		panic(err)
	}
	event := <-w.ResultChan()
	fmt.Println(event.Type, event.Object.(*corev1.Pod).Name)
	w.Stop()
	for range w.ResultChan() {
	}
	// Output: ADDED a
}
