package informer

import (
	"fmt"
	"sync"
	"time"

	"listwatch/internal/check/bubble"
)

// First try: the loop calls the handlers at once, and then stores the pod.
func Example_tellThenStore() {
	store := map[string]string{}
	handler := func(name string) { // looks up the pod's node
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

// Second try: the store first. A late handler gets the stored pods, and is then added to the
// list.
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
			time.Sleep(2 * time.Second) // the handler is slow
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
