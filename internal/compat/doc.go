// Package compat holds our claims against the real thing: the real client-go and apiserver, the real kubectl, a real
// browser. It is a module of its own, so that `go run ./cmd/viz` fetches and builds none of that.
//
//   - cmd/kubectl: the real kubectl, built from its own module.
//   - upstream_test.go: every "Upstream:" line of ours leads to a declaration that exists.
//   - e2e: the program as people meet it.
//   - client: the client half beside client-go, in tests and benchmarks.
//   - ratios: the table that is printed after benchmarks.
//   - server: our etcd3 store and Cacher beside those of the real apiserver, question by question and nanosecond by nanosecond.
package compat
