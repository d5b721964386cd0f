// Package scenario plays stories on a running pipeline: the things people meet at work and ask about. A [Story] is
// data: one file in stories/, which tells its symptom first and then its beats. Beside the text of a [Beat] stand the
// steps that play it (send, change, turn, watch, await, …; see verbs.go) and the record at which it comes to rest.
//
// A beat is played to its end when its record is in the log. The same patterns find the beats of a run of this minute
// and those of the recording in internal/observe/takes. A story whose record does not come ends in a [Missing].
//
// A story writes only to pods of its own. It is a command of the [sandbox.Sandbox], which puts back what it has changed
// when it is over, however it ends.
//
//	world := &scenario.World{Pipeline: p, Sandbox: box, Log: log, Probe: probe, Clock: clk}
//	seen, err := world.Play(ctx, "slow-watcher")
//
// # Concurrency
//
// The sandbox plays one story at a time, on a goroutine of its own, and may be asked from any. A story starts
// goroutines only for its informers and reflectors, and for requests that have to wait. It is over when they have
// ended.
package scenario
