package controllers_test

import (
	"fmt"

	controllers "listwatch/chapters/14-controllers"
)

// Rule: a worker calls Done for each key that it got, also if the work failed.
func Example_forgetDone() {
	queue := controllers.NewQueue(nil)
	queue.Add("a")
	queue.Get() // and no Done
	for range 3 {
		queue.Add("a")
	}
	state := queue.Snapshot()
	fmt.Printf("%d in line, %q in the hands of a worker\n", state.Len, state.Processing)
	// Output: 0 in line, ["a"] in the hands of a worker
}
