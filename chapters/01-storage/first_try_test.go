package storage_test

import "fmt"

// First try: keep the version in the object, as one more field.
func Example_versionInTheObject() {
	stored, revision := map[string]string{}, 4
	write := func(key, value string) int { // etcd returns the number
		revision++
		stored[key] = value
		return revision
	}

	guess := revision + 1      // the writer's best guess
	write("nodes/n1", "ready") // another client writes first
	got := write("pods/a", fmt.Sprintf("image: nginx, resourceVersion: %d", guess))

	fmt.Println("the pod says:", stored["pods/a"])
	fmt.Println("etcd says:", got)
	// Output:
	// the pod says: image: nginx, resourceVersion: 5
	// etcd says: 6
}
