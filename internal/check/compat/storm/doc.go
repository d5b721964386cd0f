// Package storm runs the program under faults and checks that no watcher loses an event, sees one twice, or sees two in
// the wrong order. `make storm` runs the storm for ten minutes, `go test ./storm` for 25 seconds. The storm prints the
// seed from which it draws every fault; -seed draws the same faults again.
//
// The program itself checks its log against the ten rules, and the storm reads the result before the program ends. A
// name belongs to only one object: no watcher may see a deleted name again.
package storm
