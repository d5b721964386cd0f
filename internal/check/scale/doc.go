// Package scale measures what one object, one watch, one event and one delivery cost a server, and computes what a
// cluster of any size costs. `make scale` checks the prediction by a run with 5,000 watches and 100,000 pods.
// docs/COSTS.md has the outcome.
//
// There is nothing here but tests, under the build tag full. The clients are a process of their own, so that the
// server's costs do not include theirs.
package scale
