// Package scale measures what one object, one watch, one event and one delivery cost a server, and says from that what a cluster of
// any size costs. `make scale` checks the prediction by a run with 5,000 watches and 100,000 pods; docs/COSTS.md has the outcome.
//
// There is nothing here but tests. The clients are a process of their own, so that they cost the server what clients cost it, and no more.
package scale
