package cachewatcher

import (
	"fmt"
	"maps"
	"slices"
)

// First try: if the object matches the selector, send the event with the storage's verb.
func Example_filterByTheVerb() {
	changes := []struct{ verb, pod, app string }{
		{"ADDED", "a", "db"},
		{"ADDED", "b", "web"},
		{"MODIFIED", "a", "web"},
		{"MODIFIED", "b", "db"},
	}
	has := map[string]bool{} // the pods that the client has
	for _, change := range changes {
		if change.app != "web" {
			continue // does not match: not for this client
		}
		if change.verb != "ADDED" && !has[change.pod] {
			fmt.Println(change.verb, change.pod, "- but the client has never seen", change.pod)
		}
		has[change.pod] = true
	}
	fmt.Println("in the end the client has", slices.Sorted(maps.Keys(has)))
	// Output:
	// MODIFIED a - but the client has never seen a
	// in the end the client has [a b]
}
