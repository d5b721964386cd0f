// Package storm runs the program under faults and proves that no watcher lost an event, saw one twice, or saw two in
// the wrong order. `make storm` runs it for ten minutes, `go test ./storm` for 25 seconds. Every fault is drawn from a
// seed, which is printed; -seed draws the same again.
//
//   - storm_test.go: one storm from start to rest: clients on, faults, clients off, and what has to be true then.
//     rest_test.go: what the program holds when it is at rest, and what is printed.
//   - faults_test.go: what is done to the program: commands of the page, restarts of etcd, kill -9, SIGSTOP, cut
//     connections.
//   - writers_test.go: each object carries a counter, and every write raises it by one. All writers share all objects: no
//     read is stale, and no update is lost.
//   - judge_test.go, judge_finds_test.go: what one watcher was told, checked event by event; and that the checks find
//     faults. The program itself holds the log to the ten rules, and is asked what it found before it ends.
//   - watchers_test.go: raw watches that resume; informers_test.go: those of the real client-go.
//
// A name is used for one object only: what has been deleted must never be seen again, by any watcher.
package storm
