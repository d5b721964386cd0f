// Package scenario plays stories on a running pipeline: the things people meet at work and ask about. Each [Scenario]
// tells its symptom first, does a few things that anybody could do, waits for what must follow, and says what was
// seen, with the numbers of this very run. One whose signature does not appear in the log ends in an error.
//
// A story writes only to pods of its own and, when it is over, puts back what it has changed.
//
//	world := &scenario.World{Pipeline: p, Log: log, Probe: probe, Clock: clk}
//	seen, err := world.Play(ctx, "slow-watcher")
//
// # Concurrency
//
// A [World] plays one story at a time and may be asked from any goroutine. It starts goroutines only for the watches and
// informers of a story, and returns when they have ended.
package scenario
