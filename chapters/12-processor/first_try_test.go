package processor_test

import (
	"fmt"
	"testing/synctest"
	"time"

	"listwatch/internal/check/bubble"
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
