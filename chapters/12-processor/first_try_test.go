package processor_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	processor "listwatch/chapters/12-processor"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
)

// First try: the loop that reads the changes calls the handlers in turn.
func Example_callTheHandlersInTurn() {
	bubble.Example(func() {
		began := time.Now()
		database := func(string) { time.Sleep(time.Second) }
		screen := func(pod string) {
			fmt.Println("screen hears of", pod, "after", time.Since(began))
		}

		handlers := []func(string){database, screen}
		for _, pod := range []string{"a", "b", "c"} { // all three changed at once
			for _, handle := range handlers {
				handle(pod)
			}
		}
		fmt.Println("the loop reads on after", time.Since(began))
	})
	// Output:
	// screen hears of a after 1s
	// screen hears of b after 2s
	// screen hears of c after 3s
	// the loop reads on after 3s
}

// Second try: each handler has a goroutine, and a channel of a hundred.
func Example_aChannelOfAHundredForEach() {
	bubble.Example(func() {
		database, screen := make(chan int, 100), make(chan int, 100)
		answers, heard := make(chan bool), 0
		go func() {
			for range database {
				<-answers // the database hangs
			}
		}()
		go func() {
			for range screen {
				heard++
			}
		}()
		go func() {
			defer close(screen)
			defer close(database)
			for pod := range 150 { // all changed at once
				database <- pod
				screen <- pod
			}
		}()
		synctest.Wait() // until no goroutine can go on
		fmt.Println("screen has heard of", heard, "of 150 pods")
		close(answers)
	})
	// Output: screen has heard of 101 of 150 pods
}

// TestTheProcessorInTheTriesPlace gives the processor what the tries were given: a database that takes its time, and a
// screen.
func TestTheProcessorInTheTriesPlace(t *testing.T) {
	for _, scene := range []struct {
		name string
		call time.Duration
		pods int
	}{{"a slow handler", time.Second, 3}, {"a handler that hangs", time.Hour, 150}} {
		bubble.Run(t, scene.name, func(t *testing.T) {
			p := processor.New(clock.RealClock{}, nil)
			var heard []time.Duration
			began := time.Now()
			synced := make(chan struct{}) // an informer that has
			close(synced)
			for _, add := range []func(any){
				func(any) { time.Sleep(scene.call) },
				func(any) { heard = append(heard, time.Since(began)) },
			} {
				handler := processor.ResourceEventHandlerFuncs{AddFunc: add}
				_, err := p.AddListener(handler, processor.ListenerOptions{UpstreamHasSynced: synced})
				require.True(t, err == nil, err)
			}
			p.Start()
			for n := range scene.pods {
				p.OnAdd(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(n)}}, false)
			}
			synctest.Wait()
			assert.True(t, len(heard) == scene.pods && heard[len(heard)-1] == 0,
				"the screen has heard at %v, want %d times at once", heard, scene.pods)
			p.Stop()
		})
	}
}
