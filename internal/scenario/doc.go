// Package scenario plays stories on a running pipeline: the things people meet at work and ask about. Each [Story]
// tells its symptom first, does a few things that any user could do, waits for what must follow, and says what was
// seen, with the numbers of this very run. One whose signature does not appear in the log ends in an error.
//
// What a run has written is told afterwards, at the reader's pace, in [Beat]s: what is said, where to look, and where the beat
// comes to rest. [Story.Locate] finds the rests in the records, so that the same beats fit a run of this minute and the
// recording in internal/takes.
//
// A story writes only to pods of its own. It is a command of the [sandbox.Sandbox], which puts back what it has changed when
// it is over, however it ends.
//
//	world := &scenario.World{Pipeline: p, Sandbox: box, Log: log, Probe: probe, Clock: clk}
//	seen, err := world.Play(ctx, "slow-watcher")
//
// # Concurrency
//
// The sandbox plays one story at a time, on a goroutine of its own, and may be asked from any. A story starts goroutines only
// for its informers and reflectors, and is over when they have ended.
package scenario
