package informer

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	processor "listwatch/chapters/12-processor"
	"listwatch/internal/check/bubble"
)

// withInformer runs an informer of pods in a bubble while use uses it.
func withInformer(cfg Config, use func(*fakeServer, *SharedIndexInformer)) {
	bubble.Example(func() {
		server := newFakeServer("a")
		cfg.ListerWatcher, cfg.Clock = server, clock.RealClock{}
		pods := NewSharedIndexInformer(cfg)
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			pods.Run(ctx)
			close(ended)
		}()
		synctest.Wait()
		use(server, pods)
		cancel()
		<-ended
	})
}

// Rule: do not write to an object that is stored.
func Example_writeToWhatIsStored() {
	withInformer(Config{}, func(_ *fakeServer, pods *SharedIndexInformer) {
		obj, _, _ := pods.GetIndexer().GetByKey("default/a")
		obj.(*corev1.Pod).Spec.NodeName = "mine" // no copy
		again, _, _ := pods.GetIndexer().GetByKey("default/a")
		fmt.Println("every reader sees node", again.(*corev1.Pod).Spec.NodeName)
	})
	// Output: every reader sees node mine
}

// Rule: a transform must not mind its own result.
func Example_transformTwice() {
	mark := func(obj any) (any, error) {
		obj.(*corev1.Pod).Spec.NodeName += "!"
		return obj, nil
	}
	withInformer(Config{UseWatchList: true, Transform: mark}, func(server *fakeServer, pods *SharedIndexInformer) {
		server.set("b")
		synctest.Wait()
		for _, name := range []string{"a", "b"} {
			obj, _, _ := pods.GetIndexer().GetByKey("default/" + name)
			fmt.Println(name, obj.(*corev1.Pod).Spec.NodeName)
		}
	})
	// Output:
	// a !!
	// b !
}

// Rule: a handler that is removed may still run. Wait for its registration's ShutdownChan.
func Example_removeAHandler() {
	withInformer(Config{}, func(_ *fakeServer, pods *SharedIndexInformer) {
		var fileClosed atomic.Bool
		registration, _ := pods.AddEventHandler(processor.ResourceEventHandlerFuncs{AddFunc: func(any) {
			time.Sleep(time.Second)
			fmt.Println("the handler writes; is its file closed?", fileClosed.Load())
		}})
		synctest.Wait()
		_ = pods.RemoveEventHandler(registration)
		fileClosed.Store(true)
		<-registration.ShutdownChan()
	})
	// Output: the handler writes; is its file closed? true
}

// Rule: an update may bring nothing new.
func Example_resyncIsNoNews() {
	withInformer(Config{ResyncPeriod: 10 * time.Second}, func(server *fakeServer, pods *SharedIndexInformer) {
		mails := 0
		_, _ = pods.AddEventHandler(processor.ResourceEventHandlerFuncs{UpdateFunc: func(_, _ any) { mails++ }})
		time.Sleep(time.Minute)
		synctest.Wait()
		lists, _ := server.counts()
		fmt.Println(mails, "mails, no change,", lists, "list")
	})
	// Output: 6 mails, no change, 1 list
}

// Rule: a handler returns soon. What waits for it waits in memory, without a limit and without an error.
func Example_aHandlerThatBlocks() {
	withInformer(Config{}, func(server *fakeServer, pods *SharedIndexInformer) {
		answer := make(chan struct{})
		_, _ = pods.AddEventHandler(processor.ResourceEventHandlerFuncs{UpdateFunc: func(_, _ any) { <-answer }})
		for range 5000 {
			server.set("a")
		}
		synctest.Wait()
		listener := pods.Snapshot().Listeners[0]
		fmt.Println(listener.PendingLen, "wait in a ring of", listener.PendingCap)
		close(answer)
	})
	// Output: 4998 wait in a ring of 8192
}

// Rule: one informer for each type. Two informers share nothing.
func Example_twoInformers() {
	withInformer(Config{}, func(server *fakeServer, one *SharedIndexInformer) {
		two := NewSharedIndexInformer(Config{ListerWatcher: server, Clock: clock.RealClock{}})
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		two.Run(ctx)
		_, watches := server.counts()
		first, _, _ := one.GetIndexer().GetByKey("default/a")
		second, _, _ := two.GetIndexer().GetByKey("default/a")
		fmt.Println(watches, "watches; one object?", first == second)
	})
	// Output: 2 watches; one object? false
}

// Rule: informers of a namespace each keep no order between the namespaces.
func Example_aNamespaceEach() {
	withInformer(Config{}, func(server *fakeServer, one *SharedIndexInformer) {
		server.fail(fmt.Errorf("no answer"))
		server.cut(false) // the watch of the first breaks,
		synctest.Wait()
		server.fail(nil)
		two := NewSharedIndexInformer(Config{ListerWatcher: server, Clock: clock.RealClock{}})
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		server.set("b") // and something happens before it has another
		two.Run(ctx)
		fmt.Println("one knows version", one.LastSyncResourceVersion(), "and two version",
			two.LastSyncResourceVersion())
	})
	// Output: one knows version 1 and two version 2
}
