package informer_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	processor "listwatch/chapters/12-processor"
	informer "listwatch/chapters/13-informer"
)

// onePod is a server with one pod on which nothing ever happens.
type onePod struct{}

func (onePod) List(context.Context, metav1.ListOptions) (runtime.Object, error) {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", ResourceVersion: "1"}}
	return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []corev1.Pod{pod}}, nil
}

func (onePod) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return watch.NewFake(), nil
}

func ExampleSharedIndexInformer() {
	pods := informer.NewSharedIndexInformer(informer.Config{ListerWatcher: onePod{}, Clock: clock.RealClock{}})
	registration, _ := pods.AddEventHandler(processor.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { fmt.Println("added", obj.(*corev1.Pod).Name) },
	})

	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		pods.Run(ctx)
		close(ended)
	}()
	informer.WaitFor(ctx, registration.HasSyncedChecker())
	fmt.Println("stored", pods.GetStore().ListKeys())
	cancel()
	<-ended
	// Output:
	// added a
	// stored [default/a]
}
