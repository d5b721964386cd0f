// Package upstream compares this project with what it rewrites: k8s.io/apiserver and client-go, at the versions in
// go.mod.
//
// Our server half beside apiserver's, over one embedded etcd and on the same keys, or over one stream of events:
//
//   - list_test.go, edge_test.go: watches, lists and gets in all their variants. The types and order of events,
//     names, resource versions, bookmarks, status codes and reasons must be the same. Where they are meant to differ,
//     the table says so, and the test holds both sides to it. Keys, and the Accept header, are here, too.
//   - ring_test.go: what the ring remembers and forgets.
//
// Our client half beside client-go's:
//
//   - stories_test.go: both informers follow the same server through the same story. What they ask, tell their handlers
//     and store must be the same. normalize says where they are meant to differ.
//
// The program, as a process of its own, and the real client-go:
//
//   - metrics_test.go: the names and labels of metrics. Informers of every make follow the program in ../storm.
//
// The benchmarks measure both sides in the same run; benchstat -col /side prints them beside each other. Everything is
// in test files: no package imports this one.
package upstream
