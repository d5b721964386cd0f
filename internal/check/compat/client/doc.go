// Package client holds the client half against the real one: our informer, queues, store and workqueue stand beside
// those of k8s.io/client-go.
//
//   - The differential tests let both follow the same server through the same story, and compare what they ask of the
//     server, what they tell their handlers, what they store, and when they say that they have synced. What is meant to
//     differ is written down where it is evened out, in normalize and in the doc of the test that needs it.
//   - The benchmarks measure both in the same run. When they are done a table of ratios is printed.
//
// Everything is in test files: no package imports this one.
package client
