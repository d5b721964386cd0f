// Package server holds the server half against the real one: our etcd3 store and our Cacher stand beside those of
// k8s.io/apiserver, over one embedded etcd and on the same keys, or are fed one stream of events.
//
//   - The tests ask both sides the same questions, lists and watches in all their variants, and compare every answer:
//     types and order of events, names, resource versions, bookmarks and their annotations, status codes and reasons.
//     Where the answers are meant to differ, the table says so, and the test holds both sides to it.
//   - The benchmarks measure both sides in the same run. When they are done a table of ratios is printed.
//
// Everything is in test files: no package imports this one.
package server
