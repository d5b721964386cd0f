package controllers_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"listwatch/internal/check/bubble"
)

const request = 10 * time.Millisecond // how long the server takes

// First try: handlers send keys into a channel, and two workers receive from it.
func Example_aChannelOfKeys() {
	bubble.Example(func() {
		var pods atomic.Int32 // of the job
		work := func(keys <-chan string) {
			for range keys {
				if pods.Load() == 0 {
					time.Sleep(request) // a POST
					pods.Add(1)
				}
			}
		}
		keys := make(chan string, 100)
		go work(keys)
		go work(keys)
		keys <- "job" // it is created,
		keys <- "job" // and labelled at once
		close(keys)
		time.Sleep(time.Minute)
		fmt.Println("the job wants 1 pod and has", pods.Load())
	})
	// Output: the job wants 1 pod and has 2
}

// Second try: a set has each key from its addition until a worker has done its work.
func Example_aSetThatIsClearedAfterTheWork() {
	bubble.Example(func() {
		var wanted, pods atomic.Int32 // of the job
		var added sync.Map
		keys := make(chan string, 100)
		add := func(key string) {
			if _, waits := added.LoadOrStore(key, true); !waits {
				keys <- key
			}
		}
		go func() {
			for key := range keys {
				n := wanted.Load()
				time.Sleep(request) // a PUT
				pods.Store(n)
				added.Delete(key)
			}
		}()
		wanted.Store(1)
		add("job")
		time.Sleep(request / 2)
		wanted.Store(2)
		add("job")
		time.Sleep(time.Minute)
		fmt.Println("after a minute the job wants", wanted.Load(), "pods and has", pods.Load())
		close(keys)
	})
	// Output: after a minute the job wants 2 pods and has 1
}

// First try: count what the informer has, and create the difference.
func Example_countWhatTheInformerHas() {
	bubble.Example(func() {
		w := &replicas{lag: time.Second}
		look := func() {
			for range wanted - w.informer() {
				w.create() // a POST
			}
		}
		fmt.Println("web wants 3 pods and has", w.looks(look))
	})
	// Output: web wants 3 pods and has 6
}

// Second try: give the informer a second.
func Example_waitASecond() {
	bubble.Example(func() {
		for _, lag := range []time.Duration{900 * time.Millisecond, 1100 * time.Millisecond} {
			w := &replicas{lag: lag}
			look := func() {
				time.Sleep(time.Second)
				for range wanted - w.informer() {
					w.create()
				}
			}
			fmt.Println("an informer that is", lag, "behind:", w.looks(look), "pods")
		}
	})
	// Output:
	// an informer that is 900ms behind: 3 pods
	// an informer that is 1.1s behind: 6 pods
}

// Third and fourth try: ask the server. "0" is whatever its cache holds, "" the newest state.
func Example_askTheServer() {
	bubble.Example(func() {
		for _, version := range []string{"0", ""} {
			w := &replicas{lag: time.Second}
			look := func() {
				for range wanted - w.list(version) {
					w.create()
				}
			}
			pods := w.looks(look)
			for range 1000 { // more events; no pod is missing
				look()
			}
			fmt.Printf("version %q: %d pods, %d objects read\n", version, pods, w.read)
		}
	})
	// Output:
	// version "0": 6 pods, 6000 objects read
	// version "": 3 pods, 3003 objects read
}
