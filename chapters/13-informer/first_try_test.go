package informer_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	processor "listwatch/chapters/12-processor"
	informer "listwatch/chapters/13-informer"
	"listwatch/internal/check/bubble"
)

// First try: the loop tells the handlers at once, and then stores the pod.
func Example_tellThenStore() {
	store := map[string]string{}
	handler := func(name string) { // looks which node the pod is on
		node, found := store[name]
		fmt.Printf("told of %s; the store says %q, %t\n", name, node, found)
	}
	for _, node := range []string{"", "node-1"} { // a is created, and bound
		handler("a")
		store["a"] = node
	}
	// Output:
	// told of a; the store says "", false
	// told of a; the store says "", true
}

// Second try: the store first. A handler that comes late is shown what is stored, and then
// added to the list.
func Example_showThenAdd() {
	bubble.Example(func() {
		var mu sync.Mutex // guards store and handlers, in each step
		store, handlers := []string{"a"}, []func(string){}
		go func() { // the loop
			time.Sleep(time.Second)
			mu.Lock()
			store = append(store, "b")
			for _, handle := range handlers {
				handle("b")
			}
			mu.Unlock()
		}()
		late := func(name string) { fmt.Println("the late handler hears of", name) }
		mu.Lock()
		stored := store
		mu.Unlock()
		for _, name := range stored {
			late(name)
			time.Sleep(2 * time.Second) // it takes its time
		}
		mu.Lock()
		handlers = append(handlers, late)
		fmt.Printf("the store has %q\n", store)
		mu.Unlock()
	})
	// Output:
	// the late handler hears of a
	// the store has ["a" "b"]
}

// twoSteps is a server on which pod a is created and then bound. The second step waits until the test asks for it.
type twoSteps struct {
	onePod
	events *watch.FakeWatcher
}

func (s twoSteps) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return s.events, nil
}

// TestTheInformerInTheTriesPlace gives the informer a handler that reads the store, and one that is late and slow.
func TestTheInformerInTheTriesPlace(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		server := twoSteps{events: watch.NewFake()}
		pods := informer.NewSharedIndexInformer(informer.Config{ListerWatcher: server, Clock: clock.RealClock{}})
		var told, late []string
		tell := func(obj any) {
			stored, found, _ := pods.GetStore().GetByKey("default/a")
			told = append(told, fmt.Sprint(found && stored.(*corev1.Pod).Spec.NodeName == obj.(*corev1.Pod).
				Spec.NodeName))
		}
		if _, err := pods.AddEventHandler(processor.ResourceEventHandlerFuncs{AddFunc: tell, UpdateFunc: func(_,
			obj any) {
			tell(obj)
		}}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			pods.Run(ctx)
			close(ended)
		}()
		synctest.Wait()
		slow := func(obj any) {
			late = append(late, obj.(*corev1.Pod).Name)
			time.Sleep(2 * time.Second)
		}
		if _, err := pods.AddEventHandler(processor.ResourceEventHandlerFuncs{AddFunc: slow}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		bound := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", ResourceVersion: "2"}}
		bound.Spec.NodeName = "node-1"
		server.events.Modify(bound)
		server.events.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b",
			ResourceVersion: "3"}})
		time.Sleep(time.Minute)
		cancel()
		<-ended
		if got, want := fmt.Sprint(told[:2]), "[true true]"; got != want {
			t.Errorf("the store has what the handler is told: %s, want %s", got, want)
		}
		if got, want := fmt.Sprint(late), "[a b]"; got != want {
			t.Errorf("the late handler hears of %s, want %s", got, want)
		}
	})
}
