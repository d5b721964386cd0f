// Package compat holds our claims against the real thing: the real client-go and apiserver, the real kubectl, a real
// browser. It is a module of its own, so that `go run ./cmd/viz` fetches and builds none of that.
//
//   - cmd/kubectl: the real kubectl, built from its own module; oldkubectl: one of 1.26, with a go.mod of its own.
//   - kubeapiserver: the real kube-apiserver, likewise; only the heavy form of tests builds it.
//   - upstream_test.go: every "Upstream:" line of ours leads to a declaration that exists; constants_test.go: our numbers are
//     upstream's.
//   - kubectl: whole sessions, output by output, with both kubectls.
//   - clientgo: the real client-go against the program; our handlers beside upstream's.
//   - program: starts programs for tests.
//   - recipes: docs/DEBUGGING.md, its recipes and VS Code's configurations, in a real delve.
//   - storm: the program under faults, with every watcher's events counted; reads and writes are linearizable.
//   - e2e: the program as people meet it.
//   - client: the client half beside client-go, in tests and benchmarks.
//   - ratios: the table that is printed after benchmarks.
//   - server: our etcd3 store and Cacher beside those of the real apiserver, question by question and nanosecond by nanosecond.
package compat
