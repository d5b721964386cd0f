// Package storm runs the program under faults and proves that no watcher lost an event, saw one twice, or saw two in
// the wrong order. `make storm` runs it for ten minutes, `go test ./storm` for 25 seconds. Every fault is drawn from a
// seed, which is printed; -seed draws the same again.
//
//   - storm_test.go: one storm from start to rest: clients on, faults, clients off, and what has to be true then.
//   - faults_test.go: what is done to the program: commands of the page, restarts of etcd, kill -9, SIGSTOP, cut
//     connections.
//   - clients_test.go: writers, each of which raises the counters of all objects; raw watches that resume; watches that
//     read nothing, or leave just when they are waited for; informers of the real client-go.
//   - judge_test.go: what one raw watch was told, checked event by event, and what writers were answered: no read is
//     stale, and no update is lost. finds_test.go: the checks find faults. The program itself holds its log to the ten
//     rules, and is asked what it found before it ends.
//
// A name is used for one object only: what has been deleted must never be seen again, by any watcher.
package storm
