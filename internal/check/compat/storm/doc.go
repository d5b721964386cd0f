// Package storm runs the program under faults and proves that no watcher lost an event, saw one twice, or saw two in
// the wrong order. `make storm` runs it for ten minutes, `go test ./storm` for 25 seconds. It draws every fault from a
// seed, which it prints; -seed draws the same faults again.
//
// The program itself checks its log against the ten rules, and the storm reads the result before the program ends. A
// name belongs to only one object: no watcher may see a deleted name again.
package storm
